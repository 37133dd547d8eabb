import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { checkHistory } from '../../nightly/chaos/model/check.ts'
import type { Operation, Seen, WriteOutcome } from '../../nightly/chaos/model/history.ts'
import { simulateHistory } from '../../nightly/chaos/model/simulated.ts'
import { Random } from '../../nightly/chaos/traffic/random.ts'

/** One operation; its id is its place in the history. */
type Step = (id: number) => Operation

const seen = (value: string, version: number): NonNullable<Seen> => ({ value, version })

const write =
  (
    [calledAt, returnedAt]: readonly [number, number],
    [key, value]: readonly [string, string | undefined],
    outcome: WriteOutcome,
  ): Step =>
  (id) => ({ type: 'write', id, calledAt, returnedAt, key, value, outcome })

const get =
  ([calledAt, returnedAt]: readonly [number, number], key: string, what: Seen): Step =>
  (id) => ({ type: 'get', id, calledAt, returnedAt, key, seen: what })

const list =
  (
    [calledAt, returnedAt]: readonly [number, number],
    version: number,
    items: Readonly<Record<string, NonNullable<Seen>>>,
  ): Step =>
  (id) => ({
    type: 'list',
    id,
    calledAt,
    returnedAt,
    version,
    items: new Map(Object.entries(items)),
  })

const applied = (version: number, base: Seen): WriteOutcome => ({
  result: 'applied',
  version,
  base,
})
const refused = (what: Seen): WriteOutcome => ({ result: 'refused', seen: what })
const unknown = (base: Seen): WriteOutcome => ({ result: 'unknown', base })
const failed: WriteOutcome = { result: 'failed' }

function kindsOf(...steps: readonly Step[]): readonly string[] {
  const violations = checkHistory(steps.map((step, id) => step(id)))
  return [...new Set(violations.map(({ kind }) => kind))].sort()
}

const created = write([0, 1], ['a', 'one'], applied(2000, undefined))
const one = seen('one', 2000)

describe('the checker accepts correct histories', () => {
  test('a history of one key, one step after another, is accepted', () => {
    const two = seen('two', 3000)
    assert.deepEqual(
      kindsOf(
        get([-2, -1], 'a', undefined),
        created,
        get([2, 3], 'a', one),
        write([4, 5], ['a', 'two'], applied(3000, one)),
        write([6, 7], ['a', 'three'], refused(two)),
        list([8, 9], 3999, { a: two }),
        write([10, 11], ['a', undefined], applied(4000, two)),
        get([12, 13], 'a', undefined),
        list([14, 15], 4999, {}),
        write([16, 17], ['a', 'four'], applied(5000, undefined)),
      ),
      [],
    )
  })

  test('reads concurrent with a write may see it or not, in any order of calls', () => {
    assert.deepEqual(
      kindsOf(
        write([0, 10], ['a', 'one'], applied(2000, undefined)),
        get([1, 2], 'a', one),
        get([1, 9], 'a', undefined),
      ),
      [],
    )
  })

  test('a write with an unknown result may be applied long after its call, or never', () => {
    const lost = write([2, 3], ['a', 'two'], unknown(one))
    assert.deepEqual(kindsOf(created, lost, get([4, 5], 'a', one), get([90, 91], 'a', one)), [])
    const two = seen('two', 3000)
    assert.deepEqual(kindsOf(created, lost, get([4, 5], 'a', one), get([90, 91], 'a', two)), [])
  })

  test('a delete with an unknown result explains a later create', () => {
    assert.deepEqual(
      kindsOf(
        created,
        write([2, 3], ['a', undefined], unknown(one)),
        get([4, 5], 'a', one),
        get([6, 7], 'a', undefined),
        write([8, 9], ['a', 'two'], applied(5000, undefined)),
      ),
      [],
    )
  })

  test('a put and a delete with unknown results that no read saw are accepted', () => {
    assert.deepEqual(
      kindsOf(
        write([0, 1], ['a', 'one'], unknown(undefined)),
        write([2, 3], ['a', 'two'], applied(5000, undefined)),
      ),
      [],
    )
  })
})

