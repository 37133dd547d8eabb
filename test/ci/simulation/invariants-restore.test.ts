import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StorageError } from '../../../src/storage/errors.ts'
import type { Version } from '../../../src/storage/resource-version.ts'
import type { WatchBatch, WatchItem } from '../../../src/storage/storage.ts'
import { failureOf } from '../../worlds/checker/failures.ts'
import { stateVersion, versionOf } from '../../worlds/checker/stored-text.ts'
import { FakeWorld, stored } from './invariants-world.fixture.ts'

/** Two histories: `a/kept` is in both, `a/lost` in the first, `a/new` in the second. */
function restored() {
  const world = new FakeWorld()
  const kept = world.created('a/kept')
  const snapshot = new Map(world.etcd)
  const keptRevision = world.revision
  const lost = world.created('a/lost')
  const atRestore = world.checks.reads.begin(world.checks.view(0), { kind: 'get' })
  const watch = world.checks.beginWatch(world.checks.view(0), {
    namespace: undefined,
    from: stateVersion(keptRevision),
    epoch: 0,
    initializations: 1,
    memoryRevision: 1_000_000,
  })
  const restore = () => {
    world.restore(snapshot, keptRevision)
    const fresh = world.created('a/new')
    return { id: fresh.id, version: fresh.version }
  }
  const begin = (notOlderThan?: number) =>
    world.checks.reads.begin(world.checks.view(0), { kind: 'get', notOlderThan })
  return { world, kept, lost, keptRevision, restore, begin, atRestore, watch }
}

function put(path: string, { id, version }: { id: number; version: number }): WatchItem {
  return { type: 'put', stored: stored(path, id, version), previous: undefined }
}

function batch(version: number, ...items: readonly WatchItem[]): WatchBatch {
  return { items, version: stateVersion(Math.floor(version / 1000)) as Version }
}

test('distinguishes changes of the same version before and after a restore', () => {
  const { world, kept, lost, restore, begin } = restored()
  const fresh = restore()
  assert.equal(fresh.version, lost.version)
  world.checks.reads.saw(begin(), 'a/kept', stored('a/kept', kept.id, kept.version))
  world.checks.reads.saw(begin(), 'a/new', stored('a/new', fresh.id, fresh.version))
  world.checks.reads.saw(begin(), 'a/lost', undefined)
  world.checks.compareState()
  assert.deepEqual(world.violations, [])
})

test('finds a consistent read after a restore that shows the lost history', () => {
  const { world, lost, restore, begin } = restored()
  restore()
  world.checks.reads.saw(begin(), 'a/lost', stored('a/lost', lost.id, lost.version))
  assert.deepEqual(world.broken, ['consistent reads are linearizable'])
})

test('accepts either history in a read that was under way', () => {
  const { world, lost, restore, atRestore } = restored()
  const other = world.checks.reads.begin(world.checks.view(0), { kind: 'get' })
  const fresh = restore()
  world.checks.reads.saw(atRestore, 'a/lost', stored('a/lost', lost.id, lost.version))
  world.checks.reads.saw(other, 'a/new', stored('a/new', fresh.id, fresh.version))
  assert.deepEqual(world.violations, [])
})

test('accepts the lost history in the memory of an old process, and finds it in that of a new one', () => {
  const { world, lost, restore, begin } = restored()
  restore()
  const old = stored('a/lost', lost.id, lost.version)
  world.checks.reads.saw(begin(0), 'a/lost', old)
  assert.deepEqual(world.violations, [])
  world.endReplica(0)
  world.checks.reads.saw(begin(0), 'a/lost', old)
  assert.deepEqual(world.broken, ['reads are as new as asked for'])
})

test('finds a write after a restore that is acknowledged but not in the new history', () => {
  const { world, restore } = restored()
  restore()
  const { writes } = world.checks
  const operation = writes.begin(world.checks.view(0), 'create', 'a/other')
  writes.acknowledged(operation, stored('a/other', operation.id, versionOf(world.revision + 1, 0)))
  assert.deepEqual(world.broken, ['acknowledged writes are committed'])
})

test('finds an update that is decided on a lost state and replaces another one', () => {
  const { world, lost, restore } = restored()
  const { writes } = world.checks
  const operation = writes.begin(world.checks.view(0), 'update', 'a/new')
  operation.decidesOn(stored('a/lost', lost.id, lost.version))
  restore()
  world.commit(['a/new', operation.id])
  assert.deepEqual(world.broken, ['no lost updates'])
})

test('accepts a watch that continues in one history, and finds one in both', () => {
  {
    const { world, lost, restore, watch } = restored()
    const fresh = restore()
    watch.saw(batch(fresh.version, put('a/new', fresh)))
    assert.deepEqual(world.violations, [])
    watch.saw(batch(lost.version, put('a/lost', lost)))
    assert.equal(world.violations.length, 1)
  }
  {
    const { world, lost, restore, watch } = restored()
    watch.saw(batch(lost.version, put('a/lost', lost)))
    restore()
    const next = world.created('a/next')
    assert.deepEqual(world.violations, [])
    watch.saw(batch(next.version, put('a/next', next)))
    assert.deepEqual(world.broken, ['watches deliver exactly the changes, in order'])
  }
})

test('accepts that a watch of a lost history ends as compacted, and finds one that reports new versions', () => {
  const { world, lost, restore, watch } = restored()
  watch.saw(batch(lost.version, put('a/lost', lost)))
  restore()
  world.created('a/next')
  world.created('a/later')
  watch.failed(failureOf(new StorageError({ kind: 'compacted', message: 'restored' })), 1, false)
  assert.deepEqual(world.violations, [])
  watch.saw(batch(world.revision * 1000))
  assert.deepEqual(world.broken, ['watch versions are true'])
})

test('forgets a lost history when no process of that time is left', () => {
  const { world, restore, atRestore, watch } = restored()
  restore()
  atRestore.close()
  world.checks.endWatch(watch)
  world.pass(2_000)
  assert.equal(world.checks.truth.past.length, 1)
  world.endReplica(0)
  world.endReplica(1)
  world.pass(2_000)
  assert.equal(world.checks.truth.past.length, 0)
  assert.deepEqual(world.violations, [])
})

test('accepts a restore that a watch ahead of its replica cannot notice', () => {
  const { world, keptRevision, restore } = restored()
  const from = stateVersion(keptRevision + 1)
  const options = { namespace: undefined, from, epoch: 0, initializations: 1 }
  const begin = (memoryRevision: number) =>
    world.checks.beginWatch(world.checks.view(0), { ...options, memoryRevision })
  const [ahead, known] = [begin(keptRevision), begin(keptRevision + 1)]
  restore()
  const next = world.created('a/next')
  ahead.saw(batch(next.version, put('a/next', next)))
  assert.deepEqual(world.violations, [])
  known.saw(batch(next.version, put('a/next', next)))
  assert.equal(world.violations.length, 1)
})
