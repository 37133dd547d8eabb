import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StorageError } from '../../../src/storage/errors.ts'
import type { Change } from '../../simulation/etcd/contract.ts'
import { recoveryMs } from '../../worlds/checker/calm.ts'
import { failureOf } from '../../worlds/checker/failures.ts'
import { stateVersion } from '../../worlds/checker/stored-text.ts'
import { FakeWorld } from './invariants-world.fixture.ts'

function control(name: string, value: string, lease = 0n): Change {
  const key = Buffer.from(`/tidings/control/${name}`)
  return { type: 'put', key, value: Buffer.from(value), version: 1, createRevision: 1, lease }
}

/** Violations, except for the comparison of all events, which the fake replicas do not answer. */
function calmFor(world: FakeWorld, ms: number): void {
  world.calmSince = world.now()
  world.pass(ms)
}

function brokenIn(world: FakeWorld): ReadonlySet<string> {
  return new Set(world.broken.filter((name) => !unanswered.has(name)))
}

const unanswered = new Set([
  'replicas converge',
  'lists are exactly one state',
  'memory follows etcd',
])

test('finds an event that still exists long after it was due in a calm world', () => {
  const world = new FakeWorld()
  world.created('a/one')
  const ageMsMax = world.checks.retention.ageMsMax(world.limits.eventTtlMs)
  world.checks.onCompact(world.revision, world.now() + 100_000)
  calmFor(world, recoveryMs + ageMsMax - 1_000)
  assert.equal(brokenIn(world).has('due events expire'), false)
  world.pass(11_000)
  assert.equal(brokenIn(world).has('due events expire'), true)
})

test('accepts an event that is overdue while there are faults', () => {
  const world = new FakeWorld()
  world.created('a/one')
  world.pass(1_000_000)
  assert.deepEqual(world.violations, [])
})

test('accepts the work of a leader without one only if the write requires that nobody leads', () => {
  const announce = (number: number) => {
    const world = new FakeWorld()
    const compare = { result: 0, target: 2, key: '/tidings/control/sweeper', end: undefined }
    const compares = [{ ...compare, field: 6, number, lease: 0n, value: Buffer.alloc(0) }]
    const changes = [control('compaction', '{"replica":"r","compactedRevision":1}')]
    const command = { kind: 'txn' as const, compares, success: [], failure: [] }
    world.checks.onCommit({ revision: 2, at: world.now(), changes, command })
    return world.broken
  }
  assert.deepEqual(announce(0), [])
  assert.deepEqual(announce(1), ['only the leader works'])
})

test('finds a compaction of younger history than the interval', () => {
  const world = new FakeWorld()
  world.created('a/one')
  const old = world.revision
  world.pass(world.limits.compactionIntervalMs)
  world.created('a/two')
  world.checks.onCompact(old, world.now())
  assert.deepEqual(world.violations, [])
  world.pass(10_000)
  world.checks.onCompact(world.revision, world.now())
  assert.deepEqual(world.broken, ['history is kept for the compaction interval'])
})

test('finds a calm world without compactions', () => {
  const world = new FakeWorld()
  const one = world.created('a/one')
  world.deleted('a/one', one)
  world.stats.version = stateVersion(world.revision)
  calmFor(world, world.checks.calmNeededMs + 2 * world.limits.compactionIntervalMs)
  assert.deepEqual([...brokenIn(world)], ['history is compacted'])
})

test('finds a leader that replaces another one, or works without leading,', () => {
  const world = new FakeWorld()
  world.commitRaw(2, [control('sweeper', 'host/1 settings', 7n)])
  world.commitRaw(3, [control('ages', '{"replica":"host/1","notes":[]}')])
  world.commitRaw(4, [{ ...control('sweeper', ''), type: 'delete' }])
  world.commitRaw(5, [control('sweeper', 'host/2 settings', 8n)])
  assert.deepEqual(world.violations, [])
  world.commitRaw(6, [control('ages', '{"replica":"host/1","notes":[]}')])
  assert.deepEqual(world.broken, ['only the leader works'])
  world.commitRaw(7, [control('sweeper', 'host/3 settings', 9n)])
  assert.equal(world.broken[1], 'one leader at a time')
})

