import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { etcdBinary } from '../test/support/etcd.ts'

export interface OtherEtcd {
  readonly version: string
  /** For the variable `ETCD` of a suite. */
  readonly program: string
}

// biome-ignore lint/style/noProcessEnv: where programs are that this project does not bring along.
const given = process.env['ETCDS']
/** Its programs are named `etcd-<version>`. */
const folder = resolve(given ?? join(import.meta.dirname, '../.cache/servers'))

/** Every etcd besides the usual one that tests can run with, oldest first. */
export const otherEtcds: readonly OtherEtcd[] = (existsSync(folder) ? readdirSync(folder) : [])
  .filter((name) => /^etcd-\d+\.\d+\.\d+$/.test(name))
  .map((name) => ({ version: name.slice('etcd-'.length), program: join(folder, name) }))
  .toSorted((one, other) => one.version.localeCompare(other.version, 'en', { numeric: true }))

/** Which versions of etcd a run tests, for people. */
export function testedEtcds(): string {
  const usual = versionOf(etcdBinary)
  if (otherEtcds.length === 0)
    return `tested with etcd ${usual} only: ${folder} has no etcd-<version>`
  const others = otherEtcds.map(({ version }) => version).join(' and ')
  return `tested with etcd ${usual}, and some suites with ${others}`
}

export function versionOf(program: string): string {
  const printed = execFileSync(program, ['--version'], { encoding: 'utf8' })
  return /^etcd Version: (\S+)/.exec(printed)?.[1] ?? 'of an unknown version'
}
