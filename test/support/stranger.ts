import { wrapEnvelope } from '../../src/codec/struct/kube-protobuf.ts'
import { EtcdClient, prefixEnd } from '../../src/etcd/client.ts'
import type { EtcdCluster } from './etcd.ts'

/** A value as a Kubernetes API server stores it: a magic number, then a protobuf envelope. */
export const kubernetesValue: Buffer = wrapEnvelope(
  { apiVersion: 'v1', kind: 'Event' },
  Buffer.from('0a0a0a036170691a036e7331', 'hex'),
)

/** Another program that uses the same etcd. */
export class Stranger implements Disposable {
  readonly #client: EtcdClient
  readonly #endpoint: string

  constructor(etcd: EtcdCluster) {
    this.#client = new EtcdClient({ endpoints: etcd.endpoints, defaultTimeoutMs: 5000 })
    this.#endpoint = etcd.endpoints[0] ?? ''
  }

  async put(...entries: readonly (readonly [key: string, value: Buffer])[]): Promise<void> {
    await this.#client.txn({
      success: entries.map(([key, value]) => ({ type: 'put', key: Buffer.from(key), value })),
    })
  }

  async read(key: string): Promise<Buffer | undefined> {
    return (await this.#client.range({ key: Buffer.from(key) })).kvs[0]?.value
  }

  /** Does what `etcdctl del --prefix` does. */
  async deleteAll(prefix: string): Promise<void> {
    const key = Buffer.from(prefix)
    const { kvs } = await this.#client.range({ key, rangeEnd: prefixEnd(key), keysOnly: true })
    await this.#client.txn({ success: kvs.map((kv) => ({ type: 'delete', key: kv.key })) })
  }

  /** Everything that changes etcd is a proposal: puts, deletes, leases and compactions. */
  async proposals(): Promise<number> {
    const metrics = await (await fetch(`${this.#endpoint}/metrics`)).text()
    return Number(/^etcd_server_proposals_applied_total (\S+)$/m.exec(metrics)?.[1])
  }

  [Symbol.dispose](): void {
    this.#client.close()
  }
}