test('finds a refusal in a calm world, and accepts one during faults and recovery', () => {
  const world = new FakeWorld()
  const unavailable = failureOf(new StorageError({ kind: 'unavailable', message: 'down' }))
  const get = () => {
    const operation = world.checks.reads.begin(world.checks.view(0), { kind: 'get' })
    world.checks.reads.failed(operation, unavailable, undefined)
    world.checks.settled(operation, unavailable)
  }
  get()
  calmFor(world, recoveryMs - 1)
  get()
  assert.equal(brokenIn(world).size, 0)
  world.pass(10)
  get()
  assert.deepEqual([...brokenIn(world)], ['a calm world serves everything'])
})

test('finds a slow call in a calm world', () => {
  const world = new FakeWorld()
  calmFor(world, recoveryMs)
  const operation = world.checks.reads.begin(world.checks.view(0), { kind: 'get' })
  world.pass(3_000)
  world.checks.settled(operation, undefined)
  assert.ok(brokenIn(world).has('a calm world is fast'))
})

test('finds a call that never ends, by the time of its process', () => {
  const world = new FakeWorld()
  world.checks.writes.begin(world.checks.view(0), 'create', 'a/one')
  world.pass(45_000)
  assert.deepEqual(world.violations, [])
  world.pass(4_000)
  assert.equal(world.broken[0], 'every call ends')
})

test('finds a cancelled read that does not end', () => {
  const world = new FakeWorld()
  world.pass(1_500)
  world.checks.reads.begin(world.checks.view(0), { kind: 'list' }).cancel()
  world.pass(25_000)
  assert.equal(world.broken[0], 'every call ends')
})

test('finds figures of a replica beyond their bounds', () => {
  const figures = [
    (world: FakeWorld) => (world.stats.historyChanges = 101),
    (world: FakeWorld) => (world.stats.statesKept = 400),
    (world: FakeWorld) => (world.stats.watchersWaiting = 3),
    (world: FakeWorld) => (world.waiting.operations = 600),
    (world: FakeWorld) => (world.waiting.bytes = 10_000),
  ]
  for (const set of figures) {
    const world = new FakeWorld()
    world.pass(3_000)
    assert.deepEqual(world.violations, [])
    set(world)
    world.pass(2_000)
    assert.equal(world.broken[0], 'bounds')
  }
})

test('finds memory that goes back, and a needless reload', () => {
  const world = new FakeWorld()
  world.stats.version = stateVersion(50)
  world.pass(3_000)
  world.stats.version = stateVersion(49)
  world.pass(2_000)
  assert.equal(world.broken[0], 'memory never goes back')
  const calm = new FakeWorld()
  calmFor(calm, recoveryMs)
  calm.stats.initializations = 2
  calm.pass(2_000)
  assert.ok(brokenIn(calm).has('a calm world needs no reload'))
})

test('finds a replica whose events differ from those of etcd', () => {
  const world = new FakeWorld()
  world.created('a/one')
  world.stats.version = stateVersion(world.revision)
  calmFor(world, recoveryMs + 5_000)
  assert.ok(world.broken.includes('lists are exactly one state'))
})

test('finds a replica that answers no comparison', () => {
  const world = new FakeWorld()
  for (const replica of world.replicas) {
    Object.assign(replica.parts?.storage ?? {}, { list: () => new Promise(() => {}) })
  }
  calmFor(world, recoveryMs + 60_000)
  assert.ok(world.broken.includes('replicas converge'))
})

test('accepts an empty world', () => {
  const world = new FakeWorld()
  world.stats.version = stateVersion(world.revision)
  calmFor(world, recoveryMs + 5_000)
  world.checks.atEnd()
  world.pass(1_000)
  world.checks.hasEnded()
  assert.deepEqual(world.violations, [])
})
