import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { KnownHistory } from '../../../src/election/known-history.ts'
import type { Term } from '../../../src/election/term.ts'
import { EtcdClient } from '../../../src/etcd/client.ts'
import { EtcdError } from '../../../src/etcd/errors.ts'
import { pause } from '../../../src/lib/abort.ts'
import { type Log, silentLog } from '../../../src/lib/log/log.ts'
import { AgeRecord } from '../../../src/retention/age-record.ts'
import { RetentionPolicy } from '../../../src/retention/policy.ts'
import { Retention } from '../../../src/retention/retention.ts'
import { Timeline } from '../../../src/retention/timeline.ts'
import { EtcdStorage } from '../../../src/storage/etcd/etcd-storage.ts'
import { type Version, versionOfState } from '../../../src/storage/resource-version.ts'
import { startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { fillUp, startSmallEtcd } from '../../support/full-etcd.ts'
import { eventBody, eventKey } from '../../support/stored-events.ts'

const key = '/tidings/control/ages'
const leaderKey = '/tidings/control/sweeper'
const markKey = Buffer.from('/tidings/events/')
const hour = 3_600_000

/** The part of a replica that keeps the ages of events, with its own clocks. */
class Keeper implements Disposable {
  readonly client: EtcdClient
  readonly timeline: Timeline
  readonly record: AgeRecord
  readonly warnings: { readonly msg: string; readonly fields: unknown }[] = []
  readonly #base = Math.random() * hour
  /** How long its monotonic clock stood still. */
  lostMs = 0
  /** Called after the lease was renewed, before the record is written. */
  onRenewed: () => Promise<void> | void = () => {}
  /** May be changed while it runs. */
  wallErrorMs: number

  constructor(endpoints: readonly string[], wallErrorMs = 0, history?: KnownHistory) {
    this.wallErrorMs = wallErrorMs
    this.client = new EtcdClient({ endpoints, defaultTimeoutMs: 5_000 })
    const clock = { now: () => this.now() }
    this.timeline = new Timeline(clock)
    const log: Log = {
      ...silentLog,
      warn: (msg, fields) => void this.warnings.push({ msg, fields }),
    }
    const { client } = this
    this.record = new AgeRecord({
      client: {
        range: (...args) => client.range(...args),
        txn: (...args) => client.txn(...args),
        grantLease: (...args) => client.grantLease(...args),
        leaseTtl: (...args) => client.leaseTtl(...args),
        keepLeaseAlive: async (...args) => {
          const seconds = await client.keepLeaseAlive(...args)
          await this.onRenewed()
          return seconds
        },
      },
      markKey,
      markEveryMs: 1_000,
      key,
      leaderKey,
      replica: String(this.#base),
      history,
      timeline: this.timeline,
      clock,
      wallTime: () => Date.now() + this.wallErrorMs,
      log,
    })
  }

  /** The clock of each process has another origin. */
  now(): number {
    return this.#base + performance.now() - this.lostMs
  }

  /** Becomes the leader and takes over the record. */
  async lead(): Promise<Term> {
    const { revision } = await this.client.txn({
      success: [{ type: 'put', key: Buffer.from(leaderKey), value: Buffer.from('r') }],
    })
    const term = termOf(revision)
    assert.equal(await this.record.begin(term), true)
    return term
  }

  /** Notes the current revision, and returns it. */
  async note(): Promise<number> {
    const requestedAt = this.now()
    const { revision } = await this.client.range({ key: Buffer.from(key) })
    this.timeline.note(versionOfState(revision), { requestedAt, respondedAt: this.now() })
    return revision
  }

  /** The age of a revision according to this replica. */
  ageMs(revision: number): number {
    return this.now() - this.timeline.writtenAt({ version: (revision * 1000) as Version })
  }

  [Symbol.dispose](): void {
    this.client.close()
  }
}

function termOf(revision: number, lateMs?: number): Term {
  const { signal } = new AbortController()
  return { signal, revision, isHeld: () => true, heldUntil: Number.POSITIVE_INFINITY, lateMs }
}

/**
 * Runs a replica that has known a revision for two seconds and written that to the record, and ends
 * it.
 */
async function leaveRecord(endpoints: readonly string[]): Promise<{
  readonly revision: number
  readonly ageMs: () => number
  /** Upper bound of the age in the record. */
  readonly recordedMs: number
}> {
  using keeper = new Keeper(endpoints)
  const revision = await keeper.note()
  const knownSince = performance.now()
  await pause(2_000)
  await keeper.lead()
  const ageMs = () => performance.now() - knownSince
  return { revision, ageMs, recordedMs: ageMs() }
}

describe('retention: ages', { concurrency: true }, () => {
  test('a replica that starts after all were down knows the ages from record and lease, despite its wall clock', async () => {
    for (const wallErrorMs of [2 * hour, -2 * hour]) {
      await using etcd = await startEtcd()
      const { revision, ageMs } = await leaveRecord(etcd.endpoints)
      await pause(4_000)
      using next = new Keeper(etcd.endpoints, wallErrorMs)
      await next.lead()
      const [believed, actual] = [next.ageMs(revision), ageMs()]
      assert.ok(believed <= actual, `${believed} ms instead of ${actual}`)
      assert.ok(believed >= actual - 2_500, `${believed} ms instead of ${actual}`)
      assert.equal(next.warnings.length, 1)
      assert.match(next.warnings[0]?.msg ?? '', wallErrorMs > 0 ? /can be proved/ : /is proved/)
      const { unprovedMs } = next.record
      assert.ok(Math.abs(unprovedMs - Math.max(0, wallErrorMs)) < 10_000, `${unprovedMs} ms`)
    }
  })

  test('a restart of etcd makes the proven age smaller, never greater', async () => {
    await using etcd = await startEtcd()
    const { revision, ageMs } = await leaveRecord(etcd.endpoints)
    await pause(1_500)
    await etcd.member(0).kill()
    await pause(1_500)
    await etcd.member(0).start()
    using next = new Keeper(etcd.endpoints)
    await next.lead()
    const [believed, actual] = [next.ageMs(revision), ageMs()]
    assert.ok(believed <= actual, `${believed} ms instead of ${actual}`)
    assert.ok(believed >= 2_000, `${believed} ms`)
  })

  test('a lease that is gone proves nothing, and the record continues with another', async () => {
    await using etcd = await startEtcd()
    const { revision, recordedMs } = await leaveRecord(etcd.endpoints)
    await pause(2_000)
    using next = new Keeper(etcd.endpoints)
    const lease = async () => {
      const { kvs } = await next.client.range({ key: Buffer.from(key) })
      return BigInt(JSON.parse(String(kvs[0]?.value)).lease)
    }
    const old = await lease()
    await next.client.revokeLease(old)
    const startedAt = performance.now()
    await next.lead()
    const [believed, most] = [next.ageMs(revision), recordedMs + performance.now() - startedAt]
    assert.ok(believed >= 2_000 && believed <= most, `${believed} ms, at most ${most}`)
    assert.notEqual(await lease(), old)
    assert.ok((await next.client.leaseTtl(await lease())).ttlSeconds > 0)
  })

  test('a record that was copied to another etcd proves nothing there', async () => {
    await using etcd = await startEtcd()
    await using other = await startEtcd()
    const { revision } = await leaveRecord(etcd.endpoints)
    using source = new Keeper(etcd.endpoints)
    using next = new Keeper(other.endpoints)
    const { kvs } = await source.client.range({ key: Buffer.from(key) })
    const put = {
      type: 'put' as const,
      key: Buffer.from(key),
      value: kvs[0]?.value ?? assert.fail(),
    }
    for (let times = 0; times < 20; times++) await next.client.txn({ success: [put] })
    await next.lead()
    assert.ok(next.ageMs(revision) < 100)
    assert.match(next.warnings[0]?.msg ?? '', /is invalid/)
    // It is replaced by a valid one.
    using after = new Keeper(other.endpoints)
    await after.lead()
    assert.deepEqual(after.warnings, [])
  })

  test('a revision noted between the renewal of the lease and the write of the record does not age by it', async () => {
    await using etcd = await startEtcd()
    using keeper = new Keeper(etcd.endpoints)
    await keeper.lead()
    const noted = Promise.withResolvers<{ readonly revision: number; readonly at: number }>()
    keeper.onRenewed = async () => {
      keeper.onRenewed = () => {}
      await pause(4_000)
      keeper.lostMs += 4_000
      await keeper.client.txn({
        success: [{ type: 'put', key: Buffer.from('/x'), value: markKey }],
      })
      noted.resolve({ revision: await keeper.note(), at: performance.now() })
    }
    const ending = new AbortController()
    const running = keeper.record.run({ everyMs: () => 100, signal: ending.signal })
    const { revision, at } = await noted.promise
    ending.abort()
    await running
    using next = new Keeper(etcd.endpoints)
    await next.lead()
    const [believed, actual] = [next.ageMs(revision), performance.now() - at]
    assert.ok(believed <= actual, `${believed} ms instead of ${actual}`)
  })

  test('a wall clock that jumps while the record is being written is logged as a warning', async () => {
    await using etcd = await startEtcd()
    using keeper = new Keeper(etcd.endpoints)
    await keeper.lead()
    keeper.onRenewed = () => {
      keeper.wallErrorMs = -hour
    }
    const ending = new AbortController()
    const running = keeper.record.run({ everyMs: () => 100, signal: ending.signal })
    const isWarned = () => /has jumped/.test(keeper.warnings[0]?.msg ?? '')
    await eventually('it warns', isWarned, 3_000).finally(() => ending.abort())
    await running
  })

  test('the mark of the history is renewed with the record, whether there are compactions or not', async () => {
    await using etcd = await startEtcd()
    using keeper = new Keeper(etcd.endpoints)
    await keeper.lead()
    const versions = async () => {
      const read = [markKey, Buffer.from(key)].map((of) => keeper.client.range({ key: of }))
      return (await Promise.all(read)).map(({ kvs }) => kvs[0]?.version ?? 0)
    }
    const ending = new AbortController()
    const running = keeper.record.run({ everyMs: () => 100, signal: ending.signal })
    try {
      await eventually('three marks', async () => ((await versions())[0] ?? 0) >= 3, 10_000)
      const [marks = 0, records = 0] = await versions()
      assert.ok(records > marks * 2, `${marks} marks in ${records} records`)
    } finally {
      ending.abort()
      await running
    }
  })

  test('a replica that was elected and cannot read the record does not count as sweeping', async () => {
    await using etcd = await startEtcd()
    const client = new EtcdClient({ endpoints: etcd.endpoints, defaultTimeoutMs: 5_000 })
    let isBlocked = true
    const range: EtcdClient['range'] = (request, options) => {
      const isRecord = Buffer.from(request.key).toString() === key
      const error = new EtcdError({ kind: 'unavailable', message: 'blocked' })
      return isBlocked && isRecord ? Promise.reject(error) : client.range(request, options)
    }
    const storage = new EtcdStorage({ client, prefix: '/tidings', onCorrupt: () => assert.fail() })
    const warnings: string[] = []
    const ending = new AbortController()
    const retention = new Retention({
      client: new Proxy(client, {
        get: (_, name: keyof EtcdClient) => {
          const member = name === 'range' ? range : client[name]
          return typeof member === 'function' ? member.bind(client) : member
        },
      }),
      storage,
      deletes: storage,
      prefix: '/tidings',
      replica: 'r',
      policy: RetentionPolicy.uniform(hour),
      compactionIntervalMs: 0,
      log: { ...silentLog, warn: (msg) => void warnings.push(msg) },
    })
    const running = retention.run(ending.signal)
    try {
      await eventually('a warning is logged', () => warnings.length > 0, 10_000)
      assert.match(warnings[0] ?? '', /Cannot read the age record/)
      assert.ok(retention.isLeader)
      const { isLeader, sweepLagMs } = retention.status
      assert.deepEqual({ isLeader, sweepLagMs }, { isLeader: false, sweepLagMs: undefined })
      isBlocked = false
      await eventually('it sweeps', () => retention.status.isLeader, 10_000)
      assert.equal(retention.status.sweepLagMs, 0)
      assert.equal(warnings.length, 1)
    } finally {
      ending.abort()
      await running
      await storage.close()
      client.close()
    }
  })

  test('only the leader writes the record', async () => {
    await using etcd = await startEtcd()
    await leaveRecord(etcd.endpoints)
    using second = new Keeper(etcd.endpoints)
    const { kvs } = await second.client.range({ key: Buffer.from(key) })
    await second.record.begin(termOf(kvs[0]?.modRevision ?? 0))
    await second.record.begin(termOf(0, 500))
    const { kvs: after } = await second.client.range({ key: Buffer.from(key) })
    assert.equal(after[0]?.modRevision, kvs[0]?.modRevision)
  })

  test('in a full etcd, the lease counts from the last record that could be written', async () => {
    await using etcd = await startSmallEtcd()
    using keeper = new Keeper(etcd.endpoints)
    const revision = await keeper.note()
    const knownSince = performance.now()
    await keeper.lead()
    const ending = new AbortController()
    const running = keeper.record.run({ everyMs: () => 500, signal: ending.signal })
    await fillUp(keeper.client)
    await pause(5_000)
    ending.abort()
    await running
    using next = new Keeper(etcd.endpoints)
    assert.equal(await next.record.begin(termOf(0, 500)), true)
    const [believed, actual] = [next.ageMs(revision), performance.now() - knownSince]
    assert.ok(believed <= actual, `${believed} ms instead of ${actual}`)
    assert.ok(believed >= actual - 3_500, `${believed} ms instead of ${actual}`)
  })

  test('the record is written only over connections that are verified to lead to the same history', async () => {
    await using etcd = await startEtcd()
    let verified = 0
    let asked = 0
    const history = { verified: () => verified, verify: () => void asked++ }
    using keeper = new Keeper(etcd.endpoints, 0, history)
    await keeper.lead()
    const written = async () => {
      const { kvs } = await keeper.client.range({ key: Buffer.from(key) })
      return kvs[0]?.modRevision ?? 0
    }
    assert.deepEqual([await written(), asked], [0, 1])
    const ending = new AbortController()
    const running = keeper.record.run({ everyMs: () => 200, signal: ending.signal })
    try {
      verified = keeper.client.newestConnection
      await eventually('the record is written', async () => (await written()) > 0, 5_000)
      // Another history may be there when etcd is back.
      await etcd.member(0).kill()
      await pause(500)
      await etcd.member(0).start()
      const before = await written()
      const askedBefore = asked
      await eventually('a verification is requested', () => asked > askedBefore + 1, 10_000)
      assert.equal(await written(), before)
      verified = keeper.client.newestConnection
      await eventually('the record is written again', async () => (await written()) > before, 5_000)
    } finally {
      ending.abort()
      await running
    }
  })

  test('a replica that discarded its history counts ages from then on, or from the record', async () => {
    const lifetimeMs = 5_000
    await using etcd = await startEtcd()
    const client = new EtcdClient({ endpoints: etcd.endpoints, defaultTimeoutMs: 5_000 })
    const storage = new EtcdStorage({ client, prefix: '/tidings', onCorrupt: () => assert.fail() })
    const ending = new AbortController()
    const retention = new Retention({
      client,
      storage,
      deletes: storage,
      prefix: '/tidings',
      replica: 'r',
      policy: RetentionPolicy.uniform(lifetimeMs),
      compactionIntervalMs: 0,
      log: silentLog,
    })
    const running = retention.run(ending.signal)
    try {
      await eventually('it sweeps', () => retention.isLeader, 10_000)
      const event = eventKey('ages', 'e')
      await storage.create(event, eventBody(event, 'first'))
      const isThere = () => storage.get(event, ending).then(Boolean, () => false)
      await pause(3_000)
      // The record of the other history does not contain the event.
      await client.txn({ success: [{ type: 'delete', key: Buffer.from(key) }] })
      retention.forget()
      const forgotAt = performance.now()
      await eventually('it goes', async () => !(await isThere()), 20_000)
      const ms = performance.now() - forgotAt
      assert.ok(ms >= lifetimeMs - 100, `${ms} ms after the history was discarded`)
      assert.ok(retention.isLeader)
    } finally {
      ending.abort()
      await running
      await storage.close()
      client.close()
    }
  })

  test('a replica whose wall clock differs from the sweeper’s reports the skew', async () => {
    await using etcd = await startEtcd()
    using sweeper = new Keeper(etcd.endpoints)
    await sweeper.lead()
    const ending = new AbortController()
    const options = { everyMs: () => 300, signal: ending.signal }
    const errors = [-hour, 0, hour]
    const keepers = errors.map((error) => new Keeper(etcd.endpoints, error))
    const running = [sweeper, ...keepers].map(({ record }) => record.run(options))
    try {
      const all = () => keepers.every(({ record }) => record.clockSkewMs !== undefined)
      await eventually('all have seen the record change', all, 20_000)
      for (const [at, { record }] of keepers.entries()) {
        const error = errors[at] ?? 0
        const { clockSkewMs = assert.fail() } = record
        assert.ok(Math.abs(clockSkewMs - error) < hour / 10, `${clockSkewMs} instead of ${error}`)
      }
      assert.ok(Math.abs(sweeper.record.clockSkewMs ?? hour) < hour / 10)
      const warned = () => keepers.map(({ warnings }) => warnings.length)
      await eventually('two warn', () => warned()[0] === 1 && warned()[2] === 1, 10_000)
      assert.deepEqual([warned(), sweeper.warnings.length], [[1, 0, 1], 0])
      sweeper.wallErrorMs = -hour
      const isWarned = () => /has jumped/.test(sweeper.warnings[0]?.msg ?? '')
      await eventually('the sweeper warns', isWarned, 10_000)
    } finally {
      ending.abort()
      await Promise.all(running)
      for (const keeper of keepers) keeper[Symbol.dispose]()
    }
  })
})
