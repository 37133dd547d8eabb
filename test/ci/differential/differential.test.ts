/**
 * The parts of the differential test that need no other server: generator, comparison, shrinking.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { Answer, Client } from '../../nightly/differential/client.ts'
import { digestOf } from '../../nightly/differential/digest.ts'
import { KNOWN_ROWS } from '../../nightly/differential/explanation.ts'
import { sequenceAt } from '../../nightly/differential/generators/sequence.ts'
import { compared, Player, smallerTrees } from '../../nightly/differential/play.ts'
import { askOf, GROUPS, Memory, type Step, VERBS } from '../../nightly/differential/step.ts'
import { Members, treeText } from '../../nightly/fuzz/tree.ts'

const place = { namespace: 'ns-1' }
const get: Step = { verb: 'get', group: 'events', at: 'n0', query: [], headers: {} }

function json(status: number, body: unknown, headers: Record<string, string> = {}): Answer {
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body: Buffer.from(JSON.stringify(body)),
  }
}

function event(version: string, more: object = {}, metadata: object = {}): unknown {
  return {
    kind: 'Event',
    apiVersion: 'events.k8s.io/v1',
    metadata: { name: 'n0', namespace: 'ns-1', resourceVersion: version, ...metadata },
    ...more,
  }
}

describe('the generator', () => {
  const sequences = Array.from({ length: 300 }, (_, index) => sequenceAt({ seed: 7 }, index))
  const steps = sequences.flat()

  test('makes the same sequence from the same seed and number', () => {
    assert.deepEqual(sequenceAt({ seed: 7 }, 3), sequences[3])
    assert.notDeepEqual(sequenceAt({ seed: 8 }, 3), sequences[3])
  })

  test('uses every verb in both groups', () => {
    for (const group of GROUPS) {
      for (const verb of VERBS) {
        const count = steps.filter((step) => step.verb === verb && step.group === group).length
        assert.ok(count > 10, `${verb} of ${group}: ${count}`)
      }
    }
  })

  test('sends and requests JSON, YAML and protobuf', () => {
    const memory = new Memory('ns-1')
    const seen = new Set(
      steps.flatMap((step) => {
        const { headers, body } = askOf(step, memory)
        return [
          `sends ${headers['content-type']} ${body?.subarray(0, 4).toString() === 'k8s\0'}`,
          `asks for ${headers['accept']?.split(';')[0]}`,
        ]
      }),
    )
    for (const what of [
      'sends application/json false',
      'sends application/yaml false',
      'sends application/vnd.kubernetes.protobuf true',
      'asks for application/json',
      'asks for application/yaml',
      'asks for application/vnd.kubernetes.protobuf',
    ]) {
      assert.ok(seen.has(what), what)
    }
  })
})

describe('the comparison', () => {
  const differ = (ours: Answer, theirs: Answer, step = get): string | undefined =>
    compared(step, digestOf(step, ours, place), digestOf(step, theirs, place))?.signature

  test('ignores values that every server chooses by itself', () => {
    const uid = (digit: string): object => ({
      uid: `${digit.repeat(8)}-1111-4111-8111-111111111111`,
    })
    assert.equal(
      differ(json(200, event('5000', {}, uid('a'))), json(200, event('7', {}, uid('b')))),
      undefined,
    )
  })

  test('finds another status, value, member, warning, format and layout', () => {
    const one = json(200, event('5'))
    const others = [
      json(201, event('5')),
      json(200, event('5', { note: 'x' })),
      json(200, event('not a version')),
      json(200, event('5'), { warning: '299 - "x"' }),
      json(200, event('5'), { 'content-type': 'application/json;stream=watch' }),
      { ...one, body: Buffer.from(JSON.stringify(event('5'), undefined, 2)) },
    ]
    for (const other of others) assert.notEqual(differ(one, other), undefined)
  })

  test('includes managedFields only on request', () => {
    const owned = json(200, event('5', {}, { managedFields: [{ manager: 'm' }] }))
    assert.equal(differ(owned, json(200, event('5'))), undefined)
    assert.notEqual(
      differ(owned, json(200, event('5')), { ...get, comparesOwners: true }),
      undefined,
    )
  })

  test('skips bookmarks of a watch, but not the end of the initial events', () => {
    const watch: Step = { ...get, verb: 'watch', at: '' }
    const frames = (...list: object[]): Answer => ({
      ...json(200, {}),
      body: Buffer.from(list.map((frame) => `${JSON.stringify(frame)}\n`).join('')),
    })
    const added = { type: 'ADDED', object: event('5') }
    const bookmark = { type: 'BOOKMARK', object: event('6') }
    const annotations = { 'k8s.io/initial-events-end': 'true' }
    const end = { type: 'BOOKMARK', object: event('6', {}, { annotations }) }
    assert.equal(differ(frames(added, bookmark), frames(added), watch), undefined)
    assert.notEqual(differ(frames(added, end), frames(added), watch), undefined)
    assert.notEqual(differ(frames(added), frames(), watch), undefined)
  })

  test('accepts a known difference only if it matches its rule', () => {
    const refused = (reason: string, message: string): Answer =>
      json(400, { kind: 'Status', reason, message, code: 400 })
    const found = compared(
      get,
      digestOf(get, refused('BadRequest', 'one'), place),
      digestOf(get, refused('BadRequest', 'another'), place),
    )
    assert.deepEqual([found?.row, found?.places.length], [undefined, 1])
  })

  const rowOf = (step: Step, ours: Answer, theirs: Answer): string | undefined =>
    compared(step, digestOf(step, ours, place), digestOf(step, theirs, place))?.row
  const status = (code: number, more: object): Answer =>
    json(code, { kind: 'Status', apiVersion: 'v1', ...more })

  test('accepts a Status for a deleted collection, and no other response', () => {
    const step: Step = { ...get, verb: 'delete-collection', at: '' }
    const list = json(200, { kind: 'EventList', items: [] })
    assert.equal(rowOf(step, status(200, { status: 'Success' }), list), 'collection-delete-status')
    assert.equal(rowOf(step, json(200, event('5')), list), undefined)
    assert.equal(rowOf(step, status(200, {}), status(200, { status: 'Success' })), undefined)
  })

  test('accepts a 500 of the other server for a client error only where it is known', () => {
    const ours = status(400, { reason: 'BadRequest', message: 'x' })
    const message = 'strconv.ParseUint: parsing "x": invalid syntax'
    assert.equal(rowOf(get, ours, status(500, { message })), 'client-mistake-is-4xx')
    assert.equal(rowOf(get, ours, status(500, { message: 'etcd is away' })), undefined)
  })

  test('accepts a frame without a change for a patch without one, and no other frame', () => {
    const watch: Step = { ...get, verb: 'watch', at: '' }
    const frames = (...list: object[]): Answer => ({
      ...json(200, {}),
      body: Buffer.from(list.map((frame) => `${JSON.stringify(frame)}\n`).join('')),
    })
    const added = { type: 'ADDED', object: event('5') }
    const [same, other] = ['', 'x'].map((note) => ({
      type: 'MODIFIED',
      object: event('6', note === '' ? {} : { note }),
    }))
    assert.ok(same && other)
    const row = 'managed-fields-begin-with-apply'
    assert.equal(rowOf(watch, frames(added), frames(added, same)), row)
    assert.equal(rowOf(watch, frames(added), frames(added, other)), undefined)
  })

  test('explains the places of an event one by one', () => {
    const tree = Members.of({ metadata: Members.of({ labels: Members.of({ $patch: 'replace' }) }) })
    const step: Step = { ...get, verb: 'strategic-patch', body: { form: 'json', tree } }
    const ours = event('5', {}, { labels: { app: 'r' }, finalizers: ['a/b'] })
    const theirs = (more: object): Answer =>
      json(200, event('5', more, { finalizers: ['a/b', 'a/b'] }))
    assert.equal(rowOf(step, json(200, ours), theirs({})), 'strategic-lists-are-sets')
    assert.equal(rowOf(step, json(200, ours), theirs({ note: 'x' })), undefined)
  })

  test('explains the parts of a response one by one', () => {
    const step: Step = { ...get, headers: { accept: 'application/json;as=Table' } }
    const refused = (message: string): object => ({
      kind: 'Status',
      reason: 'BadRequest',
      message,
    })
    const inLines = (message: string): Answer => ({
      ...json(400, {}),
      body: Buffer.from(JSON.stringify(refused(message), undefined, 2)),
    })
    assert.equal(
      rowOf(step, json(400, refused('one')), inLines('one')),
      'refusals-in-the-form-asked-for',
    )
    assert.equal(rowOf(step, json(400, refused('one')), inLines('yaml: two')), 'own-words')
    assert.equal(rowOf(step, json(400, refused('one')), inLines('two')), undefined)
  })
})

describe('a sequence of requests', () => {
  const answering = (...answers: Answer[]): Client =>
    ({ ask: async () => answers.shift() }) as unknown as Client
  const patch: Step = {
    ...get,
    verb: 'merge-patch',
    body: { form: 'json', tree: new Members() },
  }

  test('differs where only one server stores a patch', async () => {
    const [stored, same] = [json(200, event('6')), json(200, event('5'))]
    const played = async (ours: Answer, theirs: Answer): Promise<readonly string[]> => {
      const before = json(200, event('5'))
      const player = new Player({
        ours: answering(before, ours),
        theirs: answering(before, theirs),
      })
      const { differences, known } = await player.play([get, patch])
      return [...known.map(({ row }) => row), ...differences.flatMap(({ places }) => places)]
    }
    assert.deepEqual(await played(stored, stored), [])
    assert.deepEqual(await played(same, stored), ['managed-fields-begin-with-apply'])
    assert.deepEqual(await played(stored, same), ['.isWritten: true, wanted false'])
  })

  test('does not differ in a version that was copied to elsewhere', async () => {
    const [ours, theirs] = ['5000', '7'].map((version) =>
      answering(json(200, event(version)), json(200, event('9999', { note: version }))),
    )
    assert.ok(ours && theirs)
    const { differences } = await new Player({ ours, theirs }).play([get, patch])
    assert.deepEqual(differences, [])
  })

  test('repeats a watch that differs once, with more time', async () => {
    const frame = `${JSON.stringify({ type: 'ADDED', object: event('5') })}\n`
    const [short, whole] = ['', frame].map((text) => ({
      ...json(200, {}),
      body: Buffer.from(text),
    }))
    assert.ok(short && whole)
    const watch: Step = { ...get, verb: 'watch', at: '', query: [['timeoutSeconds', '1']] }
    const late = new Player({ ours: answering(short, whole), theirs: answering(whole, whole) })
    assert.deepEqual((await late.play([watch])).differences, [])
    const never = new Player({ ours: answering(short, short), theirs: answering(whole, whole) })
    assert.equal((await never.play([watch])).differences.length, 1)
  })
})

describe('a difference', () => {
  /** Two servers that differ in one thing: their response to a label. */
  const servers = (): { ours: Client; theirs: Client } => {
    const answering = (name: string): Client =>
      ({
        ask: async ({ body }: { body?: Buffer }) =>
          json(200, event('5', body?.includes('"bad"') ? { note: name } : {})),
      }) as unknown as Client
    return { ours: answering('ours'), theirs: answering('theirs') }
  }
  const create = (labels: Record<string, string>): Step => ({
    verb: 'create',
    group: 'core',
    at: '',
    query: [['pretty', 'true']],
    headers: {},
    body: {
      form: 'json',
      tree: Members.of({ metadata: Members.of({ labels: Members.of(labels) }) }),
    },
  })

  test('is shrunk to a minimal sequence', async () => {
    const player = new Player(servers())
    const steps = [get, create({ a: 'b' }), create({ x: 'y', bad: 'z' })]
    const [difference] = (await player.play(steps)).differences
    assert.ok(difference)
    const { steps: left } = await player.shrink(difference)
    assert.deepEqual(
      left.map(({ query, body }) => [query, body?.form === 'json' && treeText(body.tree)]),
      [[[], '{"metadata":{"labels":{"bad":"z"}}}']],
    )
  })

  test('is tried with every member and entry left out', () => {
    const tree = Members.of({ a: [1, 2], b: Members.of({ c: 3 }) })
    assert.deepEqual([...smallerTrees(tree)].map(treeText), [
      '{"b":{"c":3}}',
      '{"a":[1,2]}',
      '{"a":[2],"b":{"c":3}}',
      '{"a":[1],"b":{"c":3}}',
      '{"a":[1,2],"b":{}}',
    ])
  })
})

test('every known difference has its row in docs/reference/compatibility.md, and every row that names the table is in it', () => {
  const page = readFileSync(
    join(import.meta.dirname, '../../../docs/reference/compatibility.md'),
    'utf8',
  )
  const rows = page.split('\n').filter((line) => line.startsWith('| `'))
  const idOf = (line: string): string => /`([^`]+)`/.exec(line)?.[1] ?? ''
  const known = new Set(KNOWN_ROWS)
  assert.deepEqual(
    [...known].filter((id) => !rows.some((line) => idOf(line) === id)),
    [],
  )
  assert.deepEqual(
    rows
      .filter((line) =>
        /`test\/nightly\/differential\/(?:known|known-patches|explanation)\.ts`/.test(line),
      )
      .map(idOf)
      .filter((id) => !known.has(id)),
    [],
  )
})
