/** The checks of retention rules and budgets can fail, and do not fail without a reason. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { recoveryMs } from '../../worlds/checker/calm.ts'
import type { PlannedPolicy } from '../../worlds/retention/policy-plan.ts'
import { FakeWorld } from './invariants-world.fixture.ts'

const minute = 60_000
const unexplained = 'no early expiry, no unexplained delete'

/** Operations are numbered from 1; those with odd numbers write Warnings, later ones newer events. */
function worldWith(...policies: readonly Partial<PlannedPolicy>[]): FakeWorld {
  const usual = { rules: [], budgets: [], lifetime: minute }
  return new FakeWorld(policies.map((policy) => ({ at: 0, policy: { ...usual, ...policy } })))
}

function create(world: FakeWorld, ...paths: readonly string[]): void {
  for (const path of paths) world.created(path)
}

/** Violations in a calm world, except for the reads that the fake replicas do not answer. */
function retentionIn(world: FakeWorld): ReadonlySet<string> {
  const own = [
    unexplained,
    'due events expire',
    'budgets hold',
    'Warnings are evicted last',
    'the oldest events are evicted first',
  ]
  return new Set(world.broken.filter((name) => own.includes(name)))
}

function recovered(world: FakeWorld): void {
  world.calmSince = world.now() - recoveryMs - 1
}

test('finds an event that expires by the lifetime of another rule', () => {
  const world = worldWith({ rules: [{ type: 'Warning', lifetime: 2 * minute }] })
  create(world, 'a/warning', 'a/normal')
  world.pass(minute)
  world.commit(['a/normal'])
  assert.deepEqual(world.broken, [])
  world.commit(['a/warning'])
  assert.deepEqual(world.broken, [unexplained])
})

test('finds an event of a rule that is kept for longer than its lifetime', () => {
  const world = worldWith({ rules: [{ type: 'Warning', lifetime: 'never' }] })
  create(world, 'a/warning')
  world.calmSince = world.now()
  world.pass(10 * minute)
  assert.equal(retentionIn(world).size, 0)
  world.calmSince = undefined
  create(world, 'a/normal')
  world.calmSince = world.now()
  world.pass(10 * minute)
  assert.deepEqual([...retentionIn(world)], ['due events expire'])
})

test('finds an event that expires by a policy that no replica has used lately', () => {
  const world = worldWith({}, { lifetime: 2 * minute })
  create(world, 'a/one', 'a/two')
  const file = world.policies.open(0)
  world.pass(minute)
  world.policies.wrote(1)
  world.commit(['a/one'])
  assert.deepEqual(world.broken, [])
  recovered(world)
  file.reload()
  world.pass(3_001)
  world.commit(['a/two'])
  assert.deepEqual(
    world.broken.filter((name) => name === unexplained),
    [unexplained],
  )
})

test('finds an eviction from a namespace that has no more than its budget', () => {
  const world = worldWith({ budgets: [{ per: 'Namespace', namespace: 'a', events: 1 }] })
  create(world, 'a/one', 'b/two')
  world.commit(['b/two'])
  assert.deepEqual(world.broken, [unexplained])
})

test('finds a Warning that is evicted although there are others', () => {
  const world = worldWith({ budgets: [{ per: 'Cluster', events: 2 }] })
  create(world, 'a/warning', 'a/normal', 'a/warning-2')
  world.commit(['a/normal'])
  assert.deepEqual(world.broken, [])
  create(world, 'a/normal-2')
  recovered(world)
  world.pass(3_001)
  world.commit(['a/warning'])
  assert.deepEqual([...retentionIn(world)], ['Warnings are evicted last'])
})

test('finds an event that is evicted although an older one stays', () => {
  const world = worldWith({ budgets: [{ per: 'Cluster', events: 2 }] })
  create(world, 'a/warning', 'a/older', 'a/warning-2', 'a/newer')
  recovered(world)
  world.pass(3_001)
  world.commit(['a/newer'])
  assert.equal(retentionIn(world).size, 0)
  world.pass(3_001)
  assert.deepEqual([...retentionIn(world)], ['the oldest events are evicted first'])
})

test('finds a budget that is exceeded for long, also after a new policy', () => {
  const world = worldWith({}, { budgets: [{ per: 'Namespace', bytes: 1_000 }] })
  create(world, 'a/one', 'a/two', 'a/three')
  recovered(world)
  world.pass(20_000)
  assert.equal(retentionIn(world).size, 0)
  world.policies.wrote(1)
  world.pass(9_000)
  assert.equal(retentionIn(world).size, 0)
  world.pass(10_000)
  assert.deepEqual([...retentionIn(world)], ['budgets hold'])
})
