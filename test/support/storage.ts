import { EtcdClient } from '../../src/etcd/client.ts'
import { silentLog } from '../../src/lib/log.ts'
import { EtcdStorage, type EtcdStorageOptions } from '../../src/storage/etcd-storage.ts'
import { reportSpace, Space } from '../../src/storage/space.ts'
import type { EtcdCluster } from './etcd.ts'

export const prefix = '/registry'

/** An EtcdStorage with a client of its own, as a replica has it, for `await using`. */
export class Replica implements AsyncDisposable {
  readonly client: EtcdClient
  readonly storage: EtcdStorage
  /** Keys that lists and watches left out. */
  readonly corrupt: string[] = []
  /** How many writes each transaction carried. */
  readonly batches: number[] = []
  readonly #end = new AbortController()

  constructor(
    etcd: Pick<EtcdCluster, 'endpoints'>,
    options?: Partial<Pick<EtcdStorageOptions, 'groupCommit' | 'recall'>>,
  ) {
    this.client = new EtcdClient({ endpoints: etcd.endpoints, defaultTimeoutMs: 10_000 })
    const space = new Space({
      ask: (timeoutMs) => reportSpace(this.client, { timeoutMs }),
      log: silentLog,
    })
    space.watch(this.#end.signal)
    this.storage = new EtcdStorage({
      client: this.client,
      prefix,
      space,
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
