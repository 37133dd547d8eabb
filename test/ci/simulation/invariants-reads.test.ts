import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StorageError } from '../../../src/storage/errors.ts'
import { failureOf } from '../../worlds/checker/failures.ts'
import type { SeenPage } from '../../worlds/checker/lists.ts'
import { stateVersion } from '../../worlds/checker/stored-text.ts'
import { FakeWorld, stored } from './invariants-world.fixture.ts'

const compacted = failureOf(new StorageError({ kind: 'compacted', message: 'compacted' }))
const future = failureOf(new StorageError({ kind: 'future', message: 'future' }))

function begin(world: FakeWorld, notOlderThan?: number) {
  return world.checks.reads.begin(world.checks.view(0), { kind: 'get', notOlderThan })
}

function update(world: FakeWorld, path: string) {
  const operation = world.checks.writes.begin(world.checks.view(1), 'update', path)
  const revision = world.commit([path, operation.id])
  world.checks.writes.failed(operation, undefined)
  return { id: operation.id, version: revision * 1000 }
}

test('accepts a consistent read of any state between its begin and its end', () => {
  const world = new FakeWorld()
  const { checks } = world
  const first = world.created('a/one')
  const reads = [begin(world), begin(world), begin(world)] as const
  const second = update(world, 'a/one')
  const third = update(world, 'a/one')
  for (const [index, { id, version }] of [first, second, third].entries()) {
    checks.reads.saw(reads[index] ?? reads[0], 'a/one', stored('a/one', id, version))
  }
  checks.reads.saw(begin(world), 'a/other', undefined)
  assert.deepEqual(world.violations, [])
})

test('finds a consistent read of a state that was replaced before it began', () => {
  const world = new FakeWorld()
  const first = world.created('a/one')
  update(world, 'a/one')
  world.checks.reads.saw(begin(world), 'a/one', stored('a/one', first.id, first.version))
  assert.deepEqual(world.broken, ['consistent reads are linearizable'])
})

test('finds a read that misses an event, or sees a deleted one,', () => {
  const world = new FakeWorld()
  const first = world.created('a/one')
  world.checks.reads.saw(begin(world), 'a/one', undefined)
  assert.equal(world.violations.length, 1)
  world.deleted('a/one', first)
  world.checks.reads.saw(begin(world), 'a/one', stored('a/one', first.id, first.version))
  assert.equal(world.violations.length, 2)
  world.checks.reads.saw(begin(world), 'a/one', undefined)
  assert.equal(world.violations.length, 2)
})

test('finds a read with the bytes or the write time of another state', () => {
  const world = new FakeWorld()
  const first = world.created('a/one')
  world.checks.reads.saw(begin(world), 'a/one', stored('a/one', first.id + 1, first.version))
  const late = { ...stored('a/one', first.id, first.version), writtenAtMs: 6 }
  world.checks.reads.saw(begin(world), 'a/one', late)
  assert.equal(world.violations.length, 2)
})

test('finds a read of a state that is older than asked for', () => {
  const world = new FakeWorld()
  const first = world.created('a/one')
  const second = update(world, 'a/one')
  const old = stored('a/one', first.id, first.version)
  world.checks.reads.saw(begin(world, 0), 'a/one', old)
  world.checks.reads.saw(begin(world, first.version), 'a/one', old)
  assert.deepEqual(world.violations, [])
  world.checks.reads.saw(begin(world, second.version), 'a/one', old)
  assert.deepEqual(world.broken, ['reads are as new as asked for'])
})

test('finds memory that a read of any state shows to have gone back', () => {
  const world = new FakeWorld()
  const first = world.created('a/one')
  const second = update(world, 'a/one')
  world.stats.version = stateVersion(second.version / 1000)
  world.pass(3_000)
  world.checks.reads.saw(begin(world, 0), 'a/one', stored('a/one', first.id, first.version))
  assert.deepEqual(world.broken, ['reads are as new as asked for'])
})

test('finds a newest version that is not one between begin and end', () => {
  const world = new FakeWorld()
  world.created('a/one')
  const { reads } = world.checks
  reads.sawVersion(begin(world), stateVersion(world.revision))
  assert.deepEqual(world.violations, [])
  reads.sawVersion(begin(world), stateVersion(world.revision - 1))
  reads.sawVersion(begin(world), stateVersion(world.revision + 1))
  reads.sawVersion(begin(world), world.revision * 1000)
  assert.equal(world.violations.length, 3)
})

test('finds an existing version that is refused as future', () => {
  const world = new FakeWorld()
  world.created('a/one')
  const { reads } = world.checks
  reads.failed(begin(world), future, stateVersion(world.revision + 1))
  assert.deepEqual(world.violations, [])
  reads.failed(begin(world), future, stateVersion(world.revision))
  assert.deepEqual(world.broken, ['existing versions are not refused as future'])
})

