import { COLLECTION, GREAT_NAME } from './events.ts'
import { BODY_BYTES, type Heavy, listOf, upTo } from './heavy-shape.ts'

const ROOM = BODY_BYTES - 2000
const OPERATIONS = 10_000

function patch(
  format: 'json' | 'merge' | 'strategic-merge',
  about: string,
  make: () => string,
): Heavy {
  return {
    kind: 'patch',
    about: `${format}: ${about}`,
    make: () => ({
      method: 'PATCH',
      target: `${COLLECTION}/base-2?dryRun=All`,
      headers: { 'content-type': `application/${format}-patch+json` },
      body: make(),
    }),
  }
}

const json = (about: string, make: () => string): Heavy => patch('json', about, () => `[${make()}]`)
const merge = (about: string, make: () => string): Heavy => patch('merge', about, make)
const strategic = (about: string, make: () => string): Heavy =>
  patch('strategic-merge', about, make)

const LABELS = '/metadata/labels'
const add = (path: string, value: string): string =>
  `{"op":"add","path":"${path}","value":${value}}`
const copy = (from: string, path: string): string =>
  `{"op":"copy","from":"${from}","path":"${path}"}`
const move = (from: string, path: string): string =>
  `{"op":"move","from":"${from}","path":"${path}"}`
const test = (path: string, value: string): string =>
  `{"op":"test","path":"${path}","value":${value}}`

const greatList = (count: number): string => add('/x', `[${listOf(count, () => '1')}]`)
const greatObject = (count: number): string => add('/x', `{${listOf(count, (at) => `"k${at}":1`)}}`)

