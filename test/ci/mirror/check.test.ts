import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check } from '../../nightly/mirror-chaos/check.ts'
import {
  type OriginChange,
  type RunHistory,
  type TargetChange,
  type ViolationKind,
  violationKinds,
} from '../../nightly/mirror-chaos/history.ts'

/** `a` is patched and stays; `b` is deleted and created again; `c` is deleted. */
const origin: readonly OriginChange[] = [
  put('a', 'a1', 10),
  put('b', 'b1', 20),
  put('a', 'a1', 30),
  remove('b', 'b1', 40),
  put('c', 'c1', 50),
  put('b', 'b2', 60),
  remove('c', 'c1', 70),
]
const mirrored = origin.filter(({ type }) => type === 'put').map(stored)

test('accepts a history in which everything was mirrored', () => {
  assert.deepEqual(kinds({}), [])
})

test('accepts that a mirror skips states that were replaced before it listed them', () => {
  const skipped = mirrored.filter(({ version }) => version !== 10 && version !== 20)
  assert.deepEqual(kinds({ target: skipped }), [])
})

test('accepts that an observer receives its last state of a name again', () => {
  const twice = mirrored.flatMap((change) => [change, change])
  assert.deepEqual(kinds({ observers: [twice] }), [])
})

const wrong: readonly (readonly [string, ViolationKind, Partial<RunHistory>])[] = [
  ['a live event is not stored', 'missing', { target: without(30, 10) }],
  ['the last state of a deleted event is not stored', 'missing', { target: without(50) }],
  ['the last state of a live event is not stored', 'outdated', { target: without(30) }],
  ['the recreated event is not stored', 'outdated', { target: without(60) }],
  ['an older state replaces a newer one', 'went back', { target: [...mirrored, at(10)] }],
  [
    'an older state replaces a newer one for a moment',
    'went back',
    { target: [...mirrored.slice(0, 3), at(10), { ...at(30) }, ...mirrored.slice(3)] },
  ],
  ['an event replaces its successor', 'predecessor', { target: [...mirrored, at(20)] }],
  ['a state is stored twice', 'duplicate', { target: [...mirrored, at(60)] }],
  ['a list has a name twice', 'duplicate', { lists: [[at(30), at(60), at(50), at(50)]] }],
  [
    'the origin never had a state',
    'invented',
    { target: [...mirrored, stored(put('d', 'd1', 80))] },
  ],
  [
    'the content is not that of the origin',
    'invented',
    { target: mirrored.map((change) => ({ ...change, content: 'changed' })) },
  ],
  [
    'an event without a version of the origin',
    'invented',
    { target: [...mirrored, unversioned()] },
  ],
  ['an event is deleted', 'deleted', { target: [...mirrored, stored(remove('c', 'c1', 70))] }],
  [
    'a live event is deleted although deletes are mirrored',
    'deleted',
    { deletes: 'explicit', target: [...mirrored, stored(remove('a', 'a1', 30))] },
  ],
  ['a delete is not mirrored', 'not deleted', { deletes: 'explicit' }],
  ['the epoch is raised', 'epoch', { target: mirrored.map((change) => ({ ...change, epoch: 1 })) }],
  ['a list lacks an event', 'served', { lists: [[at(30), at(60)]] }],
  ['a list is outdated', 'served', { lists: [[at(10), at(60), at(50)]] }],
  ['an observer misses the last state', 'served', { observers: [without(60)] }],
  ['an observer sees an older state', 'went back', { observers: [[...mirrored, at(10), at(30)]] }],
  ['an observer sees a predecessor', 'predecessor', { observers: [[...mirrored, at(20), at(60)]] }],
]
for (const [what, kind, history] of wrong) {
  test(`finds that ${what}`, () => assert.ok(kinds(history).includes(kind)))
}

test('covers every violation except a stalled mirror with a wrong history', () => {
  const tested = new Set([...wrong.map(([, kind]) => kind), 'stalled'])
  assert.deepEqual(
    violationKinds.filter((kind) => !tested.has(kind)),
    [],
  )
})

test('accepts that a state that was deleted within a gap is missing', () => {
  const target = without(50)
  assert.deepEqual(kinds({ target, gaps: [{ after: 40, upTo: 70 }] }), [])
  // The mirror had stored everything up to the state, or it listed before the delete.
  assert.deepEqual(kinds({ target, gaps: [{ after: 50, upTo: 70 }] }), ['missing'])
  assert.deepEqual(kinds({ target, gaps: [{ after: 40, upTo: 69 }] }), ['missing'])
})

test('finds a live event that is missing after a gap', () => {
  const gaps = [{ after: 0, upTo: 100 }]
  assert.deepEqual(kinds({ target: without(10, 30), gaps }), ['missing'])
  assert.deepEqual(kinds({ target: without(60), gaps }), ['outdated'])
})

test('finds a state that is older than those before a gap', () => {
  const changes = [
    put('e', 'e1', 10),
    put('e', 'e1', 20),
    put('e', 'e1', 30),
    remove('e', 'e1', 40),
  ]
  const history = { origin: changes, gaps: [{ after: 20, upTo: 50 }] }
  const until = (version: number) =>
    changes.filter((change) => change.version <= version).map(stored)
  assert.deepEqual(kinds({ ...history, target: until(20) }), [])
  assert.deepEqual(kinds({ ...history, target: until(10) }), ['outdated'])
})

/** The kinds of violations, each once; lists and observers show what is stored unless given. */
function kinds(given: Partial<RunHistory>): readonly ViolationKind[] {
  const target = given.target ?? mirrored
  const final = new Map<string, TargetChange>()
  for (const change of target) {
    if (change.type === 'put') final.set(change.name, change)
    else final.delete(change.name)
  }
  const found = check({
    origin,
    target,
    observers: [],
    lists: [[...final.values()]],
    gaps: [],
    deletes: 'never',
    ...given,
  })
  return [...new Set(found.map(({ kind }) => kind))]
}

function put(name: string, uid: string, version: number): OriginChange {
  return { type: 'put', name, uid, version, content: `${name} at ${version}` }
}

function remove(name: string, uid: string, version: number): OriginChange {
  return { type: 'delete', name, uid, version, content: '' }
}

function stored(change: OriginChange): TargetChange {
  return { ...change, epoch: 0 }
}

function without(...versions: readonly number[]): readonly TargetChange[] {
  return mirrored.filter(({ version }) => !versions.includes(version))
}

function at(version: number): TargetChange {
  const change = mirrored.find((candidate) => candidate.version === version)
  if (change === undefined) throw new Error(`no state has version ${version}`)
  return change
}

function unversioned(): TargetChange {
  return { ...stored(put('d', 'd1', 80)), version: Number.NaN }
}
