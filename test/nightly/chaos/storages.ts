import type { CachedStorageOptions } from '../../../src/cache/cached-storage.ts'
import { silentLog } from '../../../src/lib/log/log.ts'
import { EtcdStorage } from '../../../src/storage/etcd/etcd-storage.ts'
import type { EventStorage, EventWrites, ReadStorage } from '../../../src/storage/storage.ts'
import { CachedEventStorage } from '../../support/cached-event-storage.ts'
import { PresentClient } from '../../support/present-client.ts'
import type { ReplicaParts } from '../../worlds/workload/contract.ts'
import { IteratedWatch } from './iterated-watch.ts'
import { planted } from './planted-storages.ts'

/** The prefix of all keys; the history is read back from here. */
export const prefix = '/registry'

/** The storage of one replica, with its own connections. */
export interface StorageInstance {
  readonly storage: ReadStorage & EventWrites
  readonly stats?: ReplicaParts['stats']
  /** Ends it in the middle of its work: to etcd this looks like a killed process. */
  crash(): void
  /** Ends it when the work in progress is done. */
  close(): Promise<void>
}

/** The first endpoint is the preferred one. */
export type MakeStorage = (endpoints: readonly string[]) => Promise<StorageInstance>

/** The storages of a run: real ones, and ones whose bug must be found. */
export const storages: Readonly<Record<string, MakeStorage>> = {
  etcd: (endpoints) => makeEtcdStorage(endpoints, {}),
  'etcd-ungrouped': (endpoints) => makeEtcdStorage(endpoints, { groupCommit: false }),
  cached: (endpoints) => makeCachedStorage(endpoints),
  'cached-small': (endpoints) => makeCachedStorage(endpoints, forgetful),
  ...Object.fromEntries(
    Object.entries(planted).map(([name, bug]): [string, MakeStorage] => [
      name,
      (endpoints) => makeEtcdStorage(endpoints, { bug }),
    ]),
  ),
}

const callTimeoutMs = 5_000

async function makeEtcdStorage(
  endpoints: readonly string[],
  options: {
    readonly groupCommit?: boolean
    readonly bug?: (storage: EventStorage) => Partial<EventStorage>
  },
): Promise<StorageInstance> {
  const etcd = new PresentClient({ endpoints, defaultTimeoutMs: callTimeoutMs })
  const { client, availability, quotaAlarm } = etcd
  const { groupCommit = true, bug } = options
  const storage = new EtcdStorage({
    client,
    availability,
    quotaAlarm,
    prefix,
    groupCommit,
    onCorrupt: failOnCorrupt,
  })
  return {
    storage: pulled(storage, bug?.(storage)),
    crash: () => etcd.close(),
    close: async () => {
      await storage.close()
      etcd.close()
    },
  }
}

/** A storage without a memory as clients use it, with some of its methods replaced. */
function pulled(
  storage: EventStorage,
  replaced: Partial<EventStorage> = {},
): ReadStorage & EventWrites {
  const {
    get = storage.get.bind(storage),
    list = storage.list.bind(storage),
    create = storage.create.bind(storage),
    update = storage.update.bind(storage),
    watch = storage.watch.bind(storage),
  } = replaced
  const remove = replaced.delete ?? storage.delete.bind(storage)
  return {
    get,
    list,
    create,
    update,
    delete: remove,
    currentVersion: (options) => storage.currentVersion(options),
    watch: (scope, options) =>
      new IteratedWatch((signal) => watch(scope, { ...options, signal }), options.signal),
  }
}

/** So little history that watches and lists have to read from etcd all the time. */
const forgetful = {
  historyBounds: { changesMax: 20, bytesMax: 1024 * 1024, promptMax: 5 },
  memoryBounds: { statesMax: 2, stateAgeMsMax: 1_000, stateBytesMax: 64 * 1024 },
} as const

async function makeCachedStorage(
  endpoints: readonly string[],
  bounds?: Pick<CachedStorageOptions, 'historyBounds' | 'memoryBounds'>,
): Promise<StorageInstance> {
  const etcd = new PresentClient({ endpoints, defaultTimeoutMs: callTimeoutMs })
  const { client, availability, quotaAlarm } = etcd
  const inner = new EtcdStorage({
    client,
    availability,
    quotaAlarm,
    prefix,
    onCorrupt: failOnCorrupt,
  })
  const cached = new CachedEventStorage({ inner, log: silentLog, ...bounds })
  const stop = new AbortController()
  const running = cached.run(stop.signal)
  await cached.synced
  return {
    storage: cached,
    stats: () => cached.stats(),
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
