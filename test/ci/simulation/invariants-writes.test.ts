import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StorageError } from '../../../src/storage/errors.ts'
import { failureOf } from '../../worlds/checker/failures.ts'
import { versionOf } from '../../worlds/checker/stored-text.ts'
import type { Verb, WriteOperation } from '../../worlds/checker/write-operation.ts'
import { FakeWorld, stored, value } from './invariants-world.fixture.ts'

function begin(world: FakeWorld, verb: Verb, path: string): WriteOperation {
  return world.checks.writes.begin(world.checks.view(0), verb, path)
}

function refused(kind: 'unavailable' | 'timeout') {
  return failureOf(new StorageError({ kind, message: kind }))
}

test('accepts writes that are committed as acknowledged', () => {
  const world = new FakeWorld()
  const first = world.created('a/one')
  world.created('a/two')
  world.deleted('a/one', first)
  const refusal = begin(world, 'create', 'a/two')
  world.checks.writes.failed(refusal, refused('unavailable'))
  assert.deepEqual(world.violations, [])
  assert.equal(world.checks.writes.pendingCount, 0)
})

test('finds an acknowledged write that was not committed', () => {
  const world = new FakeWorld()
  const operation = begin(world, 'create', 'a/one')
  world.checks.writes.acknowledged(operation, stored('a/one', operation.id, 5_000))
  assert.deepEqual(world.broken, ['acknowledged writes are committed'])
})

test('finds an acknowledgement with the version of another write', () => {
  const world = new FakeWorld()
  const one = begin(world, 'create', 'a/one')
  const two = begin(world, 'create', 'a/two')
  const revision = world.commit(['a/one', one.id], ['a/two', two.id])
  const version = versionOf(revision, 0)
  world.checks.writes.acknowledged(two, stored('a/two', two.id, version))
  assert.deepEqual(world.broken, ['acknowledged writes are committed'])
})

test('finds an acknowledgement with other bytes', () => {
  const world = new FakeWorld()
  const one = begin(world, 'create', 'a/one')
  const version = versionOf(world.commit(['a/one', one.id]), 0)
  world.checks.writes.acknowledged(one, stored('a/one', one.id + 1, version))
  assert.deepEqual(world.broken, ['acknowledged writes are committed'])
})

test('finds a refused write that was committed before its refusal', () => {
  const world = new FakeWorld()
  const one = begin(world, 'create', 'a/one')
  world.commit(['a/one', one.id])
  world.checks.writes.failed(one, refused('unavailable'))
  assert.deepEqual(world.broken, ['refused writes are never applied'])
})

test('finds a refused write that is committed later', () => {
  const world = new FakeWorld()
  const one = begin(world, 'create', 'a/one')
  world.checks.writes.failed(one, refused('unavailable'))
  world.commit(['a/one', one.id])
  assert.deepEqual(world.broken, ['refused writes are never applied'])
})

test('accepts one commit of a write with an unknown outcome, and finds a second', () => {
  const world = new FakeWorld()
  const one = begin(world, 'create', 'a/one')
  world.checks.writes.failed(one, refused('timeout'))
  world.pass(100_000)
  world.commit(['a/one', one.id])
  assert.deepEqual(world.violations, [])
  world.commit(['a/one', one.id])
  assert.deepEqual(world.broken, ['refused writes are never applied'])
})

test('finds an open write that is committed twice', () => {
  const world = new FakeWorld()
  const one = begin(world, 'update', 'a/one')
  world.commit(['a/one', one.id])
  world.commit(['a/one', one.id])
  assert.deepEqual(world.broken, ['a write is applied at most once'])
})

test('treats the writes of an ended process as unknown', () => {
  const world = new FakeWorld()
  const one = begin(world, 'create', 'a/one')
  begin(world, 'create', 'a/two')
  world.endReplica(0)
  world.commit(['a/one', one.id])
  assert.deepEqual(world.violations, [])
  assert.equal(one.isOpen, false)
})

test('finds an update that replaces another state than it was decided on', () => {
  const world = new FakeWorld()
  const first = world.created('a/one')
  const update = begin(world, 'update', 'a/one')
  update.decidesOn(stored('a/one', first.id, first.version))
  const other = begin(world, 'update', 'a/one')
  other.decidesOn(stored('a/one', first.id, first.version))
  world.commit(['a/one', other.id])
  assert.deepEqual(world.violations, [])
  world.commit(['a/one', update.id])
  assert.deepEqual(world.broken, ['no lost updates'])
})

