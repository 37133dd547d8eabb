import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EtcdClient } from '../../../src/etcd/client.ts'
import { silentLog } from '../../../src/lib/log/log.ts'
import { DEFAULT_RULE, RetentionPolicy } from '../../../src/retention/policy.ts'
import type { RetentionStatus } from '../../../src/retention/retention.ts'
import { Retention } from '../../../src/retention/retention.ts'
import { EtcdStorage } from '../../../src/storage/etcd/etcd-storage.ts'
import { controlKey } from '../../../src/storage/etcd/keys.ts'
import { CachedEventStorage } from '../../support/cached-event-storage.ts'
import { eventually } from '../../support/eventually.ts'
import { fillUp, makeRoom, startSmallEtcd } from '../../support/full-etcd.ts'
import { eventBody, eventKey } from '../../support/stored-events.ts'

const prefix = '/registry'
const lifetimeMs = 6_000
const compactionIntervalMs = 3_000
const leaseTtlSeconds = 2

/** A replica without HTTP, for `await using`. */
class SmallReplica implements AsyncDisposable {
  readonly client: EtcdClient
  readonly storage: CachedEventStorage
  readonly lines: string[] = []
  readonly #written: EtcdStorage
  readonly #retention: Retention
  readonly #ending = new AbortController()
  readonly #running: Promise<unknown>

  constructor(endpoints: readonly string[], replica: string) {
    const client = new EtcdClient({ endpoints, defaultTimeoutMs: 5_000 })
    const note = (msg: string): void => void this.lines.push(msg)
    this.client = client
    this.#written = new EtcdStorage({
      client,
      prefix,
      onCorrupt: (key) => assert.fail(`not an event: ${key}`),
    })
    this.storage = new CachedEventStorage({ inner: this.#written, log: silentLog })
    this.#retention = new Retention({
      client,
      storage: this.storage,
      deletes: this.storage,
      recall: (key) => this.storage.recall(key),
      prefix,
      replica,
      policy: RetentionPolicy.uniform(lifetimeMs),
      compactionIntervalMs,
      leaseTtlSeconds,
      log: { ...silentLog, warn: note, info: note },
    })
    const { signal } = this.#ending
    this.#running = Promise.all([
      this.storage.run(signal),
      this.storage.synced.then(() => this.#retention.run(signal)),
    ])
  }

  get status(): RetentionStatus {
    return this.#retention.status
  }

  async create(names: readonly string[]): Promise<void> {
    const keys = names.map((name) => eventKey('full', name))
    await Promise.all(keys.map((key) => this.storage.create(key, eventBody(key, 'x'))))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort()
    await this.#running
    await this.#written.close()
    this.client.close()
  }
}

const names = (prefixed: string) => Array.from({ length: 300 }, (_, at) => `${prefixed}-${at}`)

test('retention: a full etcd is swept and compacted, with and without an elected leader', async (context) => {
  await using etcd = await startSmallEtcd()
  await using first = new SmallReplica(etcd.endpoints, 'first')
  await using second = new SmallReplica(etcd.endpoints, 'second')
  await using third = new SmallReplica(etcd.endpoints, 'third')
  const all = [first, second, third]
  const leaders = () => all.filter(({ status }) => status.isLeader).length
  const leaderless = () => all.filter(({ status }) => status.isWorkingWithoutLeader).length
  const sweptBy = ({ status }: (typeof all)[number]) => status.deleted.get('expired', DEFAULT_RULE)
  const compactions = () => all.reduce((sum, { status }) => sum + status.compactionCount, 0)

  await eventually('one is elected', () => leaders() === 1, 10_000)
  await first.create(names('early'))
  await fillUp(first.client)
  await eventually('it sweeps', () => first.storage.count === 0, 15_000)
  const byOne = compactions()
  await eventually('and compacts', () => compactions() > byOne, 10_000)
  assert.deepEqual([leaders(), leaderless()], [1, 0])

  await makeRoom(etcd, first.client)
  await first.create(names('late'))
  await fillUp(first.client)
  const key = Buffer.from(controlKey(prefix, 'sweeper'))
  await first.client.txn({ success: [{ type: 'delete', key }] })
  await eventually('all replicas sweep without an election', () => leaderless() === 3, 10_000)
  const [swept, byAll] = [all.map(sweptBy), compactions()]
  assert.ok(first.storage.count > 0, 'there are expired events')
  assert.ok(all.every(({ status }) => status.sweepLagMs !== undefined))
  await eventually('all is swept', () => first.storage.count === 0, 20_000)
  await eventually('and compacted', () => compactions() > byAll, 15_000)
  const shares = all.map((each, at) => sweptBy(each) - (swept[at] ?? 0))
  context.diagnostic(`swept without an election: ${shares.join(', ')}`)
  const total = shares.reduce((sum, share) => sum + share)
  assert.ok(total > 0 && total <= 300, 'each event is swept once')
  assert.equal(leaders(), 0)

  await makeRoom(etcd, first.client)
  await eventually('a leader is elected again', () => leaders() === 1, 10_000)
  await eventually('and works alone', () => leaderless() === 0, 10_000)
  assert.equal(all.filter(({ status }) => status.sweepLagMs !== undefined).length, 1)
  for (const { lines } of all) {
    assert.ok(lines.some((line) => line.startsWith('etcd is full, no leader can be elected')))
    assert.ok(lines.includes('This replica no longer sweeps and compacts without an election'))
  }
})
