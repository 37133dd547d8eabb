import { type DropReason, dropReasons, type WriteResult } from '../registry/mirrored-event.ts'
import type { OriginErrorKind } from './origin.ts'

const dropped: ReadonlySet<WriteResult> = new Set(dropReasons)

/** What a replica has done for one cluster since its start, for metrics. */
export class MirrorCounters {
  /**
   * Events of the origin by what became of them. Drops and truncation are among them from the
   * start: the first one must be an increase of its series.
   */
  readonly results: Partial<Record<WriteResult, number>> = Object.fromEntries(
    [...dropReasons, 'truncated'].map((reason) => [reason, 0]),
  )
  /** Failed writes that were repeated, those that had to wait included. */
  retries = 0
  /** How often a write had to wait because the cluster stores as much as it may. */
  throttled = 0
  /** Requests to the origin that failed, by kind. */
  readonly failures: Partial<Record<OriginErrorKind, number>> = {}
  listedPages = 0
  /** Lists from the start. */
  lists = 0
  watches = 0
  /** Writes that were refused because another replica had been elected. */
  fenced = 0
  /** How often the origin was found to have started over from an older state. */
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

  /** What an operator should know of a mirror that is well; empty when there is nothing. */
  get notice(): string {
    const { truncated = 0 } = this.results
    if (truncated === 0) return ''
    return `${truncated} ${truncated === 1 ? 'event was' : 'events were'} truncated to --max-event-bytes`
  }

  /** Events that were not stored and never will be, by reason. */
  get dropped(): Partial<Record<DropReason, number>> {
    return Object.fromEntries(
      Object.entries(this.results).filter(
        ([result, count]) => count > 0 && dropped.has(result as WriteResult),
      ),
    )
  }
}
