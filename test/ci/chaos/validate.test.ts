import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Operation, Violation, WriteOutcome } from '../../nightly/chaos/model/history.ts'
import type { OldRead } from '../../nightly/chaos/traffic/record.ts'
import type { WatchSegment } from '../../nightly/chaos/traffic/watch-log.ts'
import { checkAcknowledged } from '../../nightly/chaos/validate/acknowledged.ts'
import type { Change } from '../../nightly/chaos/validate/etcd-history.ts'
import { checkOldReads } from '../../nightly/chaos/validate/old-reads.ts'
import { checkDelivered, checkWatch, History } from '../../nightly/chaos/validate/watches.ts'

function change(version: number, key: string, value?: string, previous?: string): Change {
  return { version, revision: Math.floor(version / 1000), key, value, previous }
}

/** Two transactions with three changes each, and one with a delete alone. */
const history = new History([
  change(2000, 'x/a', 'a1'),
  change(2001, 'y/b', 'b1'),
  change(2002, 'x/c', 'c1'),
  change(5000, 'x/a', 'a2', 'a1'),
  change(5001, 'y/b', undefined, 'b1'),
  change(5003, 'x/d', 'd1'),
  change(7000, 'x/a', undefined, 'a2'),
])

const kindsOf = (violations: readonly Violation[]): readonly string[] =>
  [...new Set(violations.map(({ kind }) => kind))].sort()

function heardBy(
  segments: readonly (readonly [from: number, ...heard: number[]])[],
  namespace?: string,
): readonly string[] {
  const made = segments.map(([from, ...heard]): WatchSegment => ({ from, replica: 0, heard }))
  return kindsOf(checkWatch({ id: 1, namespace, segments: made }, history))
}

describe('watch validators', () => {
  test('a watch with everything once, in order, in whole transactions, is accepted', () => {
    assert.deepEqual(
      heardBy([[0, 2000, 2001, 2002, -2999, 5000, 5001, 5003, 7000, -7999, -8999]]),
      [],
    )
    assert.deepEqual(heardBy([[0, 2000, 2002, -2999, 5000, 5003, -6999, 7000, -7999]], 'x'), [])
  })

  test('resumable: stops between batches, inside transactions and without changes are accepted', () => {
    const rest = [5003, -6999, 7000, -7999] as const
    assert.deepEqual(
      heardBy([[0, 2000, 2001], [2001], [2001, 2002, -4999, 5000, 5001], [5001, ...rest]]),
      [],
    )
  })

  test('resumable: a watch that begins with the wrong change is found', () => {
    const found = heardBy([
      [0, 2000, 2001],
      [2001, 5000, 5001, 5003, -5999],
    ])
    assert.deepEqual(found, ['watch-reliable', 'watch-resumable'])
  })

  test('ordered: swapped changes are found', () => {
    assert.deepEqual(heardBy([[0, 2001, 2000, 2002, -2999]]), ['watch-ordered', 'watch-resumable'])
  })

  test('unique: a repeated change is found, also after a stop', () => {
    assert.deepEqual(heardBy([[0, 2000, 2000, 2001, 2002, -2999]]), ['watch-unique'])
    const again = heardBy([
      [0, 2000, 2001],
      [2001, 2001, 2002, -2999],
    ])
    assert.deepEqual(again, ['watch-bookmarkable', 'watch-resumable', 'watch-unique'])
  })

  test('reliable: a missing change is found, also one that progress skipped', () => {
    assert.deepEqual(heardBy([[0, 2000, 2002, -2999]]), ['watch-reliable'])
    assert.deepEqual(heardBy([[2999, -4999, -6999]]), ['watch-reliable'])
  })

  test('atomic: a batch that ends inside a transaction is found', () => {
    assert.deepEqual(heardBy([[0, 2000, -2000, 2001, 2002, -2999]]), ['watch-atomic'])
  })

  test('bookmarkable: progress that comes too early, or goes back, is found', () => {
    assert.deepEqual(heardBy([[0, -2999, 2000, 2001, 2002, -3999]]), ['watch-bookmarkable'])
    assert.deepEqual(heardBy([[2999, -3999, -2999]]), ['watch-bookmarkable'])
    assert.deepEqual(heardBy([[2999, -1999]]), ['watch-bookmarkable'])
  })

  test('true: a change that did not happen, or not so, is found', () => {
    const delivered = (version: number, what: Change) =>
      kindsOf(checkDelivered(new Map([[version, what]]), history))
    assert.deepEqual(delivered(5000, change(5000, 'x/a', 'a2', 'a1')), [])
    assert.deepEqual(delivered(5000, change(5000, 'x/a', 'a2', 'a0')), ['watch-true'])
    assert.deepEqual(delivered(5001, change(5001, 'y/b', 'b2', 'b1')), ['watch-true'])
    assert.deepEqual(delivered(6000, change(6000, 'x/a', 'a2', 'a1')), ['watch-true'])
  })
})

