import { EtcdClient, prefixEnd, type WatchEvent } from '../../../../src/etcd/client.ts'
import { cluster, prefix } from '../traffic/storages.ts'
import { readValue } from '../traffic/values.ts'
import type { DeliveredChange } from '../traffic/watch-log.ts'

const readTimeoutMs = 60_000

/** A change in the history of etcd. */
export interface Change extends DeliveredChange {
  readonly version: number
  readonly revision: number
}

/** All changes of the cluster's events, in order, up to a revision and including it. */
export async function readHistory(
  endpoints: readonly string[],
  lastRevision: number,
): Promise<readonly Change[]> {
  const client = new EtcdClient({ endpoints, defaultTimeoutMs: readTimeoutMs })
  const signal = AbortSignal.timeout(readTimeoutMs)
  try {
    const key = Buffer.from(`${prefix}/events/${cluster}/`)
    const watch = client.watch({
      key,
      rangeEnd: prefixEnd(key),
      startRevision: 1,
      prevKv: true,
      signal,
    })
    const changes: Change[] = []
    watch.requestProgress()
    for await (const batch of watch) {
      for (const event of batch.events) {
        changes.push(changeOf(event, changes.at(-1), key.length))
      }
      if (batch.revision >= lastRevision) return changes
      watch.requestProgress()
    }
    throw new Error('the history of etcd could not be read')
  } finally {
    client.close()
  }
}

/**
 * The rule for versions implemented once more, independently, so that a bug of the product is not
 * repeated here: thousands are the revision; a put contains its index, a delete has the next one.
 */
function changeOf(event: WatchEvent, last: Change | undefined, rootLength: number): Change {
  const { kv } = event
  const revision = kv.modRevision
  const key = kv.key.toString('utf8', rootLength)
  const previous = event.prevKv && parseValue(event.prevKv.value).value
  if (event.type === 'delete') {
    const index = last?.revision === revision ? (last.version % 1000) + 1 : 0
    return { key, revision, version: revision * 1000 + index, value: undefined, previous }
  }
  const { index, value } = parseValue(kv.value)
  return { key, revision, version: revision * 1000 + index, value, previous }
}

function parseValue(stored: Buffer): { readonly index: number; readonly value: string } {
  const header = /^\{"w":\d+,"i":(\d+)\}\n/.exec(stored.toString('latin1', 0, 64))
  if (header === null) throw new Error(`not as we store it: ${stored.toString()}`)
  return { index: Number(header[1]), value: readValue(stored.subarray(header[0].length)) }
}
