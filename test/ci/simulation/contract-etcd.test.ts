import { makeEtcdStorage } from './contract.fixture.ts'

const { storageContract } = await import('../contract/storage-contract.ts')

storageContract('etcd storage over simulated etcd', () => makeEtcdStorage(3))
