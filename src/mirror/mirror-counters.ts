import { type DropReason, dropReasons, type WriteResult } from '../registry/mirrored-event.ts'
import type { OriginErrorKind } from './origin.ts'

const dropped: ReadonlySet<WriteResult> = new Set(dropReasons)

/** Counts the work of this replica for one cluster since its start. */
export class MirrorCounters {
  /**
   * Events of the origin, keyed by the outcome. Drops and truncation are present from the start, so
   * that the first one is an increase of its series.
   */
  readonly results: Partial<Record<WriteResult, number>> = Object.fromEntries(
    [...dropReasons, 'truncated'].map((reason) => [reason, 0]),
  )
  /** Failed writes that were repeated, including those that had to wait. */
  retries = 0
  /** Writes that had to wait because the cluster uses up its share. */
  throttled = 0
  /** Failed requests to the origin, keyed by kind. */
  readonly failures: Partial<Record<OriginErrorKind, number>> = {}
  listedPages = 0
  lists = 0
  watches = 0
  /** Writes rejected because another replica had been elected. */
  fenced = 0
  /** How often the origin was found to be replaced or restored to an older state. */
  restores = 0
  /** When an event was last stored, in milliseconds since 1970. */
  lastEventAtMs: number | undefined

  count(result: WriteResult): void {
    this.results[result] = (this.results[result] ?? 0) + 1
    if (result === 'stored' || result === 'truncated') this.lastEventAtMs = Date.now()
  }

  countFailure(kind: OriginErrorKind): void {
    this.failures[kind] = (this.failures[kind] ?? 0) + 1
  }

  /** What an operator should know about a healthy mirror; may be empty. */
  get notice(): string {
    const { truncated = 0 } = this.results
    if (truncated === 0) return ''
    return `${truncated} ${truncated === 1 ? 'event was' : 'events were'} truncated to --max-event-bytes`
  }

  /** Events that can never be stored, keyed by reason. */
  get dropped(): Partial<Record<DropReason, number>> {
    return Object.fromEntries(
      Object.entries(this.results).filter(
        ([result, count]) => count > 0 && dropped.has(result as WriteResult),
      ),
    )
  }
}
