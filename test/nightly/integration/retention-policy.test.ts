import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { pause } from '../../../src/lib/abort.ts'
import { aLane } from '../../../src/lib/run-queue.fixture.ts'
import {
  type Lifetime,
  RetentionPolicy,
  type RetentionRule,
} from '../../../src/retention/policy.ts'
import type { RuleSelector } from '../../../src/retention/rule-selector.ts'
import { startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { Keeper } from '../../support/keeper.ts'
import { eventBody, eventKey } from '../../support/stored-events.ts'

const hour = 3_600_000
/** A sweep each second, the note before it, and a busy machine. */
const lateMsMax = 15_000
/** How much later memory and responses may show a change on a busy machine. */
const seenMs = 500

/** The rules are called r0, r1 and so on. */
function policyOf(rules: readonly [RuleSelector, Lifetime][], lifetime: Lifetime = hour) {
  const named = rules.map(
    ([selector, ms], at): RetentionRule => ({
      name: `r${at}`,
      selector,
      lifetime: ms,
    }),
  )
  return new RetentionPolicy({ rules: named, lifetime })
}

type Fields = NonNullable<Parameters<typeof eventBody>[2]>

async function create(keeper: Keeper, name: string, fields: Fields = {}, namespace = 'ns') {
  const key = eventKey(namespace, name)
  await keeper.cached.create(key, eventBody(key, 'text', fields))
}

/** The names of the events that memory has. */
async function left(keeper: Keeper): Promise<readonly string[]> {
  const { signal } = new AbortController()
  const all = { cluster: undefined, namespace: undefined } as const
  const { items } = await keeper.cached.list(all, { lane: aLane(), limit: 1_000, signal })
  return items.map(({ key }) => key.name)
}

async function untilLeft(keeper: Keeper, names: readonly string[]): Promise<void> {
  let found: readonly string[] = []
  await eventually(
    `only ${names} are left`,
    async () => {
      found = await left(keeper)
      return found.length <= names.length
    },
    lateMsMax,
  )
  assert.deepEqual(found, names)
}

const isLeading = (keeper: Keeper) =>
  eventually('it leads', () => keeper.retention.status.isLeader, 10_000)

describe('retention policy', { concurrency: true }, () => {
  test('a changed policy applies to stored events, both ways', async () => {
    await using etcd = await startEtcd()
    await using keeper = await Keeper.start(etcd.endpoints, policyOf([]))
    await create(keeper, 'normal')
    await create(keeper, 'warning', { type: 'Warning' })
    await isLeading(keeper)
    // Shorter.
    keeper.retention.replacePolicy(policyOf([[{ type: ['Warning'] }, hour]], 1_000))
    await untilLeft(keeper, ['warning'])
    // Nothing expires: no leader is needed, until something does.
    keeper.retention.replacePolicy(RetentionPolicy.uniform('never'))
    await eventually('it does not lead', () => !keeper.retention.isLeader, 10_000)
    await create(keeper, 'late')
    keeper.retention.replacePolicy(policyOf([[{ type: ['Normal'] }, 1_000]], 'never'))
    await untilLeft(keeper, ['warning'])
    keeper.retention.replacePolicy(RetentionPolicy.uniform(1_000))
    await untilLeft(keeper, [])
    const { deleted } = keeper.retention.status
    assert.deepEqual(Object.fromEntries(deleted.of('expired')), { default: 2, r0: 1 })
  })

  test('an event whose lifetime was made longer is not deleted early', async () => {
    await using etcd = await startEtcd()
    const shortMs = 3_000
    const longMs = 9_000
    await using keeper = await Keeper.start(etcd.endpoints, RetentionPolicy.uniform(shortMs))
    await isLeading(keeper)
    const born = new Map<string, number>()
    const died = new Map<string, number>()
    const ending = new AbortController()
    const { signal } = ending
    const watching = (async () => {
      const from = await keeper.cached.currentVersion({ signal })
      const all = { cluster: undefined, namespace: undefined } as const
      for await (const { items } of keeper.cached.watch(all, { from, signal })) {
        for (const { type, stored } of items) {
          const times = type === 'put' ? born : died
          times.set(stored.key.name, performance.now())
        }
      }
    })()
    for (let at = 0; at < 40; at++) {
      await create(keeper, `e${at}`)
      await pause(100)
    }
    await eventually('some are gone', () => died.size > 0)
    // Some are due at this moment, some have an entry in a batch that is being deleted.
    keeper.retention.replacePolicy(RetentionPolicy.uniform(longMs))
    const changedAt = performance.now()
    const hasDiedBefore = new Set(died.keys())
    await eventually('all are gone', () => died.size === 40, longMs + lateMsMax)
    ending.abort()
    await watching
    assert.ok(hasDiedBefore.size > 0 && hasDiedBefore.size < 40, `${hasDiedBefore.size}`)
    for (const [name, at] of died) {
      const ageMs = at - (born.get(name) ?? 0)
      // Deletes that were under way. By the old policy, the last ones would be gone after 4 s.
      const isOfOldPolicy = hasDiedBefore.has(name) || at < changedAt + 2_000
      assert.ok(ageMs > (isOfOldPolicy ? shortMs : longMs) - seenMs, `${name} after ${ageMs} ms`)
    }
  })

  test('rules match stored events by each field', async () => {
    await using etcd = await startEtcd()
    const short = 1_500
    const policy = policyOf([
      [{ cluster: ['elsewhere'] }, short],
      [{ namespace: ['a', 'b'] }, short],
      [{ type: ['Warning'], reason: ['Kept'] }, 'never'],
      [{ type: ['Warning'] }, short],
      [{ reason: ['Gone'] }, short],
      [{ kind: ['Node'] }, short],
      [{ controller: ['scheduler'] }, short],
    ])
    await using keeper = await Keeper.start(etcd.endpoints, policy)
    await create(keeper, 'by-namespace', {}, 'b')
    await create(keeper, 'by-type', { type: 'Warning' })
    await create(keeper, 'by-reason', { reason: 'Gone' })
    await create(keeper, 'by-kind', { kind: 'Node' })
    await create(keeper, 'by-controller', { controller: 'scheduler' })
    await create(keeper, 'first-rule', { type: 'Warning', reason: 'Kept', kind: 'Node' })
    await create(keeper, 'no-rule')
    const elsewhere = { cluster: 'elsewhere', namespace: 'ns', name: 'by-cluster' }
    await keeper.cached.create(elsewhere, eventBody(elsewhere, 'text'))
    await untilLeft(keeper, ['first-rule', 'no-rule'])
    // A change that moves an event to another rule counts as any change of it.
    const key = eventKey('ns', 'no-rule')
    await keeper.cached.update(key, () => eventBody(key, 'text', { reason: 'Gone' }))
    await untilLeft(keeper, ['first-rule'])
  })

  test('the next leader goes on with the ages that the last one knew', async () => {
    await using etcd = await startEtcd()
    const lifetimeMs = 10_000
    const policy = policyOf([[{ type: ['Warning'] }, 'never']], lifetimeMs)
    const first = await Keeper.start(etcd.endpoints, policy, 'first')
    await isLeading(first)
    await create(first, 'normal')
    await create(first, 'warning', { type: 'Warning' })
    const createdAt = performance.now()
    await pause(8_000)
    const startedAt = performance.now()
    await using second = await Keeper.start(etcd.endpoints, policy, 'second')
    await first.stop()
    await isLeading(second)
    await untilLeft(second, ['warning'])
    const ageMs = performance.now() - createdAt
    assert.ok(ageMs > lifetimeMs - seenMs, `after ${ageMs} ms`)
    // The age of the Warning is known as well, although it never expired so far.
    second.retention.replacePolicy(RetentionPolicy.uniform(lifetimeMs))
    await untilLeft(second, [])
    // By its own notes, the second one would have kept both for longer.
    const sinceStartMs = performance.now() - startedAt
    assert.ok(sinceStartMs < lifetimeMs, `${sinceStartMs} ms after the start`)
  })
})
