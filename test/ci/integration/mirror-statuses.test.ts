/** What a replica shows of mirrors, from the records that replicas write to a real etcd. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EtcdClient } from '../../../src/etcd/client.ts'
import { silentLog } from '../../../src/lib/log/log.ts'
import type { MirrorRecordContent } from '../../../src/mirror/mirror-record.ts'
import { MirrorStatuses } from '../../../src/mirror/mirror-statuses.ts'
import { mirrorKey } from '../../../src/storage/etcd/keys.ts'
import { type EtcdCluster, startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { mirrorPrefix } from '../../support/mirror-replica.ts'

const following: MirrorRecordContent & { readonly replica: string } = {
  origin: 'o',
  epoch: 0,
  positions: { a: '5', b: '5' },
  state: 'Following',
  message: '',
  lagMs: 0,
  dropped: {},
  replica: 'r',
}

/** One replica that reads the records, on a clock that the test moves. */
class Reader implements AsyncDisposable {
  readonly statuses: MirrorStatuses
  readonly client: EtcdClient
  readonly #end = new AbortController()
  readonly #running: Promise<void>
  #now = 0
  #reads = 0

  constructor(etcd: EtcdCluster) {
    this.client = new EtcdClient({ endpoints: etcd.endpoints, defaultTimeoutMs: 1_000 })
    const range: EtcdClient['range'] = async (...args) => {
      const result = await this.client.range(...args)
      this.#reads++
      return result
    }
    this.statuses = new MirrorStatuses({
      client: { range },
      prefix: mirrorPrefix,
      streamsOf: () => ['a', 'b'],
      clock: { now: () => this.#now },
      log: silentLog,
      readEveryMs: 50,
    })
    this.#running = this.statuses.run(this.#end.signal)
  }

  get state(): string {
    return this.statuses.get('c').state
  }

  advance(ms: number): void {
    this.#now += ms
  }

  /** Resolves after a read that has begun later than this call. */
  async untilRead(): Promise<void> {
    const wanted = this.#reads + 2
    await eventually('the records are read', () => this.#reads >= wanted, 30_000)
  }

  async save(record: object): Promise<void> {
    const put = { type: 'put', key: Buffer.from(mirrorKey(mirrorPrefix, 'c')) } as const
    const value = Buffer.from(JSON.stringify(record))
    await this.client.txn({ compare: [], success: [{ ...put, value }] })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort()
    await this.#running
    this.client.close()
  }
}

test('a record from before the start is not a state, until a replica reports', async () => {
  await using etcd = await startEtcd()
  await using before = new Reader(etcd)
  await before.save(following)
  await using reader = new Reader(etcd)
  assert.equal(reader.state, 'Waiting')
  await reader.untilRead()
  const { state, message, hasSynced, lagMs } = reader.statuses.get('c')
  assert.deepEqual(
    { state, message, hasSynced, lagMs },
    {
      state: 'Waiting',
      message: 'no replica has reported since this one started',
      hasSynced: true,
      lagMs: undefined,
    },
  )
  await reader.save({ ...following, positions: { a: '6', b: '6' } })
  await reader.untilRead()
  assert.equal(reader.state, 'Following')
})

test('a mirror has synced when each of its namespaces has, and an idle one is not behind', async () => {
  await using etcd = await startEtcd()
  await using reader = new Reader(etcd)
  await reader.untilRead()
  await reader.save({ ...following, positions: { a: '5' }, state: 'Syncing', lagMs: 3_000 })
  await reader.untilRead()
  assert.equal(reader.statuses.get('c').hasSynced, false)
  reader.advance(2_000)
  assert.equal(reader.statuses.get('c').lagMs, 5_000)
  await reader.save(following)
  await reader.untilRead()
  reader.advance(9_000)
  const { state, hasSynced, lagMs } = reader.statuses.get('c')
  assert.deepEqual({ state, hasSynced, lagMs }, { state: 'Following', hasSynced: true, lagMs: 0 })
})

test('silence of all replicas is a stall, and an etcd that cannot be read is not', async () => {
  await using etcd = await startEtcd()
  await using reader = new Reader(etcd)
  await reader.untilRead()
  await reader.save(following)
  await reader.untilRead()
  etcd.member(0).pause()
  try {
    reader.advance(60_000)
    const { state, message, lagMs } = reader.statuses.get('c')
    assert.deepEqual(
      { state, message, lagMs },
      {
        state: 'Following',
        message: 'this replica has not been able to read etcd for 60 s',
        lagMs: 60_000,
      },
    )
  } finally {
    etcd.member(0).resume()
  }
  await reader.untilRead()
  assert.equal(reader.state, 'Following')
  for (let read = 0; read < 5; read++) {
    reader.advance(7_000)
    await reader.untilRead()
  }
  assert.deepEqual(
    [reader.state, reader.statuses.get('c').message],
    ['Stalled', 'no replica has reported for 30 s'],
  )
})