const PATCHES: readonly Heavy[] = [
  json('10,000 additions', () => listOf(OPERATIONS, (at) => add(`${LABELS}/k${at}`, '"v"'))),
  json('10,001 operations', () => listOf(OPERATIONS + 1, (at) => add(`${LABELS}/k${at}`, '"v"'))),
  json('10,000 long paths', () => listOf(OPERATIONS, () => test('/a'.repeat(28), 'null'))),
  json('10,000 paths with escapes', () =>
    listOf(OPERATIONS, () => test(`/${'~1'.repeat(28)}`, 'null')),
  ),
  json('a path of megabytes', () => add('/a'.repeat(ROOM / 2), '1')),
  json('a path of one long name', () => add(`/${'é'.repeat(ROOM / 2)}`, '1')),
  json('an operation of megabytes', () => `{"op":"${'é'.repeat(ROOM / 2)}","path":"/a"}`),
  json('insertions at the front', () =>
    listOf(OPERATIONS, (at) => (at === 0 ? add('/x', '[]') : add('/x/0', '1'))),
  ),
  json(
    'insertions at the front of a great list',
    () => `${greatList(20_000)},${listOf(9000, () => add('/x/0', '1'))}`,
  ),
  json(
    'removals at the front of a great list',
    () => `${greatList(30_000)},${listOf(9000, () => '{"op":"remove","path":"/x/0"}')}`,
  ),
  json(
    'moves within a great list',
    () => `${greatList(20_000)},${listOf(8000, () => move('/x/0', '/x/-'))}`,
  ),
  json(
    'moves between members',
    () => `${add('/a0', '{"x":1}')},${listOf(9000, (at) => move(`/a${at}`, `/a${at + 1}`))}`,
  ),
  json(
    'copies that double',
    () => `${add('/x', '{"a":{"b":1}}')},${listOf(40, (at) => copy('/x', `/x/c${at}`))}`,
  ),
  json('copies that nest', () => `${add('/x', '{}')},${listOf(300, () => copy('/x', '/x/a'))}`),
  json(
    'copies of a great list',
    () => `${greatList(60_000)},${listOf(20, (at) => copy('/x', `/y${at}`))}`,
  ),
  json(
    'copies of a long text',
    () => `${add('/x', `"${'é'.repeat(200_000)}"`)},${listOf(9000, (at) => copy('/x', `/y${at}`))}`,
  ),
  json('10,000 small copies', () =>
    listOf(OPERATIONS, (at) => copy('/metadata/finalizers', `/y${at}`)),
  ),
  json('tests of a great object', () =>
    `${greatObject(20_000)},${listOf(9000, () => test('/x', '{}'))}`.replaceAll(
      '"value":{}',
      '"value":null',
    ),
  ),
  json(
    'tests of a long text',
    () => `${add('/x', `"${'a'.repeat(400_000)}"`)},${test('/x', `"${'a'.repeat(400_000)}"`)}`,
  ),
  json(
    'additions to a great object',
    () => `${greatObject(20_000)},${listOf(7000, (at) => add(`/x/n${at}`, '1'))}`,
  ),
  json('replacements of all', () =>
    listOf(OPERATIONS, () => '{"op":"replace","path":"","value":{}}'),
  ),
  json('tests of all', () => listOf(OPERATIONS, () => '{"op":"test","path":"","value":{}}')),
  json(
    'writes into ever new great objects',
    () =>
      `${greatObject(15_000)},${listOf(20, (at) => `${copy('/x', `/y${at}`)},${add(`/y${at}/z`, '1')}`)}`,
  ),
  json('80,000 values', () => listOf(79_000, () => '1')),
  json('unknown members', () =>
    listOf(OPERATIONS, (at) => `{"op":"test","path":"/zz","value":null,"x${at}":1}`),
  ),
  json('one member many times', () => `{${listOf(39_000, () => '"op":"test"')}}`),
  json(
    'deep in the document',
    () =>
      `${add('/x', `${'['.repeat(190)}${']'.repeat(190)}`)},${listOf(8000, () => add(`/x${'/0'.repeat(180)}/-`, '1'))}`,
  ),
  merge(
    '39,000 labels',
    () => `{"metadata":{"labels":{${listOf(39_000, (at) => `"k${at}":"v"`)}}}}`,
  ),
  merge(
    '39,000 annotations',
    () => `{"metadata":{"annotations":{${listOf(39_000, (at) => `"k${at}":"v"`)}}}}`,
  ),
  merge('39,000 nulls', () => `{"x":{${listOf(39_000, (at) => `"k${at}":null`)}}}`),
  merge(
    '39,000 nulls in members of their own',
    () => `{"x":{${listOf(19_000, (at) => `"k${at}":{"a":null}`)}}}`,
  ),
  merge('39,000 unknown names', () => `{${listOf(39_000, (at) => `"k${at}":1`)}}`),
  merge('79,000 unknown values in a list', () => `{"x":[${listOf(79_000, () => '1')}]}`),
  merge(
    '13,000 owners',
    () =>
      `{"metadata":{"ownerReferences":[${listOf(13_000, (at) => `{"uid":"${at}","name":"n"}`)}]}}`,
  ),
  merge(
    '79,000 empty owners',
    () => `{"metadata":{"ownerReferences":[${listOf(79_000, () => '{}')}]}}`,
  ),
  merge(
    '79,000 finalizers',
    () => `{"metadata":{"finalizers":[${listOf(79_000, (at) => `"example.com/${at}"`)}]}}`,
  ),
  merge('400,000 names', () => `{${upTo(ROOM, (at) => `"${at}":1`)}}`),
  merge('a note of megabytes', () => `{"note":"${'é'.repeat(ROOM / 2)}"}`),
  merge(
    'a label of megabytes',
    () => `{"metadata":{"labels":{"app":"${'"'.replace('"', '\\"').repeat(ROOM / 2)}"}}}`,
  ),
  merge('a name twice, often', () => `{${listOf(39_000, () => '"note":"x"')}}`),
  merge('many names twice', () => `{${listOf(39_000, (at) => `"k${at % 19_000}":1`)}}`),
  merge('200,000 deep', () => '{"a":'.repeat(200_000)),
  merge('a regarding of megabytes', () => `{"regarding":{"name":"${'<'.repeat(ROOM)}"}}`),
  merge(
    'a resourceVersion of megabytes',
    () => `{"metadata":{"resourceVersion":"${'1'.repeat(ROOM)}"}}`,
  ),
  merge('a uid of megabytes', () => `{"metadata":{"uid":"${'u'.repeat(ROOM)}"}}`),
  merge('a name of megabytes', () => `{"metadata":{"name":"${'u'.repeat(ROOM)}"}}`),
  strategic(
    '79,000 finalizers to merge',
    () => `{"metadata":{"finalizers":[${listOf(79_000, (at) => `"example.com/${at}"`)}]}}`,
  ),
  strategic('39,000 finalizers in an order', () => {
    const list = listOf(39_000, (at) => `"example.com/${at}"`)
    return `{"metadata":{"finalizers":[${list}],"$setElementOrder/finalizers":[${list}]}}`
  }),
  strategic(
    '79,000 finalizers to delete',
    () =>
      `{"metadata":{"$deleteFromPrimitiveList/finalizers":[${listOf(79_000, (at) => `"example.com/${at}"`)}]}}`,
  ),
  strategic(
    '26,000 owners to merge',
    () => `{"metadata":{"ownerReferences":[${listOf(26_000, (at) => `{"uid":"${at}"}`)}]}}`,
  ),
  strategic(
    '15,000 owners to delete',
    () =>
      `{"metadata":{"ownerReferences":[${listOf(15_000, (at) => `{"uid":"${at}","$patch":"delete"}`)}]}}`,
  ),
  strategic(
    'one owner 26,000 times',
    () => `{"metadata":{"ownerReferences":[${listOf(26_000, () => '{"uid":"1"}')}]}}`,
  ),
  strategic('13,000 owners in an order', () => {
    const list = listOf(13_000, (at) => `{"uid":"${at}"}`)
    return `{"metadata":{"ownerReferences":[${list}],"$setElementOrder/ownerReferences":[${list}]}}`
  }),
  strategic(
    '79,000 names to retain',
    () => `{"metadata":{"$retainKeys":[${listOf(79_000, (at) => `"${at}"`)}]}}`,
  ),
  strategic(
    '39,000 directions',
    () => `{"metadata":{${listOf(39_000, (at) => `"$setElementOrder/x${at}":[]`)}}}`,
  ),
  strategic(
    '39,000 labels',
    () => `{"metadata":{"labels":{${listOf(39_000, (at) => `"k${at}":"v"`)}}}}`,
  ),
  strategic('a directive of megabytes', () => `{"$patch":"${'é'.repeat(ROOM / 2)}"}`),
  strategic(
    'nested replacements',
    () => `${'{"$patch":"replace","a":'.repeat(190)}1${'}'.repeat(190)}`,
  ),
]

/** All of them also on an event of the maximum size. */
export const HEAVY_PATCHES: readonly Heavy[] = PATCHES.flatMap((heavy) => [
  heavy,
  {
    ...heavy,
    about: `${heavy.about}, on a great event`,
    needsGreat: true,
    make: (random) => ({ ...heavy.make(random), target: `${COLLECTION}/${GREAT_NAME}?dryRun=All` }),
  },
])