describe('the checker finds planted violations', () => {
  test('a lost update is found: two changes were based on the same state', () => {
    const found = kindsOf(
      created,
      write([2, 3], ['a', 'two'], applied(3000, one)),
      write([2, 3], ['a', 'three'], applied(4000, one)),
    )
    assert.deepEqual(found, ['not-linearizable'])
  })

  test('a stale read is found: a later response had replaced the value', () => {
    const updated = write([2, 3], ['a', 'two'], applied(3000, one))
    assert.deepEqual(kindsOf(created, updated, get([4, 5], 'a', one)), ['not-linearizable'])
  })

  test('a stale read by a rejected write is found', () => {
    const updated = write([2, 3], ['a', 'two'], applied(3000, one))
    const late = write([4, 5], ['a', 'three'], refused(one))
    assert.deepEqual(kindsOf(created, updated, late), ['not-linearizable'])
  })

  test('two reads that see a write come and go are found', () => {
    const updated = write([2, 20], ['a', 'two'], applied(3000, one))
    const found = kindsOf(
      created,
      updated,
      get([4, 5], 'a', seen('two', 3000)),
      get([6, 7], 'a', one),
    )
    assert.deepEqual(found, ['not-linearizable'])
  })

  test('a write applied twice is found', () => {
    const gone = write([2, 3], ['a', undefined], applied(3000, one))
    const found = kindsOf(created, gone, get([4, 5], 'a', seen('one', 4000)))
    assert.ok(found.includes('applied-twice'), found.join())
  })

  test('a write with an unknown result that was applied twice is found', () => {
    const found = kindsOf(
      write([0, 1], ['a', 'one'], unknown(undefined)),
      get([2, 3], 'a', seen('one', 2000)),
      get([4, 5], 'a', seen('one', 3000)),
    )
    assert.ok(found.includes('applied-twice'), found.join())
  })

  test('a key that came back after its delete was acknowledged is found', () => {
    const gone = write([2, 3], ['a', undefined], applied(3000, one))
    assert.deepEqual(kindsOf(created, gone, get([4, 5], 'a', one)), ['not-linearizable'])
  })

  test('a key that came back after a read had not found it is found', () => {
    const gone = write([2, 3], ['a', undefined], unknown(one))
    const found = kindsOf(created, gone, get([4, 5], 'a', undefined), get([6, 7], 'a', one))
    assert.deepEqual(found, ['not-linearizable'])
  })

  test('a key that is missing without a delete is found', () => {
    assert.deepEqual(kindsOf(created, get([2, 3], 'a', undefined)), ['not-linearizable'])
  })

  test('a write that was reported as rejected or failed, and was applied, is found', () => {
    for (const outcome of [refused(one), failed]) {
      const liar = write([2, 3], ['a', 'two'], outcome)
      const found = kindsOf(created, liar, get([4, 5], 'a', seen('two', 3000)))
      assert.ok(found.includes('applied-though-refused'), found.join())
    }
  })

  test('a create that was rejected because of its own value is found', () => {
    const found = kindsOf(write([0, 1], ['a', 'one'], refused(one)))
    assert.ok(found.includes('applied-though-refused'), found.join())
  })

  test('a read of a future value is found', () => {
    const found = kindsOf(get([-3, -2], 'a', one), created)
    assert.ok(found.includes('from-the-future'), found.join())
  })

  test('a value that was never written, or to another key, is found', () => {
    assert.ok(kindsOf(get([0, 1], 'a', one)).includes('phantom'))
    assert.ok(kindsOf(created, get([2, 3], 'b', one)).includes('phantom'))
  })

  test('an acknowledged write that is missing under the next one is found', () => {
    const next = write([2, 3], ['a', 'two'], applied(3000, undefined))
    assert.deepEqual(kindsOf(created, next), ['not-linearizable'])
  })

  test('versions that go back in time are found, also between keys', () => {
    const other = write([2, 3], ['b', 'two'], applied(1000, undefined))
    assert.deepEqual(kindsOf(created, other), ['versions-go-back'])
    const afterRead = write([4, 5], ['b', 'two'], applied(1500, undefined))
    assert.deepEqual(kindsOf(created, get([2, 3], 'a', one), afterRead), ['versions-go-back'])
  })

  test('two changes with one version are found', () => {
    const other = write([0, 1], ['b', 'two'], applied(2000, undefined))
    assert.deepEqual(kindsOf(created, other), ['version-shared'])
  })

  test('a list that mixes two versions is found', () => {
    const both = [
      created,
      write([2, 20], ['a', 'two'], applied(3000, one)),
      write([2, 20], ['b', 'three'], applied(4000, undefined)),
    ]
    const mixed = list([3, 19], 4999, { a: one, b: seen('three', 4000) })
    assert.deepEqual(kindsOf(...both, mixed), ['list-not-a-cut'])
    const cut = list([3, 19], 3999, { a: seen('two', 3000) })
    assert.deepEqual(kindsOf(...both, cut), [])
  })

  test('a list with a change later than its own version is found', () => {
    assert.ok(kindsOf(created, list([2, 3], 1999, { a: one })).includes('list-not-a-cut'))
  })

  test('a list that lacks a change acknowledged before its call is found', () => {
    assert.deepEqual(kindsOf(created, list([2, 3], 2999, {})), ['list-not-a-cut'])
    assert.ok(kindsOf(created, list([2, 3], 1999, {})).includes('versions-go-back'))
  })

  test('two concurrent lists that disagree about a delete are found', () => {
    const gone = write([2, 3], ['a', undefined], unknown(one))
    const earlier = list([10, 20], 5999, {})
    const later = list([10, 20], 6999, { a: one })
    assert.deepEqual(kindsOf(created, gone, earlier, later), ['list-not-a-cut'])
  })
})

