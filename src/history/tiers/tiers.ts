/** Where the two tiers meet: memory has what was seen lately, and the archive what was seen before. */
import type { Totals } from '../../retention/account/totals.ts'
import type { RetentionPolicy } from '../../retention/policy.ts'
import type { EventScope } from '../../storage/storage.ts'
import type { Pointer } from '../manifest.ts'

/** Reporters' clocks may be ahead: their events expire before they are as old as they say. */
const AHEAD_MS_MAX = 10 * 60_000
/** `since=1h` with a lifetime of one hour is of memory, even if the request had to wait. */
const WAIT_MS_MAX = 5_000
/** Events are written some time after they were seen. */
export const LATE_MS_MAX: number = 2 * 60_000

export interface WindowInputs {
  readonly policy: Pick<RetentionPolicy, 'shortestMs'>
  readonly totals: Totals
  readonly pointer: Pick<Pointer, 'positionAtMs'>
  readonly nowMs: number
}

/** Negative infinity when memory has everything. */
export interface Tiers {
  /** What reaches no further back is read from memory alone. */
  readonly memoryFromMs: number
  /** What does is counted in the archive before this time, and in memory from then on. */
  readonly splitMs: number
}

export function tiersOf(
  scope: EventScope,
  { policy, totals, pointer, nowMs }: WindowInputs,
): Tiers {
  const { positionAtMs } = pointer
  // Nothing expires before it is archived, however long ago it was due.
  if (hasEvicted(scope, totals)) {
    return { memoryFromMs: positionAtMs - WAIT_MS_MAX, splitMs: positionAtMs }
  }
  const { shortestMs = Number.POSITIVE_INFINITY } = policy
  const expiredMs = nowMs - shortestMs
  const completeMs = Math.min(expiredMs, positionAtMs)
  const aheadMs = Math.min(AHEAD_MS_MAX, shortestMs / 2)
  // Preferably when no clock is ahead any more, and no write is late.
  const wantedMs = Math.min(expiredMs + aheadMs, positionAtMs - LATE_MS_MAX)
  return { memoryFromMs: completeMs - WAIT_MS_MAX, splitMs: Math.max(wantedMs, completeMs) }
}

function hasEvicted({ cluster, namespace }: EventScope, totals: Totals): boolean {
  if (cluster === undefined) return totals.total('clusters') > 0
  const isOfCluster = namespace === undefined
  const kind = isOfCluster ? 'clusters' : 'namespaces'
  const name = isOfCluster ? cluster : `${cluster}/${namespace}`
  return totals.get(kind, name) > 0 || totals.hasOthers(kind)
}
