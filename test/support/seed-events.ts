import type { EtcdClient } from '../../src/etcd/client.ts'
import { EventKeys } from '../../src/storage/etcd/keys.ts'
import { prepareValue, sealValue } from '../../src/storage/stored-form.ts'
import { type MadeCluster, madeEvent } from './made-cluster.ts'

export interface SeedOptions extends Partial<MadeCluster> {
  readonly count: number
  /** Only the events from this number on, and before that one. */
  readonly from?: number
  readonly to?: number
  /** `--etcd-prefix` of the server. */
  readonly prefix?: string
  /** The clusters that the events are of, by turns. */
  readonly clusters?: readonly string[]
}

/** etcd accepts 128 operations in one transaction. */
const PER_TXN = 128
const TXNS_AT_ONCE = 8
const WEEK_MS = 7 * 24 * 3_600_000

/**
 * Writes the events of a made cluster straight into etcd, as a server stores them: a million take
 * about a minute. They are a week old at most, so that the server needs `--event-ttl` of more than that.
 */
export async function seedEvents(client: EtcdClient, options: SeedOptions): Promise<void> {
  const { count, from: first = 0, to: end = count } = options
  const { prefix = '/tidings', clusters = ['local'] } = options
  const { untilMs = Date.now(), spanMs = WEEK_MS } = options
  const keys = new EventKeys(prefix)
  let next = first
  const put = (n: number, index: number) => {
    const stored = storedEvent({ count, untilMs, spanMs }, n)
    const cluster = clusters[n % clusters.length] ?? 'local'
    return {
      type: 'put' as const,
      key: Buffer.from(keys.format({ cluster, ...stored })),
      value: sealValue(prepareValue(stored.body), Date.now(), index),
    }
  }
  const write = async () => {
    while (next < end) {
      const from = next
      next = Math.min(end, from + PER_TXN)
      const success = Array.from({ length: next - from }, (_, index) => put(from + index, index))
      await client.txn({ success }, { timeoutMs: 60_000 })
    }
  }
  await Promise.all(Array.from({ length: TXNS_AT_ONCE }, write))
}

/** Event `n` in the form in which servers store it. */
export function storedEvent(
  cluster: MadeCluster,
  n: number,
): { readonly namespace: string; readonly name: string; readonly body: Buffer } {
  const { metadata, apiVersion: _, kind: __, ...fields } = madeEvent(cluster, n)
  const { name, namespace } = metadata
  const uid = `6f0b4e0e-0000-4000-8000-${n.toString(16).padStart(12, '0')}`
  const time = fields['eventTime'] ?? fields['deprecatedLastTimestamp']
  const creationTimestamp = `${String(time).slice(0, 19)}Z`
  const event = { metadata: { name, namespace, uid, creationTimestamp }, ...fields }
  return { name, namespace, body: Buffer.from(JSON.stringify(event)) }
}
