/** What clients were told is recorded, and checked against a history of etcd that is read later. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Version } from '../../../src/storage/resource-version.ts'
import type { WatchItem } from '../../../src/storage/storage.ts'
import type { Change, Commit } from '../../worlds/checker/commit.ts'
import { RecordedJournal } from '../../worlds/checker/journal.ts'
import type { Operation } from '../../worlds/checker/operations.ts'
import { stateVersion, versionOf } from '../../worlds/checker/stored-text.ts'
import type { Verb, WriteOperation } from '../../worlds/checker/write-operation.ts'
import { FakeWorld, stored } from '../simulation/invariants-world.fixture.ts'

/** Commits are known to the checks only when the run is replayed. */
class RecordedWorld extends FakeWorld {
  readonly #commits: Commit[] = []
  readonly #journal: RecordedJournal

  constructor(journal: RecordedJournal = new RecordedJournal()) {
    super(undefined, journal)
    this.#journal = journal
  }

  override commitRaw(revision: number, changes: readonly Change[]): void {
    this.revision = revision
    this.#commits.push({ revision, at: 0, changes })
  }

  /** Returns the guarantees that were violated. */
  replay(): readonly string[] {
    const { checks, violations } = this
    this.#journal.replay({
      commits: this.#commits,
      newestRevision: this.revision,
      onCommit: (commit) => checks.onCommit(commit),
      isPossible: (commit) => checks.writes.hasBegun(commit),
      isOver: () => violations.length > 0,
    })
    return this.broken
  }

  begin(verb: Verb, path: string): WriteOperation {
    return this.checks.writes.begin(this.checks.view(0), verb, path)
  }

  get(notOlderThan?: number): Operation {
    return this.checks.reads.begin(this.checks.view(1), { kind: 'get', notOlderThan })
  }

  /** One batch with the changes of one revision. */
  sawBatch(watch: ReturnType<RecordedWorld['watch']>, ...items: readonly WatchItem[]): void {
    const version = items[0]?.stored.version ?? 0
    watch.saw({ items, version: stateVersion(Math.floor(version / 1000)) as Version })
  }

  watch(from: number) {
    const options = { namespace: undefined, from, epoch: 0, initializations: 0, memoryRevision: 1 }
    return this.checks.beginWatch(this.checks.view(1), options)
  }
}

function put(path: string, operation: number, version: number): WatchItem {
  return { type: 'put', stored: stored(path, operation, version), previous: undefined }
}

test('accepts reads of a state that nobody had been told of before', () => {
  const world = new RecordedWorld()
  const event = world.created('a/x')
  const get = world.get()
  const removal = world.begin('delete', 'a/x')
  removal.decidesOn(stored('a/x', event.id, event.version))
  world.commit(['a/x'])
  world.checks.reads.saw(get, 'a/x', undefined)
  world.checks.writes.failed(removal, undefined)
  assert.deepEqual(world.replay(), [])
})

test('finds a read that is older than an acknowledged write', () => {
  const world = new RecordedWorld()
  const event = world.created('a/x')
  const update = world.begin('update', 'a/x')
  update.decidesOn(stored('a/x', event.id, event.version))
  const version = versionOf(world.commit(['a/x', update.id]), 0)
  world.checks.writes.acknowledged(update, stored('a/x', update.id, version))
  const get = world.get()
  world.checks.reads.saw(get, 'a/x', stored('a/x', event.id, event.version))
  assert.deepEqual(world.replay(), ['consistent reads are linearizable'])
})

test('finds an event that is missing although it was never deleted', () => {
  const world = new RecordedWorld()
  world.created('a/x')
  world.checks.reads.saw(world.get(), 'a/x', undefined)
  world.created('a/y')
  assert.deepEqual(world.replay(), ['consistent reads are linearizable'])
})