describe('random histories', () => {
  test('a history of a correct store is accepted, whatever the seed', () => {
    for (let seed = 1; seed <= 300; seed++) {
      const random = new Random(seed)
      const options = { operations: 300, keys: 1 + random.below(8), workers: 2 + random.below(14) }
      const violations = checkHistory(simulateHistory(random, options))
      assert.deepEqual(violations, [], `seed ${seed}`)
    }
  })

  test('a read or a list that is moved to a time when it was not true is found', () => {
    let planted = 0
    for (let seed = 1; seed <= 300; seed++) {
      const random = new Random(seed)
      const history = simulateHistory(random, { operations: 300, keys: 3, workers: 4 })
      const spoilt = spoil(history, random)
      if (spoilt === undefined) continue
      planted++
      assert.notDeepEqual(checkHistory(spoilt), [], `seed ${seed}`)
    }
    assert.ok(planted > 200, `only ${planted} histories could be changed`)
  })

  test('20,000 operations on 50 keys are checked in seconds', () => {
    const options = { operations: 20_000, keys: 50, workers: 24 }
    const history = simulateHistory(new Random(7), options)
    const startedAt = performance.now()
    assert.deepEqual(checkHistory(history), [])
    const tookMs = performance.now() - startedAt
    assert.ok(tookMs < 10_000, `${tookMs} ms`)
  })
})

/** Makes a get return a value at a time when it was already replaced, or not written yet. */
function spoil(history: readonly Operation[], random: Random): readonly Operation[] | undefined {
  const candidates = history.flatMap((operation) => {
    if (operation.type !== 'write' || operation.outcome.result !== 'applied') return []
    const { key, returnedAt, outcome } = operation
    const stale = history.findIndex(
      (read) => read.type === 'get' && read.key === key && read.calledAt > returnedAt,
    )
    return outcome.base === undefined || stale < 0 ? [] : [{ stale, base: outcome.base }]
  })
  const chosen = candidates[random.below(candidates.length)]
  if (chosen === undefined) return undefined
  return history.map((operation, index) =>
    index === chosen.stale && operation.type === 'get'
      ? { ...operation, seen: chosen.base }
      : operation,
  )
}
