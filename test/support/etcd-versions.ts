import { otherEtcds } from '../../tools/other-etcds.ts'
import { etcdBinary } from './etcd.ts'

export interface EtcdVersion {
  readonly name: string
  readonly binary: string
  /** For `skip` of a test: why it cannot run here. */
  readonly skip: string | false
}

/** The etcd that all tests run, and every other one that is there. */
export const etcdVersions: readonly EtcdVersion[] = [
  { name: 'etcd', binary: etcdBinary, skip: false },
  ...otherEtcds.map(({ version }) => versionOf(version)),
]

export function versionOf(version: string): EtcdVersion {
  const binary = otherEtcds.find((other) => other.version === version)?.program
  const skip = binary === undefined ? `there is no etcd-${version}` : false
  return { name: `etcd ${version}`, binary: binary ?? '', skip }
}
