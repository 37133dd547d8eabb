import { EtcdClient } from '../../../src/etcd/client.ts'
import { silentLog } from '../../../src/lib/log/log.ts'
import { EtcdStorage } from '../../../src/storage/etcd/etcd-storage.ts'
import { revisionOf } from '../../../src/storage/resource-version.ts'
import { CachedEventStorage } from '../../support/cached-event-storage.ts'
import { startEtcdCluster } from '../../support/etcd.ts'
import { eventBody, eventKey } from '../../support/stored-events.ts'
import { type StorageUnderTest, storageContract } from './storage-contract.ts'

storageContract('cached storage, one member', () => makeStorage(1))
storageContract('cached storage, three members', () => makeStorage(3))
storageContract('cached storage with hardly any history', () => makeStorage(1, 3))

async function makeStorage(members: number, changesMax = 200): Promise<StorageUnderTest> {
  const etcd = await startEtcdCluster(members)
  const client = new EtcdClient({ ...etcd, defaultTimeoutMs: 10_000 })
  const inner = new EtcdStorage({
    client,
    prefix: '/registry',
    onCorrupt: (key) => {
      throw new Error(`not an event: ${key}`)
    },
  })
  const storage: CachedEventStorage = new CachedEventStorage({
    inner,
    log: silentLog,
    historyBounds: { changesMax, bytesMax: 1024 * 1024 },
  })
  const end = new AbortController()
  const running = storage.run(end.signal)
  await storage.synced
  return {
    storage,
    forgetHistory: async () => {
      const { signal } = new AbortController()
      await client.compact(revisionOf(await storage.currentVersion({ signal })))
      // The history in memory must be evicted as well.
      const others = Array.from({ length: changesMax }, (_, n) => eventKey('later', `e-${n}`))
      await Promise.all(others.map((key) => storage.create(key, eventBody(key, 'x'))))
      await storage.get(eventKey('later', 'e-0'), { signal })
    },
    [Symbol.asyncDispose]: async () => {
      end.abort()
      await running
      await inner.close()
      client.close()
      await etcd[Symbol.asyncDispose]()
    },
  }
}
