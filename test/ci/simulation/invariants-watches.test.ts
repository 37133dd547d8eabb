import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StorageError } from '../../../src/storage/errors.ts'
import type { Version } from '../../../src/storage/resource-version.ts'
import type { StoredEvent, WatchBatch, WatchItem } from '../../../src/storage/storage.ts'
import { failureOf } from '../../worlds/checker/failures.ts'
import { stateVersion, versionOf } from '../../worlds/checker/stored-text.ts'
import type { WatchCheck } from '../../worlds/checker/watches.ts'
import { FakeWorld, stored } from './invariants-world.fixture.ts'

const compacted = failureOf(new StorageError({ kind: 'compacted', message: 'compacted' }))

function watch(world: FakeWorld, from: number, namespace?: string): WatchCheck {
  return world.checks.beginWatch(world.checks.view(0), {
    namespace,
    from,
    epoch: 0,
    initializations: 1,
    memoryRevision: 1_000_000,
  })
}

function batch(revision: number, ...items: readonly WatchItem[]): WatchBatch {
  return { items, version: stateVersion(revision) as Version }
}

function put(event: StoredEvent, previous?: StoredEvent): WatchItem {
  return { type: 'put', stored: event, previous }
}

/** A revision that creates `a/one` and `b/one`, one that changes and one that deletes `a/one`. */
function changes() {
  const world = new FakeWorld()
  const { writes } = world.checks
  const start = stateVersion(world.revision)
  const view = world.checks.view(0)
  const [a, b] = [writes.begin(view, 'create', 'a/one'), writes.begin(view, 'create', 'b/one')]
  const created = world.commit(['a/one', a.id], ['b/one', b.id])
  const first = stored('a/one', a.id, versionOf(created, 0))
  const other = stored('b/one', b.id, versionOf(created, 1))
  const update = writes.begin(view, 'update', 'a/one')
  const updated = world.commit(['a/one', update.id])
  const second = stored('a/one', update.id, versionOf(updated, 0))
  const remove = writes.begin(view, 'delete', 'a/one')
  remove.decidesOn(second)
  const deleted = world.commit(['a/one'])
  const last = { ...second, version: versionOf(deleted, 0) as Version }
  for (const operation of [a, b, update, remove]) writes.failed(operation, undefined)
  const items = [
    put(first),
    put(other),
    put(second, first),
    { type: 'delete', stored: last } as const,
  ] as const
  return { world, start, created, updated, deleted, items }
}

test('accepts a watch of exactly the changes, in any batches of whole revisions,', () => {
  const { world, start, created, updated, deleted, items } = changes()
  const [first, other, second, last] = items
  watch(world, start).saw(batch(deleted, ...items))
  const stepwise = watch(world, start)
  stepwise.saw(batch(created, first, other))
  stepwise.saw(batch(updated, second))
  stepwise.saw(batch(updated))
  stepwise.saw(batch(deleted, last))
  watch(world, start, 'b').saw(batch(deleted, other))
  watch(world, start, 'c').saw(batch(deleted))
  watch(world, first.stored.version).saw(batch(deleted, other, second, last))
  assert.deepEqual(world.violations, [])
})

test('finds a missing, repeated, disordered or foreign change', () => {
  const { start, created, deleted } = changes()
  const wrong = (
    pick: (items: ReturnType<typeof changes>['items']) => readonly WatchItem[],
    namespace?: string,
  ) => {
    const { world, items } = changes()
    watch(world, start, namespace).saw(batch(deleted, ...pick(items)))
    return world.broken
  }
  const guarantee = 'watches deliver exactly the changes, in order'
  assert.deepEqual(
    wrong(([, ...rest]) => rest),
    [guarantee],
  )
  assert.deepEqual(
    wrong(([a, b, c]) => [a, b, c]),
    [guarantee],
  )
  assert.deepEqual(
    wrong(([a, b, c, d]) => [a, b, b, c, d]),
    [guarantee],
  )
  assert.deepEqual(
    wrong(([a, b, c, d]) => [b, a, c, d]),
    [guarantee],
  )
  assert.deepEqual(
    wrong(([a, , c, d]) => [a, c, d], 'b'),
    [guarantee],
  )
  assert.ok(created < deleted)
})

test('finds a bookmark before the changes that it claims to include', () => {
  const { world, start, updated } = changes()
  watch(world, start).saw(batch(updated))
  assert.deepEqual(world.broken, ['watches deliver exactly the changes, in order'])
})

