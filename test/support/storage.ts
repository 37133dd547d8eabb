import { EtcdClient } from '../../src/etcd/client.ts'
import { silentLog } from '../../src/lib/log/log.ts'
import { EtcdStorage, type EtcdStorageOptions } from '../../src/storage/etcd/etcd-storage.ts'
import { readStatuses } from '../../src/storage/etcd/member-statuses.ts'
import { QuotaAlarm, spaceReport } from '../../src/storage/etcd/quota-alarm.ts'
import type { EtcdCluster } from './etcd.ts'

export const prefix = '/registry'

/** An EtcdStorage with its own client, as a replica has it, for `await using`. */
export class Replica implements AsyncDisposable {
  readonly client: EtcdClient
  readonly storage: EtcdStorage
  /** Keys that lists and watches skipped. */
  readonly corrupt: string[] = []
  /** The number of writes in each transaction. */
  readonly batches: number[] = []
  readonly #end = new AbortController()

  constructor(
    etcd: Pick<EtcdCluster, 'endpoints'>,
    options?: Pick<EtcdStorageOptions, 'groupCommit'>,
  ) {
    this.client = new EtcdClient({ endpoints: etcd.endpoints, defaultTimeoutMs: 10_000 })
    const quotaAlarm = new QuotaAlarm({
      readReport: async (timeoutMs) => spaceReport(await readStatuses(this.client, { timeoutMs })),
      log: silentLog,
    })
    quotaAlarm.watch(this.#end.signal)
    this.storage = new EtcdStorage({
      client: this.client,
      prefix,
      quotaAlarm,
      onCorrupt: (key) => this.corrupt.push(key.toString()),
      onCommit: (operations) => this.batches.push(operations),
      ...options,
    })
  }

  async revision(): Promise<number> {
    return (await this.client.range({ key: Buffer.from('x'), keysOnly: true })).revision
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort()
    await this.storage.close()
    this.client.close()
  }
}
