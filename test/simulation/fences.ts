import type { Commit, CommittedTxn } from './etcd/contract.ts'

/** etcd's number for a compare of the mod revision. */
const modRevisionTarget = 2

/**
 * The revision of the leader's key that each put of a transaction requires; undefined for a put
 * that requires none. `leaderEnd` is the end of that key.
 */
export function fencesOf(
  command: Commit['command'],
  leaderEnd: string,
): ReadonlyMap<string, number | undefined> {
  const fences = new Map<string, number | undefined>()
  const walk = (txn: CommittedTxn, outer: number | undefined): void => {
    const compare = txn.compares.find(
      ({ key, target }) => target === modRevisionTarget && key.endsWith(leaderEnd),
    )
    const fence = compare?.number ?? outer
    for (const op of txn.success) {
      if (op.kind === 'txn') walk(op, fence)
      else fences.set(op.key, fence)
    }
  }
  if (command !== undefined) walk(command, undefined)
  return fences
}
