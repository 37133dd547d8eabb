import { EtcdClient } from '../../../src/etcd/client.ts'
import { EtcdStorage } from '../../../src/storage/etcd/etcd-storage.ts'
import { revisionOf } from '../../../src/storage/resource-version.ts'
import { startEtcdCluster } from '../../support/etcd.ts'
import { type StorageUnderTest, storageContract } from './storage-contract.ts'

storageContract('etcd storage, one member', () => makeStorage(1, true))
storageContract('etcd storage, three members', () => makeStorage(3, true))
storageContract('etcd storage without group commit', () => makeStorage(1, false))

async function makeStorage(members: number, groupCommit: boolean): Promise<StorageUnderTest> {
  const etcd = await startEtcdCluster(members)
  const client = new EtcdClient({ ...etcd, defaultTimeoutMs: 10_000 })
  const storage = new EtcdStorage({
    client,
    prefix: '/registry',
    groupCommit,
    onCorrupt: (key) => {
      throw new Error(`not an event: ${key}`)
    },
  })
  return {
    storage,
    forgetHistory: async () => {
      const { signal } = new AbortController()
      await client.compact(revisionOf(await storage.currentVersion({ signal })))
    },
    [Symbol.asyncDispose]: async () => {
      await storage.close()
      client.close()
      await etcd[Symbol.asyncDispose]()
    },
  }
}