test('finds a version that goes back, or that does not exist yet,', () => {
  const { world, start, created, deleted, items } = changes()
  const check = watch(world, start)
  check.saw(batch(deleted, ...items))
  check.saw(batch(created))
  assert.deepEqual(world.broken, ['watch versions never go back'])
  check.saw(batch(deleted + 1))
  assert.equal(world.broken[1], 'watch versions are true')
})

test('finds a batch that ends inside a transaction', () => {
  const { world, start, items } = changes()
  const [first] = items
  watch(world, start).saw({ items: [first], version: first.stored.version })
  assert.ok(world.broken.includes('watches deliver whole transactions'))
})

test('finds a wrong previous state, type or last state', () => {
  const { start, updated, deleted, created } = changes()
  const guarantee = 'watches deliver true states'
  {
    const { world, items } = changes()
    watch(world, start).saw(batch(updated, items[0], items[1], put(items[2].stored)))
    assert.deepEqual(world.broken, [guarantee])
  }
  {
    const { world, items } = changes()
    watch(world, start).saw(batch(created, put(items[0].stored, items[1].stored), items[1]))
    assert.deepEqual(world.broken, [guarantee])
  }
  {
    const { world, items } = changes()
    const wrong = { ...items[3].stored, body: items[0].stored.body }
    const last = { type: 'delete', stored: wrong } as const
    watch(world, start).saw(batch(deleted, items[0], items[1], items[2], last))
    assert.deepEqual(world.broken, [guarantee])
  }
  {
    const { world, items } = changes()
    const gone = { type: 'delete', stored: items[0].stored } as const
    watch(world, start).saw(batch(created, gone, items[1]))
    assert.deepEqual(world.broken, [guarantee])
  }
})

test('finds a watch that ends as compacted without a compaction or a reload', () => {
  const { world, start } = changes()
  watch(world, start).failed(compacted, 2, false)
  assert.deepEqual(world.violations, [])
  watch(world, start).failed(compacted, 1, false)
  assert.deepEqual(world.broken, ['watches end as compacted only when history is lost'])
  world.pass(100_000)
  world.checks.onCompact(world.revision, world.now())
  watch(world, start).failed(compacted, 1, false)
  assert.equal(world.violations.length, 1)
})

test('finds a watch that ends by itself, or fails in a calm world', () => {
  const unavailable = failureOf(new StorageError({ kind: 'unavailable', message: 'gone' }))
  const { world, start } = changes()
  watch(world, start).failed(unavailable, 1, false)
  assert.deepEqual(world.violations, [])
  watch(world, start).failed(unavailable, 1, true)
  assert.deepEqual(world.broken, ['watches stay open'])
  const other = changes()
  watch(other.world, other.start).ended()
  assert.deepEqual(other.world.broken, ['watches stay open'])
})

test('accepts a watch from a future version that gets what follows that version', () => {
  const world = new FakeWorld()
  const check = watch(world, stateVersion(world.revision + 1))
  world.created('a/one')
  const { id, version } = world.created('a/two')
  check.saw(batch(world.revision, put(stored('a/two', id, version))))
  assert.deepEqual(world.violations, [])
})

test('finds a watch that stops delivering in a calm world, and accepts a stalled client', () => {
  const world = new FakeWorld()
  world.calmSince = 0
  world.pass(60_000)
  const check = watch(world, stateVersion(world.revision))
  const stalled = watch(world, stateVersion(world.revision))
  stalled.isPulled = false
  world.created('a/one')
  world.pass(9_000)
  assert.deepEqual(world.violations, [])
  world.pass(3_000)
  assert.equal(world.broken[0], 'watches deliver soon')
  assert.ok(check.isPulled)
})

test('finds a request for progress without a reply in a calm world', () => {
  const world = new FakeWorld()
  world.calmSince = 0
  const check = watch(world, stateVersion(world.revision), 'quiet')
  world.pass(60_000)
  world.created('a/one')
  world.pass(1)
  check.progressWantedSince = world.now()
  world.pass(4_000)
  const answered = watch(world, stateVersion(world.revision), 'quiet')
  answered.progressWantedSince = world.now()
  answered.saw(batch(world.revision))
  assert.deepEqual(world.violations, [])
  world.pass(4_000)
  assert.equal(world.broken[0], 'watches report progress')
})
