/** When the events in memory were observed, for counts within a window. */
import { countBefore, type Occurrences, type Span, timeOf } from '../../storage/occurrences.ts'
import type { TimeWindow } from '../../storage/summary.ts'
import type { EventTable } from '../memory/event-table.ts'

/** The occurrences of one event within a window. */
interface WindowCount {
  readonly count: number
  /** 0 when no field of the event has a time, or when there are none. */
  readonly lastMs: number
  /** Some of them may have been outside of the window, or others within it. */
  readonly isEstimated: boolean
}

export class OccurrenceTimes {
  readonly #table: EventTable
  readonly #sinceMs: number
  readonly #untilMs: number

  constructor(table: EventTable, { sinceMs, untilMs }: TimeWindow) {
    this.#table = table
    this.#sinceMs = sinceMs ?? Number.NEGATIVE_INFINITY
    this.#untilMs = untilMs ?? Number.POSITIVE_INFINITY
  }

  /** Most events are within the window as a whole, and need not be decoded. */
  isWhole(slot: number): boolean {
    const lastMs = this.#table.lastSeenOf(slot)
    if (lastMs < this.#sinceMs || lastMs >= this.#untilMs) return false
    if (this.#sinceMs === Number.NEGATIVE_INFINITY) return true
    const firstMs = this.#table.firstSeenOf(slot)
    return firstMs >= this.#sinceMs || this.#table.occurrencesOf(slot) === 1
  }

  countOf(slot: number): number {
    const table = this.#table
    return this.isWhole(slot) ? table.occurrencesOf(slot) : this.within(slot).count
  }

  within(slot: number): WindowCount {
    const table = this.#table
    if (!this.isWhole(slot)) return this.#part(table.occurrencesIn(slot))
    const count = table.occurrencesOf(slot)
    return { count, lastMs: table.lastSeenOf(slot), isEstimated: false }
  }

  #part({ spans }: Occurrences): WindowCount {
    let count = 0
    let lastMs = 0
    let isEstimated = false
    for (const span of spans) {
      isEstimated ||= this.#isCut(span)
      const before = countBefore(span, this.#sinceMs)
      const end = countBefore(span, this.#untilMs)
      if (end <= before) continue
      lastMs = timeOf(span, end - 1)
      count += end - before
    }
    return { count, lastMs, isEstimated }
  }

  /** Whether it is unknown which of its occurrences were within the window. */
  #isCut({ firstMs, lastMs, count }: Span): boolean {
    const isCutAt = (ms: number) => firstMs < ms && ms <= lastMs
    return count > 1 && (isCutAt(this.#sinceMs) || isCutAt(this.#untilMs))
  }
}
