import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { etcdBinary } from './etcd.ts'

const folder = join(import.meta.dirname, '../../.cache/servers')

export interface EtcdVersion {
  readonly name: string
  readonly binary: string
  /** For `skip` of a test: why it cannot run here. */
  readonly skip: string | false
}

/** The etcd that all tests run, and those of other versions that are in `.cache/servers`. */
export const etcdVersions: readonly EtcdVersion[] = [
  { name: 'etcd', binary: etcdBinary, skip: false },
  ...['3.6.14', '3.7.1'].map(versionOf),
]

export function versionOf(version: string): EtcdVersion {
  const binary = join(folder, `etcd-${version}`)
  const name = `etcd ${version}`
  return { name, binary, skip: existsSync(binary) ? false : `${binary} is not there` }
}
