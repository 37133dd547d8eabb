/**
 * Inputs of the maximum size, each of a shape that is known to be expensive for some server. All of
 * them are tried in every run.
 */
import type { Random } from '../../../support/random.ts'
import type { FuzzInput } from '../input.ts'
import { COLLECTION, STANDING } from './events.ts'
import { HEAVY_PATCHES } from './heavy-patches.ts'
import { HEAVY_REQUESTS } from './heavy-requests.ts'
import { BODY_BYTES, type Heavy, listOf, SENT_BYTES, upTo } from './heavy-shape.ts'

/** A text, cut to the accepted size. */
export function heavyOf(heavy: Heavy, random: Random): FuzzInput {
  const made = heavy.make(random)
  const body = Buffer.from(made.body ?? '').subarray(0, SENT_BYTES)
  return {
    kind: heavy.kind,
    about: heavy.about,
    method: made.method ?? 'POST',
    target: made.target ?? `${COLLECTION}?dryRun=All`,
    headers: made.headers ?? { 'content-type': 'application/json' },
    body,
  }
}

/** An event with something in place of, or besides, its own members. */
function eventWith(members: string, metadata = ''): string {
  const base = STANDING.get('base-0')
  const text = JSON.stringify(base)
  const withMeta = metadata === '' ? text : text.replace('"metadata":{', `"metadata":{${metadata},`)
  return members === '' ? withMeta : `{${members},${withMeta.slice(1)}`
}

function body(about: string, make: (random: Random) => string, query = ''): Heavy {
  return {
    kind: 'body',
    about,
    make: (random) => ({
      body: make(random),
      target: `${COLLECTION}?dryRun=All${query}`,
    }),
  }
}

const long = (text: string, bytes = BODY_BYTES - 2000): string =>
  text.repeat(Math.floor(bytes / Buffer.byteLength(text)))

function metadataMap(name: string, entry: (index: number) => string): string {
  return eventWith('', `"${name}":{${upTo(BODY_BYTES - 2000, entry)}}`)
}

const OWNER = '"apiVersion":"v1","kind":"Pod","name":"p"'

