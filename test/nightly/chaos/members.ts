import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { etcdctlBinary } from '../../support/etcd.ts'
import type { Violation } from './world.ts'

const run = promisify(execFile)

/**
 * All members must hold the same data, including the history: their hashes at one revision are
 * equal.
 */
export async function checkMembersAgree(
  endpoints: readonly string[],
  revision: number,
): Promise<readonly Violation[]> {
  const { stdout } = await run(etcdctlBinary, [
    `--endpoints=${endpoints.join(',')}`,
    'endpoint',
    'hashkv',
    `--rev=${revision}`,
    '--write-out=json',
  ])
  const answers = JSON.parse(stdout) as readonly { readonly HashKV: { readonly hash: number } }[]
  const hashes = answers.map(({ HashKV }) => HashKV.hash)
  if (hashes.length === endpoints.length && new Set(hashes).size === 1) return []
  const what = `at revision ${revision} the members' hashes are ${hashes.join(', ')}`
  return [{ guarantee: 'members agree', what, evidence: [] }]
}
