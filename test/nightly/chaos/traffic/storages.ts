import { CachedStorage, type CachedStorageOptions } from '../../../../src/cache/cached-storage.ts'
import { silentLog } from '../../../../src/lib/log/log.ts'
import { EtcdStorage } from '../../../../src/storage/etcd/etcd-storage.ts'
import type { EventKey } from '../../../../src/storage/storage.ts'
import { PresentClient } from '../../../support/present-client.ts'
import { type Lie, lies, lying } from './lying-storages.ts'
import type { MakeStorage, StorageInstance } from './storage-instance.ts'

/** The prefix of all keys; the history is read back from here. */
export const prefix = '/registry'
/** The cluster of all events. */
export const cluster = 'local'

const callTimeoutMs = 5_000

/** The storages of a run: real ones, and ones whose bug must be found. */
export const storages: Readonly<Record<string, MakeStorage>> = {
  etcd: (endpoints) => Promise.resolve(makeEtcdStorage(endpoints, true)),
  'etcd-ungrouped': (endpoints) => Promise.resolve(makeEtcdStorage(endpoints, false)),
  cached: (endpoints) => makeCachedStorage(endpoints),
  'cached-small': (endpoints) => makeCachedStorage(endpoints, forgetful),
  ...Object.fromEntries(Object.entries(lies).map(([name, lie]) => [name, makeLying(lie)])),
}

function makeLying(lie: Lie): MakeStorage {
  return (endpoints) => Promise.resolve(lying(makeEtcdStorage(endpoints, true), lie))
}

function makeEtcdStorage(endpoints: readonly string[], groupCommit: boolean): StorageInstance {
  const etcd = new PresentClient({ endpoints, defaultTimeoutMs: callTimeoutMs })
  const { client, availability, quotaAlarm } = etcd
  const onCorrupt = failOnCorrupt
  const storage = new EtcdStorage({
    client,
    availability,
    quotaAlarm,
    prefix,
    groupCommit,
    onCorrupt,
  })
  return {
    storage,
    crash: () => etcd.close(),
    close: async () => {
      await storage.close()
      etcd.close()
    },
  }
}

/** So little history that watches and lists have to read from etcd all the time. */
const forgetful = {
  historyBounds: { changesMax: 20, bytesMax: 1024 * 1024, freshMax: 5 },
  memoryBounds: { statesMax: 2, stateAgeMsMax: 1_000, stateBytesMax: 64 * 1024 },
} as const

async function makeCachedStorage(
  endpoints: readonly string[],
  bounds?: Pick<CachedStorageOptions, 'historyBounds' | 'memoryBounds'>,
): Promise<StorageInstance> {
  const etcd = new PresentClient({ endpoints, defaultTimeoutMs: callTimeoutMs })
  const { client, availability, quotaAlarm } = etcd
  const recall = (key: EventKey) => cached.recall(key)
  const inner = new EtcdStorage({
    client,
    availability,
    quotaAlarm,
    prefix,
    recall,
    onCorrupt: failOnCorrupt,
  })
  const cached = new CachedStorage({ inner, log: silentLog, ...bounds })
  const stop = new AbortController()
  const running = cached.run(stop.signal)
  await cached.synced
  return {
    storage: cached,
    crash: () => {
      etcd.close()
      stop.abort()
    },
    close: async () => {
      await inner.close()
      stop.abort()
      await running
      etcd.close()
    },
  }
}

/** No other program writes here, so every value must be readable. */
function failOnCorrupt(key: Buffer): never {
  throw new Error(`not an event as we store them: ${key.toString()}`)
}