function put(key: string, value: string | undefined, outcome: WriteOutcome): Operation {
  return { type: 'write', id: 1, key, value, calledAt: 0, returnedAt: 1, outcome }
}

const a1 = { value: 'a1', version: 2000 }
const a2 = { value: 'a2', version: 5000 }
const complete: readonly Operation[] = [
  put('x/a', 'a1', { result: 'applied', version: 2000, base: undefined }),
  put('y/b', 'b1', { result: 'unknown', base: undefined }),
  put('x/c', 'c1', { result: 'applied', version: 2002, base: undefined }),
  put('x/a', 'a2', { result: 'applied', version: 5000, base: a1 }),
  put('y/b', undefined, { result: 'unknown', base: { value: 'b1', version: 2001 } }),
  put('x/d', 'd1', { result: 'applied', version: 5003, base: undefined }),
  put('x/a', undefined, { result: 'applied', version: 7000, base: a2 }),
  put('x/a', 'a3', { result: 'unknown', base: undefined }),
  put('x/c', 'c2', { result: 'refused', seen: { value: 'c1', version: 2002 } }),
]

describe('acknowledged writes', () => {
  const found = (operations: readonly Operation[]) =>
    kindsOf(checkAcknowledged(operations, history))

  test('acknowledged writes and those with unknown results explain all changes', () => {
    assert.deepEqual(found(complete), [])
  })

  test('an acknowledged write that etcd does not have is found', () => {
    const lost = put('x/c', 'c2', { result: 'applied', version: 6000, base: undefined })
    assert.deepEqual(found([...complete, lost]), ['acknowledged-write-lost'])
  })

  test('a change that was rejected, or never requested, is found', () => {
    const refused = put('x/d', 'd1', { result: 'refused', seen: undefined })
    assert.deepEqual(found(complete.with(5, refused)), ['unasked-change'])
    assert.deepEqual(found(complete.toSpliced(4, 1)), ['unasked-change'])
    assert.deepEqual(found(complete.toSpliced(1, 1)), ['unasked-change'])
  })

  test('a value that was written twice is found', () => {
    const twice = new History([...history.all, change(8000, 'x/d', 'd1', 'd1')])
    assert.deepEqual(kindsOf(checkAcknowledged(complete, twice)), ['applied-twice'])
  })
})

describe('reads of older states', () => {
  const found = (read: OldRead) => kindsOf(checkOldReads([read], [], history))
  const c1 = { value: 'c1', version: 2002 }
  const d1 = { value: 'd1', version: 5003 }
  const b1 = { value: 'b1', version: 2001 }

  test('a get of any state of the key since the version is accepted, and of no other', () => {
    const get = (notOlderThan: number, seen: typeof a1 | undefined): readonly string[] =>
      found({ type: 'get', id: 1, key: 'x/a', notOlderThan, seen })
    assert.deepEqual([get(0, a1), get(2000, a1), get(4000, a2), get(5000, undefined)].flat(), [])
    assert.deepEqual(get(5000, a1), ['untrue-read'])
    assert.deepEqual(get(2000, { value: 'a1', version: 2001 }), ['untrue-read'])
    assert.deepEqual(
      found({ type: 'get', id: 1, key: 'x/c', notOlderThan: 2999, seen: undefined }),
      ['untrue-read'],
    )
  })

  test('a list must be a complete state of its version, no older than requested', () => {
    const at5 = new Map(Object.entries({ 'x/a': a2, 'x/c': c1, 'x/d': d1 }))
    const mixed = new Map(Object.entries({ 'x/a': a2, 'y/b': b1, 'x/c': c1, 'x/d': d1 }))
    const list = (notOlderThan: number, items: typeof at5): readonly string[] =>
      found({ type: 'list', id: 1, notOlderThan, version: 5999, items })
    assert.deepEqual(list(5003, at5), [])
    assert.deepEqual(list(7000, at5), ['untrue-read'])
    assert.deepEqual(list(0, mixed), ['untrue-read'])
    assert.deepEqual(found({ type: 'list-at', id: 1, at: 5001, version: 5999, items: at5 }), [])
    assert.deepEqual(found({ type: 'list-at', id: 1, at: 4001, version: 5999, items: at5 }), [
      'untrue-read',
    ])
  })
})
