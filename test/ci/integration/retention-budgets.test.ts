import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { pause } from '../../../src/lib/abort.ts'
import { silentLog } from '../../../src/lib/log/log.ts'
import { aLane } from '../../../src/lib/run-queue.fixture.ts'
import { type RetentionBudget, RetentionPolicy } from '../../../src/retention/policy.ts'
import { Retention } from '../../../src/retention/retention.ts'
import { startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { Keeper } from '../../support/keeper.ts'
import { eventBody, eventKey } from '../../support/stored-events.ts'

const waitMsMax = 15_000
/** Budgets are enforced five times a second; the machine may be busy. */
const aboveMsMax = 1_000

function policyOf(...budgets: readonly (Partial<RetentionBudget> & { name: string })[]) {
  return new RetentionPolicy({
    lifetime: 'never',
    budgets: budgets.map((budget) => ({
      per: 'Namespace',
      cluster: undefined,
      namespace: undefined,
      events: undefined,
      bytes: undefined,
      ...budget,
    })),
  })
}

/** Event `n` was last seen `n` seconds after midnight; its name says so too. */
function nameOf(prefix: string, n: number): string {
  return `${prefix}-${String(n).padStart(4, '0')}`
}

/** Formats a time with microseconds, as events have it. */
function timeOf(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z')
}

interface Made {
  readonly namespace: string
  readonly prefix: string
  readonly count: number
  readonly type?: string
  readonly note?: string
}

/** Creates the newest first, so that neither keys nor versions are in the order of time. */
async function create(keeper: Keeper, made: Made): Promise<void> {
  const { namespace, prefix, count, type = 'Normal', note = 'text' } = made
  const numbers = Array.from({ length: count }, (_, at) => count - 1 - at)
  await Promise.all(
    numbers.map((n) => {
      const key = eventKey(namespace, nameOf(prefix, n))
      const eventTime = timeOf(Date.UTC(2026, 0, 1) + n * 1_000)
      return keeper.cached.create(key, eventBody(key, note, { type, eventTime }))
    }),
  )
}

async function namesIn(keeper: Keeper, namespace: string): Promise<readonly string[]> {
  const { signal } = new AbortController()
  const scope = { cluster: 'local', namespace }
  const { items } = await keeper.cached.list(scope, { lane: aLane(), limit: 10_000, signal })
  return items.map(({ key }) => key.name)
}

const namesFrom = (prefix: string, from: number, to: number) =>
  Array.from({ length: to - from }, (_, at) => nameOf(prefix, from + at))

async function untilCount(keeper: Keeper, namespace: string | undefined, count: number) {
  const has = () => keeper.cached.countIn({ cluster: 'local', namespace })
  // Twice: memory may still be on its way to more of them, and nothing more must be deleted.
  const isSteady = async () => {
    if (has() !== count) return false
    await pause(600)
    return has() === count
  }
  await eventually(`${count} events in ${namespace}`, isSteady, waitMsMax)
}

const evictedBy = (keeper: Keeper) =>
  Object.fromEntries(keeper.retention.status.deleted.of('evicted'))

describe('retention budgets', { concurrency: true }, () => {
  test('without sizes no budget is enforced, and the process keeps working', async () => {
    await using etcd = await startEtcd()
    await using keeper = await Keeper.start(etcd.endpoints, RetentionPolicy.uniform('never'))
    const retention = new Retention({
      client: keeper.client,
      storage: keeper.cached,
      deletes: keeper.cached,
      prefix: '/registry',
      replica: 'without-sizes',
      policy: policyOf({ name: 'b', events: 1 }),
      compactionIntervalMs: 0,
      log: silentLog,
    })
    await create(keeper, { namespace: 'a', prefix: 'n', count: 5 })
    const ending = new AbortController()
    const running = retention.run(ending.signal)
    await eventually('it leads', () => retention.status.isLeader, waitMsMax)
    await pause(500)
    ending.abort()
    await running
    assert.equal((await namesIn(keeper, 'a')).length, 5)
  })

  test('what a new policy lets expire does not count: nothing else is evicted for it', async () => {
    await using etcd = await startEtcd()
    // A short lifetime of others makes ages known to a fraction of a second.
    const others = [{ name: 'o', selector: { namespace: ['other'] }, lifetime: 1_000 }]
    const first = new RetentionPolicy({ rules: others, lifetime: 'never' })
    await using keeper = await Keeper.start(etcd.endpoints, first)
    await create(keeper, { namespace: 'n', prefix: 'kept', count: 60 })
    await create(keeper, { namespace: 'n', prefix: 'due', count: 60, type: 'Warning' })
    await eventually('it leads', () => keeper.retention.status.isLeader, waitMsMax)
    await pause(2_500)
    const { budgets } = policyOf({ name: 'b', events: 100 })
    const rules = [{ name: 'w', selector: { type: ['Warning'] }, lifetime: 1_000 }]
    keeper.retention.replacePolicy(new RetentionPolicy({ rules, budgets, lifetime: 'never' }))
    await untilCount(keeper, 'n', 60)
    assert.deepEqual(await namesIn(keeper, 'n'), namesFrom('kept', 0, 60))
    // Budgets are enforced from then on.
    await create(keeper, { namespace: 'n', prefix: 'more', count: 60 })
    await untilCount(keeper, 'n', 100)
    assert.deepEqual(evictedBy(keeper), { b: 20 })
  })

  test('the oldest events that are not Warnings go first, down to the budget', async () => {
    await using etcd = await startEtcd()
    await using keeper = await Keeper.start(etcd.endpoints, RetentionPolicy.uniform('never'))
    await create(keeper, { namespace: 'a', prefix: 'n', count: 1_200 })
    await create(keeper, { namespace: 'a', prefix: 'w', count: 50, type: 'Warning' })
    await create(keeper, { namespace: 'b', prefix: 'n', count: 90 })
    keeper.retention.replacePolicy(policyOf({ name: 'each', events: 100 }))
    await untilCount(keeper, 'a', 100)
    assert.deepEqual(await namesIn(keeper, 'a'), [
      ...namesFrom('n', 1_150, 1_200),
      ...namesFrom('w', 0, 50),
    ])
    assert.equal(keeper.cached.countIn({ cluster: 'local', namespace: 'b' }), 90)
    assert.deepEqual(evictedBy(keeper), { each: 1_150 })
    // Warnings go last, but they go.
    keeper.retention.replacePolicy(policyOf({ name: 'few', events: 20, namespace: ['a'] }))
    await untilCount(keeper, 'a', 20)
    assert.deepEqual(await namesIn(keeper, 'a'), namesFrom('w', 30, 50))
    assert.deepEqual(evictedBy(keeper), { each: 1_150, few: 80 })
  })

  test('events of the future do not stay at the expense of others', async () => {
    await using etcd = await startEtcd()
    await using keeper = await Keeper.start(etcd.endpoints, RetentionPolicy.uniform('never'))
    await create(keeper, { namespace: 'a', prefix: 'w', count: 20, type: 'Warning' })
    await Promise.all(
      Array.from({ length: 100 }, (_, n) => {
        const key = eventKey('b', nameOf('forged', n))
        const fields = { type: 'Warning', eventTime: '9999-01-01T00:00:00.000000Z' }
        return keeper.cached.create(key, eventBody(key, 'text', fields))
      }),
    )
    keeper.retention.replacePolicy(policyOf({ name: 'all', per: 'Cluster', events: 40 }))
    await untilCount(keeper, 'b', 20)
    assert.deepEqual(await namesIn(keeper, 'a'), namesFrom('w', 0, 20))
  })

  test('one namespace cannot displace the events of others from a cluster, whatever its events claim', async () => {
    await using etcd = await startEtcd()
    await using keeper = await Keeper.start(
      etcd.endpoints,
      policyOf({ name: 'all', per: 'Cluster', events: 1_000 }),
    )
    await create(keeper, { namespace: 'b', prefix: 'n', count: 200 })
    await create(keeper, { namespace: 'b', prefix: 'w', count: 200, type: 'Warning' })
    await eventually('it leads', () => keeper.retention.status.isLeader, waitMsMax)
    const eventTime = timeOf(Date.now() + 9 * 60_000)
    const write = async (from: number, to: number): Promise<void> => {
      const numbers = Array.from({ length: to - from }, (_, at) => from + at)
      await Promise.all(
        numbers.map((n) => {
          const key = eventKey('a', nameOf('ahead', n))
          return keeper.cached.create(key, eventBody(key, 'text', { type: 'Warning', eventTime }))
        }),
      )
    }
    // One after the other, so that the order of their writes is known.
    for (let n = 0; n < 1_500; n += 500) await write(n, n + 500)
    await untilCount(keeper, undefined, 1_000)
    assert.deepEqual(
      [keeper.cached.countIn({ cluster: 'local', namespace: 'b' }), evictedBy(keeper)],
      [400, { all: 900 }],
    )
    const left = await namesIn(keeper, 'a')
    assert.ok(
      left.every((name) => name >= nameOf('ahead', 500)),
      'the last written are left',
    )
  })

  test('a budget in bytes counts the stored bytes, also after updates', async () => {
    await using etcd = await startEtcd()
    await using keeper = await Keeper.start(etcd.endpoints, RetentionPolicy.uniform('never'))
    const note = 'x'.repeat(10_000)
    await create(keeper, { namespace: 'a', prefix: 'n', count: 100, note })
    const bytesIn = () => keeper.cached.sizes.of('local', 'a')?.bytes ?? 0
    const has = () => keeper.cached.countIn({ cluster: 'local', namespace: 'a' })
    await eventually('memory has them', () => has() === 100)
    const each = bytesIn() / 100
    assert.ok(each > 10_000 && each < 11_000, `${each}`)
    keeper.retention.replacePolicy(policyOf({ name: 'bytes', bytes: Math.ceil(each * 40) }))
    await untilCount(keeper, 'a', 40)
    assert.deepEqual(await namesIn(keeper, 'a'), namesFrom('n', 60, 100))
    // Ten events become twice as long: ten others have to go.
    for (const name of namesFrom('n', 90, 100)) {
      const key = eventKey('a', name)
      await keeper.cached.update(key, (current) => {
        const tree = JSON.parse(current?.body.toString() ?? '')
        return Buffer.from(JSON.stringify({ ...tree, note: `${note}${'y'.repeat(each)}` }))
      })
    }
    await untilCount(keeper, 'a', 30)
    assert.deepEqual(await namesIn(keeper, 'a'), namesFrom('n', 70, 100))
    const listed = await keeper.cached.list(
      { cluster: 'local', namespace: 'a' },
      { lane: aLane(), limit: 100, signal: new AbortController().signal },
    )
    assert.equal(
      bytesIn(),
      listed.items.reduce((sum, { body }) => sum + body.length, 0),
    )
  })

  test('budgets of a namespace and of its cluster together delete no event too many', async () => {
    await using etcd = await startEtcd()
    await using keeper = await Keeper.start(
      etcd.endpoints,
      policyOf(
        { name: 'namespaces', events: 300 },
        { name: 'cluster', per: 'Cluster', events: 500 },
      ),
    )
    for (const namespace of ['a', 'b', 'c']) {
      await create(keeper, { namespace, prefix: namespace, count: 400 })
    }
    await untilCount(keeper, undefined, 500)
    const { namespaces = 0, cluster = 0 } = evictedBy(keeper)
    assert.equal(namespaces + cluster, 700)
    assert.ok(cluster > 0, `${namespaces} and ${cluster}`)
    const { totals } = keeper.retention
    assert.equal(totals.get('clusters', 'local'), 700)
    const perNamespace = ['a', 'b', 'c'].map((name) => totals.get('namespaces', `local/${name}`))
    assert.equal(
      perNamespace.reduce((sum, count) => sum + count),
      700,
    )
  })

  test('a budget holds during a flood, and events that change meanwhile are not deleted for it', async () => {
    await using etcd = await startEtcd()
    await using keeper = await Keeper.start(etcd.endpoints, policyOf({ name: 'each', events: 500 }))
    await eventually('it leads', () => keeper.retention.status.isLeader, 10_000)
    const hot = eventKey('a', 'hot')
    await keeper.cached.create(hot, eventBody(hot, 'text', { eventTime: timeOf(Date.now()) }))
    let created = 1
    const createdAt: number[] = []
    let lowest = Number.POSITIVE_INFINITY
    let highestAbove = 0
    for (let round = 0; round < 60; round++) {
      await Promise.all(
        Array.from({ length: 25 }, (_, index) => {
          const key = eventKey('a', `f-${round}-${index}`)
          created++
          createdAt.push(performance.now())
          return keeper.cached.create(
            key,
            eventBody(key, 'text', { eventTime: timeOf(Date.now()) }),
          )
        }),
      )
      await keeper.cached.update(hot, () =>
        eventBody(hot, 'text', { eventTime: timeOf(Date.now()) }),
      )
      const count = keeper.cached.countIn({ cluster: 'local', namespace: 'a' })
      if (created > 1_000) lowest = Math.min(lowest, count)
      const since = performance.now() - aboveMsMax
      const recent = createdAt.filter((at) => at > since).length
      highestAbove = Math.max(highestAbove, count - 500 - recent)
      await pause(20)
    }
    await untilCount(keeper, 'a', 500)
    assert.ok(lowest >= 495, `down to ${lowest}`)
    assert.equal(highestAbove, 0, 'no more than what was created in the last second')
    assert.ok((await namesIn(keeper, 'a')).includes('hot'))
    assert.deepEqual(evictedBy(keeper), { each: created - 500 })
  })

  test('the account goes on with the next sweeper, and every replica reads it', async () => {
    await using etcd = await startEtcd()
    const policy = new RetentionPolicy({
      rules: [{ name: 'short', selector: { reason: ['Short'] }, lifetime: 1_000 }],
      lifetime: 'never',
      budgets: policyOf({ name: 'each', events: 10 }).budgets,
    })
    const first = await Keeper.start(etcd.endpoints, policy, 'first')
    await create(first, { namespace: 'a', prefix: 'n', count: 30 })
    const short = eventKey('b', 'short')
    await first.cached.create(short, eventBody(short, 'text', { reason: 'Short' }))
    await untilCount(first, 'a', 10)
    await untilCount(first, 'b', 0)
    await using second = await Keeper.start(etcd.endpoints, policy, 'second')
    const seen = () => {
      const { totals } = second.retention
      return [totals.get('evicted', 'each'), totals.get('expired', 'short')]
    }
    await eventually('the other replica reads it', () => seen().join() === '20,1', 10_000)
    await first.stop()
    await create(second, { namespace: 'a', prefix: 'm', count: 5 })
    await untilCount(second, 'a', 10)
    assert.deepEqual(seen(), [25, 1])
    assert.equal(second.retention.totals.get('namespaces', 'local/a'), 25)
    assert.deepEqual(evictedBy(second), { each: 5 })
  })
})
