import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { type EtcdClient, prefixEnd } from '../../src/etcd/client.ts'
import { EtcdError } from '../../src/etcd/errors.ts'
import { type EtcdCluster, etcdctlBinary, startEtcdCluster } from './etcd.ts'

const quotaBytes = 4 * 1024 * 1024
const junk = Buffer.from('/junk/')
const run = promisify(execFile)

/** A cluster with a small quota. */
export function startSmallEtcd(size = 1): Promise<EtcdCluster> {
  return startEtcdCluster(size, { args: [`--quota-backend-bytes=${quotaBytes}`] })
}

/** Runs a command of an operator, with the endpoints set; resolves to its output. */
export async function etcdctl(etcd: EtcdCluster, command: string): Promise<string> {
  const endpoints = `--endpoints=${etcd.endpoints.join(',')}`
  const { stdout } = await run(etcdctlBinary, [endpoints, ...command.split(' ')])
  return stdout
}

/** Writes other keys until etcd is full. */
export async function fillUp(client: EtcdClient): Promise<void> {
  const value = Buffer.alloc(200_000)
  for (let number = 0; number < 500; number++) {
    const key = Buffer.concat([junk, Buffer.from(String(number))])
    try {
      await client.txn({ success: [{ type: 'put', key, value }] })
    } catch (error) {
      if (error instanceof EtcdError && error.kind === 'no-space') return
      throw error
    }
  }
  throw new Error('etcd is not full')
}

/** Deletes those keys, and does what the docs say. */
export async function makeRoom(etcd: EtcdCluster, client: EtcdClient): Promise<void> {
  const rangeEnd = prefixEnd(junk)
  const { revision } = await client.txn({ success: [{ type: 'delete', key: junk, rangeEnd }] })
  await etcdctl(etcd, `compact --physical ${revision}`)
  await etcdctl(etcd, 'defrag')
  await etcdctl(etcd, 'alarm disarm')
}