const BODIES: readonly Heavy[] = [
  body('lists 200,000 deep', () => eventWith(`"x":${'['.repeat(200_000)}`)),
  body('objects 200,000 deep', () => eventWith(`"x":${'{"a":'.repeat(200_000)}`)),
  body('more than is read', () => '['.repeat(SENT_BYTES)),
  body('nothing but brackets', () => '['.repeat(BODY_BYTES)),
  body('nothing but spaces', () => ' '.repeat(BODY_BYTES)),
  body('nothing but quotes', () => '"'.repeat(BODY_BYTES)),
  body('no JSON', () => 'x'.repeat(BODY_BYTES)),
  body('zero bytes', () => '\0'.repeat(BODY_BYTES)),
  body('80,000 values', () => eventWith(`"x":[${listOf(80_000, () => '1')}]`)),
  body('19,000 unknown names', () => eventWith(listOf(9500, (at) => `"x${at}":1`))),
  body(
    '19,000 unknown names, strict',
    () => eventWith(listOf(9500, (at) => `"x${at}":1`)),
    '&fieldValidation=Strict',
  ),
  body('400,000 names', () => eventWith(upTo(BODY_BYTES - 2000, (at) => `"${at}":1`))),
  body('one name 9,900 times', () => eventWith(listOf(9900, () => '"note":"x"'))),
  body('names that are numbers', () => metadataMap('labels', (at) => `"${at * 7919}":"1"`)),
  body('a note of megabytes', () => eventWith(`"note":"${long('x')}"`)),
  body('a note of escapes', () => eventWith(`"note":"${long('\\u0041')}"`)),
  body('a note of half pairs', () => eventWith(`"note":"${long('\\ud800')}"`)),
  body('a note of line breaks', () => eventWith(`"note":"${long('\\n')}"`)),
  body('a note beyond ASCII', () => eventWith(`"note":"${long('é')}"`)),
  body('a note beyond the first plane', () => eventWith(`"note":"${long('𝒳')}"`)),
  body('a name of megabytes', () =>
    JSON.stringify(STANDING.get('base-0')).replace('base-0', long('x')),
  ),
  body('a name of megabytes of quotes', () =>
    JSON.stringify(STANDING.get('base-0')).replace('base-0', long('\\"')),
  ),
  body('a generateName of megabytes', () =>
    eventWith('', `"generateName":"${long('é')}"`).replace('"name":"base-0",', ''),
  ),
  body('a namespace of megabytes', () =>
    eventWith('').replace('"namespace":"fuzz"', `"namespace":"${long('x')}"`),
  ),
  body('a kind of megabytes', () =>
    eventWith(`"kind":"${long('x')}"`).replace('"kind":"Event",', ''),
  ),
  body('a type of megabytes', () => eventWith('').replace('"Normal"', `"${long('é')}"`)),
  body('a reason of megabytes', () => eventWith('').replace('"Started"', `"${long('<')}"`)),
  body('a controller of megabytes', () =>
    eventWith('').replace('example.com/controller', long('\\u0007')),
  ),
  body('a time of megabytes', () => eventWith('').replace('2026-11-15', long('9'))),
  body('a time with megabytes of fraction', () =>
    eventWith('').replace('.000000Z', `.${long('9')}Z`),
  ),
  body('a number of megabytes', () => eventWith(`"x":${long('9')}`)),
  body('a series count of 900 digits', () => eventWith(`"series":{"count":${'9'.repeat(900)}}`)),
  body(
    'an unknown name of megabytes',
    () => eventWith(`"${long('é')}":1`),
    '&fieldValidation=Strict',
  ),
  body('a resourceVersion of megabytes', () => eventWith('', `"resourceVersion":"${long('1')}"`)),
  body('a uid of megabytes', () => eventWith('', `"uid":"${long('"'.replace('"', 'u'))}"`)),
  body('9,000 good labels', () =>
    eventWith('', `"labels":{${listOf(9000, (at) => `"k${at}":"v"`)}}`),
  ),
  body('9,000 bad labels', () =>
    eventWith('', `"labels":{${listOf(9000, (at) => `"-${at}":"-"`)}}`),
  ),
  body('240,000 labels', () => metadataMap('labels', (at) => `"k${at}":"v"`)),
  body('few labels of many letters', () =>
    eventWith('', `"labels":{${listOf(90, (at) => `"k${at}":"${'é'.repeat(5000)}"`)}}`),
  ),
  body('annotations over the limit', () =>
    eventWith('', `"annotations":{${listOf(9000, (at) => `"k${at}":"${'é'.repeat(100)}"`)}}`),
  ),
  body('annotations under the limit', () =>
    eventWith('', `"annotations":{${listOf(9000, (at) => `"k${at}":"${'<'.repeat(20)}"`)}}`),
  ),
  body('500,000 empty owners', () =>
    eventWith('', `"ownerReferences":[${upTo(BODY_BYTES - 2000, () => '{}')}]`),
  ),
  body('19,000 empty owners', () =>
    eventWith('', `"ownerReferences":[${listOf(19_000, () => '{}')}]`),
  ),
  body('2,000 owners', () =>
    eventWith('', `"ownerReferences":[${listOf(2000, (at) => `{${OWNER},"uid":"${at}"}`)}]`),
  ),
  body('2,000 controllers', () =>
    eventWith(
      '',
      `"ownerReferences":[${listOf(1600, (at) => `{${OWNER},"uid":"${at}","controller":true}`)}]`,
    ),
  ),
  body('owners with names of megabytes', () =>
    eventWith(
      '',
      `"ownerReferences":[${listOf(2, () => `{"uid":"1","name":"${'n'.repeat(500_000)}"}`)}]`,
    ),
  ),
  body('owners with uids of megabytes', () =>
    eventWith(
      '',
      `"ownerReferences":[${listOf(3, () => `{${OWNER},"uid":"${'é'.repeat(160_000)}"}`)}]`,
    ),
  ),
  body('18,000 finalizers', () =>
    eventWith('', `"finalizers":[${listOf(18_000, (at) => `"example.com/${at}"`)}]`),
  ),
  body('18,000 bad finalizers', () =>
    eventWith('', `"finalizers":[${listOf(18_000, (at) => `"-${at}"`)}]`),
  ),
  body('finalizers of megabytes', () =>
    eventWith('', `"finalizers":[${listOf(3, () => `"${'é'.repeat(160_000)}"`)}]`),
  ),
  body('managed fields with great trees', () =>
    eventWith('', `"managedFields":[{"fieldsV1":{${listOf(9000, (at) => `"f:${at}":{}`)}}}]`),
  ),
  body('1 MiB that fits everywhere but in the store', () =>
    eventWith(`"related":{"name":"${'x'.repeat(1_400_000)}"}`),
  ),
]

/** Fields without a length limit, at the maximum size: stored, and encoded in every format. */
const FREE_TEXTS = [
  'x',
  'é',
  '𝒳',
  '\\n',
  ' ',
  'a ',
  '\\"',
  '\\\\',
  '\\u0007',
  ': ',
  '<',
  '\\u2028',
  '- \\n',
]

const SHOWN: readonly Heavy[] = FREE_TEXTS.flatMap((text) =>
  ['application/json', 'application/json;pretty=1', 'application/yaml'].map((accept) => ({
    kind: 'body',
    about: `a great text of ${JSON.stringify(text)} as ${accept}`,
    make: () => ({
      body: eventWith(`"related":{"name":"${long(text)}"}`),
      headers: { 'content-type': 'application/json', accept },
    }),
  })),
)

const WRITTEN: readonly Heavy[] = [
  [900_000, 'fits'],
  [1_040_000, 'hardly fits'],
  [1_100_000, 'does not fit'],
].map(([length = 0, about = '']) => ({
  kind: 'body',
  about: `an event that ${about} into the store`,
  make: () => ({
    body: eventWith(`"related":{"name":"${'x'.repeat(Number(length))}"}`).replace(
      'base-0',
      `great-${length}`,
    ),
    target: COLLECTION,
  }),
}))

