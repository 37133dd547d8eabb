import type { Change, Commit } from '../../worlds/checker/commit.ts'
import { EtcdFollower } from '../../worlds/etcd-follower.ts'

/** All changes below a folder up to a revision and including it, one commit for each revision. */
export async function readHistory(
  endpoints: readonly string[],
  { folder, lastRevision }: { readonly folder: string; readonly lastRevision: number },
): Promise<readonly Commit[]> {
  const commits = new Map<number, Change[]>()
  await using follower = new EtcdFollower({
    endpoints,
    folder,
    onChange: ({ type, kv }) => {
      const change = { type, key: kv.key, value: kv.value, lease: 0n }
      const known = commits.get(kv.modRevision)
      if (known === undefined) commits.set(kv.modRevision, [change])
      else known.push(change)
    },
  })
  await follower.reached(lastRevision)
  return [...commits].map(([revision, changes]) => ({ revision, at: 0, changes }))
}
