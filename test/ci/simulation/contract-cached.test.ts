import { makeCachedStorage } from './contract.fixture.ts'

const { storageContract } = await import('../contract/storage-contract.ts')

storageContract('cached storage over simulated etcd', () => makeCachedStorage(200))
