import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, mock, test } from 'node:test'
import type { Term } from '../election/term.ts'
import type { KeyValue, RangeResult, Txn, TxnResult } from '../etcd/client.ts'
import { EtcdError } from '../etcd/errors.ts'
import { silentLog } from '../lib/log/log.ts'
import { type Version, versionOfState } from '../storage/resource-version.ts'
import { Compactor } from './compactor.ts'
import { Timeline } from './timeline.ts'

const time = { now: 0 }
const intervalMs = 10_000

async function settle(): Promise<void> {
  for (let tick = 0; tick < 5; tick++) await new Promise((resolve) => setImmediate(resolve))
}

/** An etcd with an announcement, a revision that tests advance, and a log of compactions. */
class SmallEtcd {
  revision = 100
  announcedAt = 0
  leaderRevision = 1
  readonly compactions: { readonly at: number; readonly revision: number }[] = []
  compactedRevision = 0
  failures: EtcdError[] = []
  isFull = false

  async range(): Promise<RangeResult> {
    const kv = { modRevision: this.announcedAt } as KeyValue
    const kvs = this.announcedAt === 0 ? [] : [kv]
    return { revision: this.revision, kvs, more: false, count: kvs.length }
  }

  async txn(txn: Txn): Promise<TxnResult> {
    if (this.isFull) {
      throw new EtcdError({ kind: 'no-space', message: 'space exceeded', mayHaveBeenApplied: true })
    }
    const [own, leader] = txn.compare ?? []
    const succeeded = own?.to === this.announcedAt && leader?.to === this.leaderRevision
    if (succeeded) this.announcedAt = ++this.revision
    return { revision: this.revision, succeeded, results: [] }
  }

  async compact(revision: number): Promise<void> {
    const failure = this.failures.shift()
    if (failure !== undefined) throw failure
    if (revision <= this.compactedRevision) {
      throw new EtcdError({ kind: 'compacted', message: 'has been compacted' })
    }
    this.compactedRevision = revision
    this.compactions.push({ at: time.now, revision })
  }
}

function makeReplica(etcd: SmallEtcd, termRevision = 1, neededAfter?: () => Version | undefined) {
  const timeline = new Timeline({ now: () => time.now })
  const compactor = new Compactor({
    client: etcd,
    key: '/t/compaction',
    leaderKey: '/t/sweeper',
    replica: 'r',
    intervalMs,
    neededAfter,
    timeline,
    clock: { now: () => time.now },
    log: silentLog,
  })
  const lead = () => {
    const ending = new AbortController()
    const term: Term = {
      signal: ending.signal,
      revision: termRevision,
      heldUntil: Number.POSITIVE_INFINITY,
      isHeld: () => !ending.signal.aborted,
    }
    const running = compactor.run(term)
    return async () => {
      ending.abort()
      await running
    }
  }
  return { compactor, timeline, lead }
}

/** Each second: `writes` new revisions, and every replica notes the newest one. */
async function advance(
  etcd: SmallEtcd,
  replicas: readonly { readonly timeline: Timeline }[],
  options: { readonly seconds: number; readonly writes: number },
): Promise<void> {
  for (let second = 0; second < options.seconds; second++) {
    etcd.revision += options.writes
    for (const { timeline } of replicas) {
      timeline.note(versionOfState(etcd.revision), { requestedAt: time.now, respondedAt: time.now })
    }
    time.now += 1_000
    mock.timers.tick(1_000)
    await settle()
  }
}