test('accepts an older state only where one was asked for', () => {
  for (const isOldWanted of [true, false]) {
    const world = new RecordedWorld()
    const event = world.created('a/x')
    const old = stored('a/x', event.id, event.version)
    const update = world.begin('update', 'a/x')
    update.decidesOn(old)
    const version = versionOf(world.commit(['a/x', update.id]), 0)
    world.checks.writes.acknowledged(update, stored('a/x', update.id, version))
    world.checks.reads.saw(world.get(isOldWanted ? event.version : version), 'a/x', old)
    assert.deepEqual(world.replay(), isOldWanted ? [] : ['reads are as new as asked for'])
  }
})

test('finds a write that was refused and applied, whenever it is applied', () => {
  for (const isApplied of [false, true]) {
    const world = new RecordedWorld()
    const create = world.begin('create', 'a/x')
    world.checks.writes.failed(create, { kind: 'unavailable', error: new Error('refused') })
    if (isApplied) world.commit(['a/x', create.id])
    const expected = isApplied ? ['refused writes are never applied'] : []
    assert.deepEqual(world.replay(), expected)
  }
})

test('accepts a write with an unknown outcome once, and finds it applied twice', () => {
  for (const times of [0, 1, 2]) {
    const world = new RecordedWorld()
    const create = world.begin('create', 'a/x')
    world.checks.writes.failed(create, { kind: 'timeout', error: new Error('no response') })
    for (let time = 0; time < times; time++) world.commit(['a/x', create.id])
    assert.equal(world.replay().length, times === 2 ? 1 : 0)
  }
})

test('finds an acknowledged write that etcd does not have', () => {
  const world = new RecordedWorld()
  const create = world.begin('create', 'a/x')
  const version = versionOf(world.revision + 1, 0)
  world.checks.writes.acknowledged(create, stored('a/x', create.id, version))
  assert.deepEqual(world.replay(), ['acknowledged writes are committed'])
})

test('finds a delete that nobody asked for', () => {
  const world = new RecordedWorld()
  world.created('a/x')
  world.commit(['a/x'])
  assert.deepEqual(world.replay(), ['no early expiry, no unexplained delete'])
})

test('accepts that a delete without a reply made the second delete, since it lost the first', () => {
  const timeout = { kind: 'timeout', error: new Error('no response') } as const
  const world = new RecordedWorld()
  const first = world.created('a/x')
  const [early, late] = [world.begin('delete', 'a/x'), world.begin('delete', 'a/x')]
  for (const each of [early, late]) each.decidesOn(stored('a/x', first.id, first.version))
  world.commit(['a/x'])
  world.checks.writes.failed(early, timeout)
  world.checks.reads.saw(world.get(), 'a/x', undefined)
  const update = world.begin('update', 'a/x')
  update.decidesOn(undefined)
  const version = versionOf(world.commit(['a/x', update.id]), 0)
  late.decidesOn(stored('a/x', update.id, version))
  world.commit(['a/x'])
  world.checks.writes.failed(update, timeout)
  world.checks.writes.failed(late, timeout)
  world.checks.reads.saw(world.get(), 'a/x', undefined)
  assert.deepEqual(world.replay(), [])
})

test('finds a change that came twice, out of order, or not at all', () => {
  const orders = [[0, 1], [0, 0], [1, 0], [1]]
  const found = orders.map((order) => {
    const world = new RecordedWorld()
    const events = ['a/x', 'a/y'].map((path) => ({ path, ...world.created(path) }))
    const watch = world.watch(stateVersion(1))
    for (const index of order) {
      const { path = '', id = 0, version = 0 } = events[index] ?? {}
      world.sawBatch(watch, put(path, id, version))
    }
    return world.replay()[0]
  })
  const wrong = 'watches deliver exactly the changes, in order'
  assert.deepEqual(found, [undefined, wrong, wrong, wrong])
})

test('stores what many watchers received once', () => {
  const journal = new RecordedJournal()
  const world = new RecordedWorld(journal)
  const { id, version } = world.created('a/x')
  const batch = (): Parameters<RecordedJournal['retainBatch']>[0] => ({
    items: [put('a/x', id, version)],
    version: stateVersion(2) as Version,
  })
  assert.equal(journal.retainBatch(batch()).items[0], journal.retainBatch(batch()).items[0])
})
