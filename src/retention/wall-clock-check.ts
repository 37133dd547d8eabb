/**
 * Compares the wall clocks of replicas to warn the operator when they disagree. Nothing else
 * depends on wall clocks.
 */
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import type { AgeNotes } from './age-notes.ts'

/** Differences up to this are not worth a warning. */
const skewToleratedMs = 10_000
const warnEveryMs = 60_000

export interface WallClockCheckOptions {
  readonly replica: string
  /** The clock of the timeline. */
  readonly clock: Clock
  /** Milliseconds since 1970. */
  readonly wallTime: () => number
  readonly log: Log
}

/** A record, dated by this replica's own clock. */
export interface DatedAges {
  readonly ages: AgeNotes | undefined
  /** The record was written at this time or earlier. */
  readonly writtenBy: number
  /** The record was written at this time or later; undefined when unknown. */
  readonly writtenAfter: number | undefined
}

export class WallClockCheck {
  readonly #options: WallClockCheckOptions
  #unprovedMs = 0
  #warnedAt = Number.NEGATIVE_INFINITY

  constructor(options: WallClockCheckOptions) {
    this.#options = options
  }

  /** See `AgeRecord.unprovedMs`. */
  get unprovedMs(): number {
    return this.#unprovedMs
  }

  /** See `AgeRecord.clockSkewMs`. */
  skewMs(record: DatedAges | undefined): number | undefined {
    const { ages, writtenBy, writtenAfter } = record ?? {}
    if (ages === undefined || writtenBy === undefined || writtenAfter === undefined) {
      return undefined
    }
    const now = this.#options.clock.now()
    const least = ages.wallTimeMs + now - writtenBy
    const most = ages.wallTimeMs + now - writtenAfter
    const wallTime = this.#options.wallTime()
    return wallTime - Math.min(Math.max(wallTime, least), most)
  }

  warnOfSkew(record: DatedAges | undefined): void {
    const { clock, log, replica } = this.#options
    const skewMs = this.skewMs(record) ?? 0
    if (Math.abs(skewMs) <= skewToleratedMs) return
    if (clock.now() < this.#warnedAt + warnEveryMs) return
    this.#warnedAt = clock.now()
    const sweeper = record?.ages?.replica
    const fields = { aheadSeconds: Math.round(skewMs / 1000), sweeper }
    log.warn(
      sweeper === replica
        ? 'The wall clock of this replica has jumped; events still expire on time. Check the clock'
        : 'The wall clock of this replica differs from that of the sweeping replica; events still expire on time. Check both clocks',
      fields,
    )
  }

  /**
   * Called when this replica begins to sweep. Warns when the wall clock and the proved time
   * disagree, since events that are due by the wall clock may then not be deleted yet.
   */
  compare(ages: AgeNotes, provedMs: number, isFirstSight: boolean): void {
    const { wallTime, clock, log } = this.#options
    const claimedMs = wallTime() - ages.wallTimeMs
    const unprovedMs = claimedMs - provedMs
    this.#unprovedMs = isFirstSight && unprovedMs > skewToleratedMs ? unprovedMs : 0
    if (!isFirstSight || Math.abs(unprovedMs) <= skewToleratedMs) return
    this.#warnedAt = clock.now()
    log.warn(
      unprovedMs > 0
        ? 'By the wall clock more time has passed since the last sweep than can be proved; the unproved time is not counted, and events expire late. Check the clock, unless all replicas and etcd were down'
        : 'By the wall clock less time has passed since the last sweep than is proved; the proved time counts. Check the clock',
      {
        claimedSeconds: Math.round(claimedMs / 1000),
        provedSeconds: Math.round(provedMs / 1000),
        writer: ages.replica,
      },
    )
  }
}