function yaml(about: string, make: (random: Random) => string): Heavy {
  const headers = { 'content-type': 'application/yaml', accept: 'application/yaml' }
  return { kind: 'yaml', about, make: (random) => ({ body: make(random), headers }) }
}

const YAML_BYTES = 65_000

function aliasBomb(levels: number, width: number): string {
  const lines = ['a0: &a0 [x]']
  for (let at = 1; at <= levels; at++) {
    lines.push(`a${at}: &a${at} [${Array.from({ length: width }, () => `*a${at - 1}`).join(',')}]`)
  }
  return lines.join('\n')
}

const YAMLS: readonly Heavy[] = [
  yaml('an alias bomb', () => aliasBomb(20, 10)),
  yaml('an alias bomb that just fits', () => aliasBomb(4, 10)),
  yaml('merge keys of merge keys', () => {
    const lines = ['m0: &m0 {a: 1}']
    for (let at = 1; at < 200; at++)
      lines.push(`m${at}: &m${at} {<<: [*m${at - 1}, *m${at - 1}], k${at}: 1}`)
    return lines.join('\n')
  }),
  yaml('an anchor in itself', () => 'a: &a [*a]'),
  yaml('many anchors', () => listOf(700, (at) => `&a${at} x`).replaceAll(',', '\n')),
  yaml('flow lists of great depth', () => '['.repeat(YAML_BYTES)),
  yaml('flow objects of great depth', () => '{a: '.repeat(YAML_BYTES / 4)),
  yaml('block lists of great depth', () => '- '.repeat(YAML_BYTES / 2)),
  yaml('block objects of great depth', () =>
    Array.from({ length: 340 }, (_, at) => `${' '.repeat(at)}a:`).join('\n'),
  ),
  yaml('complex keys of great depth', () => '? '.repeat(YAML_BYTES / 2)),
  yaml('many documents', () => '---\n'.repeat(YAML_BYTES / 4)),
  yaml('tabs', () => '\t'.repeat(YAML_BYTES)),
  yaml('line breaks', () => '\n'.repeat(YAML_BYTES)),
  yaml('spaces', () => ' '.repeat(YAML_BYTES)),
  yaml('one long line', () => `a: ${'x '.repeat(YAML_BYTES / 2)}`),
  yaml('one long quoted text', () => `a: "${'\\x41'.repeat(YAML_BYTES / 4)}"`),
  yaml('a long text with breaks in quotes', () => `a: "${'x\n '.repeat(YAML_BYTES / 4)}"`),
  yaml('a long block', () => `a: |\n${' x\n'.repeat(YAML_BYTES / 3)}`),
  yaml('a long folded block', () => `a: >\n${' x\n'.repeat(YAML_BYTES / 3)}`),
  yaml('comments', () => '# x\n'.repeat(YAML_BYTES / 4)),
  yaml('colons', () => ':'.repeat(YAML_BYTES)),
  yaml('colons and spaces', () => ': '.repeat(YAML_BYTES / 2)),
  yaml('commas', () => `[${','.repeat(YAML_BYTES)}`),
  yaml('open quotes', () => "'".repeat(YAML_BYTES - 1)),
  yaml('tags', () => '!a '.repeat(YAML_BYTES / 3)),
  yaml('directives', () => '%YAML 1.2\n'.repeat(YAML_BYTES / 10)),
  yaml('one name 700 times', () => 'note: x\n'.repeat(700)),
  yaml('700 unknown names', () => Array.from({ length: 700 }, (_, at) => `x${at}: y`).join('\n')),
  yaml('a list of 900', () => `metadata:\n  finalizers:\n${'  - x\n'.repeat(900)}`),
  yaml('a number of great length', () => `a: ${'1_'.repeat(YAML_BYTES / 2)}`),
  yaml('megabytes', () => 'a: b\n'.repeat(BODY_BYTES / 5)),
  yaml('JSON of 80,000 values', () => `{"x":[${listOf(79_000, () => '1')}]}`),
  yaml('JSON with an error at its end', () => `{"x":[${listOf(1400, () => '1')}]`),
  yaml('JSON of megabytes in one text', () => eventWith(`"note":"${long('é')}"`)),
  yaml('a response with 9,000 labels', () =>
    eventWith('', `"labels":{${listOf(9000, (at) => `"k${at}":"v"`)}}`),
  ),
  yaml('a response with 9,000 annotations in letters', () =>
    eventWith('', `"annotations":{${listOf(9000, (at) => `"k${at}":"é"`)}}`),
  ),
]

export const HEAVY: readonly Heavy[] = [
  ...BODIES,
  ...SHOWN,
  ...WRITTEN,
  ...YAMLS,
  ...HEAVY_PATCHES,
  ...HEAVY_REQUESTS,
]