describe('compactor', () => {
  beforeEach(() => {
    time.now = 0
    mock.timers.enable({ apis: ['setTimeout'] })
  })
  afterEach(() => mock.timers.reset())

  test('compacts etcd once per interval, to the revision of one interval ago', async () => {
    const etcd = new SmallEtcd()
    const replica = makeReplica(etcd)
    const end = replica.lead()
    await advance(etcd, [replica], { seconds: 9, writes: 5 })
    assert.deepEqual(etcd.compactions, [])
    await advance(etcd, [replica], { seconds: 36, writes: 5 })
    assert.deepEqual(
      etcd.compactions.map(({ at }) => at),
      [10_000, 20_000, 30_000, 40_000],
    )
    for (const { at, revision } of etcd.compactions) {
      const kept = etcd.revision - revision
      assert.ok(kept >= 5 * ((time.now - at) / 1_000 + 9), `${kept} revisions kept`)
    }
    assert.equal(replica.compactor.count, 4)
    await end()
  })

  test('keeps the changes that are still needed', async () => {
    const etcd = new SmallEtcd()
    const needed: { after: Version | undefined } = { after: versionOfState(120) }
    const replica = makeReplica(etcd, 1, () => needed.after)
    const end = replica.lead()
    await advance(etcd, [replica], { seconds: 45, writes: 5 })
    assert.ok(etcd.compactedRevision <= 120, String(etcd.compactedRevision))
    needed.after = undefined
    await advance(etcd, [replica], { seconds: 15, writes: 5 })
    assert.ok(etcd.compactedRevision > 200, String(etcd.compactedRevision))
    await end()
  })

  test('neither skips nor repeats a compaction when the leader changes', async () => {
    const etcd = new SmallEtcd()
    const replicas = [makeReplica(etcd), makeReplica(etcd), makeReplica(etcd)]
    for (let round = 0; round < 20; round++) {
      const end = replicas[round % 3]?.lead()
      await advance(etcd, replicas, { seconds: 3, writes: 5 })
      await end?.()
    }
    const gaps = etcd.compactions.map(
      ({ at }, index) => at - (etcd.compactions[index - 1]?.at ?? 0),
    )
    assert.ok(
      gaps.every((gap) => gap >= intervalMs && gap <= intervalMs + 4_000),
      `${gaps}`,
    )
  })

  test('does not compact before it has been up for an interval', async () => {
    const etcd = new SmallEtcd()
    const old = makeReplica(etcd)
    await advance(etcd, [old], { seconds: 30, writes: 5 })
    const fresh = makeReplica(etcd)
    const end = fresh.lead()
    await advance(etcd, [old, fresh], { seconds: 9, writes: 5 })
    assert.deepEqual(etcd.compactions, [])
    await advance(etcd, [old, fresh], { seconds: 2, writes: 5 })
    assert.equal(etcd.compactions.length, 1)
    await end()
  })

  test('writes nothing to an idle store', async () => {
    const etcd = new SmallEtcd()
    const replica = makeReplica(etcd)
    const end = replica.lead()
    await advance(etcd, [replica], { seconds: 100, writes: 0 })
    assert.equal(etcd.compactions.length, 1)
    assert.equal(etcd.revision, 101)
    await end()
  })

  test('accepts an etcd that is already compacted further', async () => {
    const etcd = new SmallEtcd()
    const replica = makeReplica(etcd)
    const end = replica.lead()
    etcd.compactedRevision = 1_000
    await advance(etcd, [replica], { seconds: 25, writes: 5 })
    assert.deepEqual([etcd.compactions, replica.compactor.count], [[], 0])
    etcd.compactedRevision = 0
    await advance(etcd, [replica], { seconds: 12, writes: 5 })
    assert.equal(replica.compactor.count, 1)
    await end()
  })

  test('retries a failed compaction', async () => {
    const etcd = new SmallEtcd()
    const replica = makeReplica(etcd)
    const end = replica.lead()
    etcd.failures = [1, 2].map(() => new EtcdError({ kind: 'unavailable', message: 'down' }))
    await advance(etcd, [replica], { seconds: 13, writes: 5 })
    assert.equal(etcd.compactions.length, 1)
    await end()
  })

  test('announces and compacts nothing after its term is lost', async () => {
    const etcd = new SmallEtcd()
    const replica = makeReplica(etcd)
    etcd.leaderRevision = 55
    const end = replica.lead()
    await advance(etcd, [replica], { seconds: 30, writes: 5 })
    assert.deepEqual([etcd.compactions, etcd.announcedAt], [[], 0])
    await end()
  })

  test('compacts a full etcd without an announcement, still once per interval', async () => {
    const etcd = new SmallEtcd()
    etcd.isFull = true
    const replica = makeReplica(etcd)
    const end = replica.lead()
    await advance(etcd, [replica], { seconds: 45, writes: 5 })
    assert.deepEqual(
      etcd.compactions.map(({ at }) => at),
      [10_000, 20_000, 30_000, 40_000],
    )
    assert.equal(etcd.announcedAt, 0)
    etcd.isFull = false
    await advance(etcd, [replica], { seconds: 10, writes: 5 })
    assert.deepEqual([etcd.compactions.length, etcd.announcedAt > 0], [5, true])
    await end()
  })
})
