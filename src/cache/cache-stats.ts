import type { Version } from '../storage/resource-version.ts'

/** Figures for metrics. Counters count from the start of the process. */
export interface CacheStats {
  readonly objects: number
  readonly bodyBytes: number
  readonly version: Version
  /** Earlier states that are pinned for paged lists. */
  readonly statesKept: number
  readonly historyChanges: number
  readonly historyChangesMax: number
  readonly historyBytes: number
  readonly watchersWaiting: number
  readonly eventsReceived: number
  readonly eventsDispatched: number
  readonly initializations: number
  readonly revisionReads: number
  /** Reads from the store by watchers whose position was evicted from the ring. */
  readonly catchUpSteps: number
}