test('finds a create that overwrites an event', () => {
  const world = new FakeWorld()
  world.created('a/one')
  const again = begin(world, 'create', 'a/one')
  world.commit(['a/one', again.id])
  assert.deepEqual(world.broken, ['no lost updates'])
})

test('finds two changes of a revision with the same index', () => {
  const world = new FakeWorld()
  const one = begin(world, 'create', 'a/one')
  const two = begin(world, 'create', 'a/two')
  world.commitRaw(7, [
    world.change('put', 'a/one', value('a/one', one.id, 0)),
    world.change('put', 'a/two', value('a/two', two.id, 0)),
  ])
  assert.deepEqual(world.broken, ['unique versions'])
})

test('finds a delete that no client decided on, and accepts it once the event is due', () => {
  const world = new FakeWorld()
  world.created('a/one')
  world.created('a/two')
  world.pass(world.limits.eventTtlMs - 1_000)
  world.commit(['a/one'])
  assert.deepEqual(world.broken, ['no early expiry, no unexplained delete'])
  world.pass(1_000)
  world.commit(['a/two'])
  assert.equal(world.violations.length, 1)
})

test('finds a refused delete that nobody else can have made', () => {
  const world = new FakeWorld()
  const first = world.created('a/one')
  const remove = begin(world, 'delete', 'a/one')
  remove.decidesOn(stored('a/one', first.id, first.version))
  world.commit(['a/one'])
  world.checks.writes.failed(remove, refused('unavailable'))
  assert.deepEqual(world.broken, ['refused writes are never applied'])
})

test('accepts that one of two deletes is refused, and finds two that are acknowledged', () => {
  for (const isSecondRefused of [true, false]) {
    const world = new FakeWorld()
    const first = world.created('a/one')
    const event = stored('a/one', first.id, first.version)
    const [one, two] = [begin(world, 'delete', 'a/one'), begin(world, 'delete', 'a/one')]
    one.decidesOn(event)
    two.decidesOn(event)
    const version = versionOf(world.commit(['a/one']), 0)
    world.checks.writes.acknowledged(one, { version, body: event.body })
    if (isSecondRefused) world.checks.writes.failed(two, refused('unavailable'))
    else world.checks.writes.acknowledged(two, { version, body: event.body })
    assert.deepEqual(world.broken, isSecondRefused ? [] : ['acknowledged writes are committed'])
  }
})

/** Two deletes decide on an event; one deletes it, the other decides again on its successor. */
function decidedAgain(world: FakeWorld) {
  const first = world.created('a/one')
  const [winner, loser] = [begin(world, 'delete', 'a/one'), begin(world, 'delete', 'a/one')]
  for (const each of [winner, loser]) each.decidesOn(stored('a/one', first.id, first.version))
  world.commit(['a/one'])
  const next = world.created('a/one')
  loser.decidesOn(stored('a/one', next.id, next.version))
  return { winner, loser }
}

test('accepts a delete with an unknown outcome that had lost the race for another delete', () => {
  const world = new FakeWorld()
  const { winner, loser } = decidedAgain(world)
  for (const each of [winner, loser]) world.checks.writes.failed(each, refused('timeout'))
  world.commit(['a/one'])
  assert.deepEqual(world.violations, [])
  world.created('a/one')
  world.commit(['a/one'])
  assert.deepEqual(world.broken, ['no early expiry, no unexplained delete'])
})

test('finds a refused delete whose only rival has decided again', () => {
  const world = new FakeWorld()
  const { winner, loser } = decidedAgain(world)
  world.checks.writes.failed(loser, refused('timeout'))
  assert.deepEqual(world.violations, [])
  world.checks.writes.failed(winner, refused('unavailable'))
  assert.deepEqual(world.broken, ['refused writes are never applied'])
})

test('finds a delete with the wrong version', () => {
  const world = new FakeWorld()
  const first = world.created('a/one')
  const remove = begin(world, 'delete', 'a/one')
  const event = stored('a/one', first.id, first.version)
  remove.decidesOn(event)
  const version = versionOf(world.commit(['a/one']), 0)
  world.checks.writes.acknowledged(remove, { version: version + 1, body: event.body })
  assert.deepEqual(world.broken, ['acknowledged writes are committed'])
})