/** Three events, at one version. */
function listed() {
  const world = new FakeWorld()
  const items = ['a-b/one', 'a/one', 'b/one'].map((path) => {
    const { id, version } = world.created(path)
    return stored(path, id, version)
  })
  const version = stateVersion(world.revision)
  const whole: SeenPage = {
    after: undefined,
    limit: undefined,
    version,
    items,
    isCut: false,
    remaining: undefined,
  }
  const begin = () => world.checks.reads.begin(world.checks.view(0), { kind: 'list' })
  const all = { namespace: undefined }
  return { world, items, whole, begin, all, lists: world.checks.lists }
}

test('accepts a list that is the state at its version', () => {
  const { world, whole, begin, all, lists, items } = listed()
  lists.sawPage(begin(), all, whole)
  lists.sawPage(begin(), { namespace: 'a' }, { ...whole, items: items.slice(1, 2) })
  const filter = { text: 'b', matches: ({ path }: { path: string }) => path === 'b/one' }
  lists.sawPage(begin(), { ...all, filter }, { ...whole, items: items.slice(2) })
  assert.deepEqual(world.violations, [])
})

test('finds a list with a missing, an additional, a misplaced or an old event', () => {
  const { world, whole, begin, all, lists, items } = listed()
  const [first, second, third] = items
  if (first === undefined || second === undefined || third === undefined) throw new Error()
  const wrong = [
    [first, third],
    [first, second, second, third],
    [second, first, third],
    [first, second],
    [first, second, { ...third, version: second.version }],
  ]
  for (const [index, list] of wrong.entries()) {
    lists.sawPage(begin(), all, { ...whole, items: list })
    assert.equal(world.violations.length, index + 1)
    assert.equal(world.broken[index], 'lists are exactly one state')
  }
})

test('finds a list at a version before it began', () => {
  const { world, whole, all, lists, begin, items } = listed()
  const before = { ...whole, version: stateVersion(world.revision - 1), items: items.slice(0, 2) }
  lists.sawPage(begin(), all, before)
  assert.deepEqual(world.broken, ['lists are exactly one state'])
})

/** A list of which the first of three pages has been read. */
function paged() {
  const made = listed()
  const { whole, begin, all, lists, items } = made
  const first: SeenPage = {
    ...whole,
    limit: 1,
    items: items.slice(0, 1),
    isCut: true,
    remaining: 2,
  }
  const chain = lists.sawFirst(begin(), all, first)
  if (chain === undefined) throw new Error('no chain')
  return { ...made, first, chain }
}

test('finds pages of different states, and a wrong count of the rest', () => {
  const { world, whole, begin, lists, items, first, chain } = paged()
  world.created('a/later')
  world.pass(5_000)
  const next: SeenPage = { ...first, after: 'a-b/one', items: items.slice(1, 2), remaining: 1 }
  lists.sawNext(begin(), chain, next)
  lists.sawNext(begin(), chain, { ...whole, after: 'a/one', items: items.slice(2) })
  assert.deepEqual(world.violations, [])
  // The count of the rest is checked for one of four pages.
  for (let page = 0; page < 4; page++) lists.sawNext(begin(), chain, { ...next, remaining: 2 })
  lists.sawNext(begin(), chain, { ...next, items: items.slice(0, 1) })
  lists.sawNext(begin(), chain, { ...next, version: next.version + 1_000 })
  assert.equal(world.violations.length, 3)
})

test('finds a token that expires before its state is compacted', () => {
  const { world, begin, lists, chain } = paged()
  lists.expired(begin(), chain, compacted)
  assert.deepEqual(world.broken, ['lists expire only by compaction'])
  world.pass(200_000)
  world.checks.onCompact(world.revision, world.now())
  lists.expired(begin(), chain, compacted)
  assert.equal(world.violations.length, 1)
})

test('finds a list at a version that is of another state', () => {
  const { world, whole, begin, all, lists, items } = listed()
  const at = (version: number) =>
    world.checks.reads.begin(world.checks.view(0), { kind: 'list', at: version })
  const old = items[1]?.version ?? 0
  const page = { ...whole, version: stateVersion(Math.floor(old / 1000)), items: items.slice(0, 2) }
  lists.sawExact(at(old), all, { at: old, page })
  assert.deepEqual(world.violations, [])
  lists.sawExact(at(old), all, { at: old, page: whole })
  assert.deepEqual(world.broken, ['lists at a version are of that state'])
  lists.sawPage(begin(), all, whole)
  assert.equal(world.violations.length, 1)
})
