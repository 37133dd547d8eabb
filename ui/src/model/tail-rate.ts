/** Measures how fast events arrive, and limits them to what a person can read. */

const SECOND_MS = 1_000
/** The rate is averaged over this time. */
const WINDOW_SECONDS = 5

/** Events per second, averaged over the last seconds. */
export class RateMeter {
  /** Indexed by second modulo the window. */
  readonly #counts = new Array<number>(WINDOW_SECONDS + 1).fill(0)
  #second = 0

  count(nowMs: number): void {
    this.#advance(nowMs)
    const slot = this.#second % this.#counts.length
    this.#counts[slot] = (this.#counts[slot] ?? 0) + 1
  }

  /** Counts whole seconds only: the current one is not over yet. */
  perSecond(nowMs: number): number {
    this.#advance(nowMs)
    const slot = this.#second % this.#counts.length
    const sum = this.#counts.reduce((all, one, index) => (index === slot ? all : all + one), 0)
    return sum / WINDOW_SECONDS
  }

  #advance(nowMs: number): void {
    const second = Math.floor(nowMs / SECOND_MS)
    const steps = Math.min(second - this.#second, this.#counts.length)
    for (let step = 0; step < steps; step++) this.#counts[(second - step) % this.#counts.length] = 0
    this.#second = Math.max(this.#second, second)
  }
}

/**
 * Events that were not shown because they arrived faster than a person can read or were too long.
 */
export interface Unshown {
  readonly normal: number
  readonly warning: number
  /** The type of these is unknown. */
  readonly tooLong: number
  readonly fromMs: number
  readonly toMs: number
}

export interface PaceBounds {
  /** All events are shown up to this rate. */
  readonly perSecond: number
  /** Number of events that can be shown at once after a quiet period. */
  readonly burst: number
  /** Part of the burst that is reserved for Warnings. */
  readonly forWarnings: number
}

/** Admits as many events as can be shown, and counts the others. */
export class ReadingPace {
  readonly #bounds: PaceBounds
  #left: number
  #filledMs = 0
  unshown: Unshown | undefined

  constructor(bounds: PaceBounds) {
    this.#bounds = bounds
    this.#left = bounds.burst
  }

  isShown(isWarning: boolean, nowMs: number): boolean {
    const { perSecond, burst, forWarnings } = this.#bounds
    const passedMs = Math.max(0, nowMs - this.#filledMs)
    this.#filledMs = Math.max(this.#filledMs, nowMs)
    this.#left = Math.min(burst, this.#left + (passedMs / SECOND_MS) * perSecond)
    if (this.#left - 1 >= (isWarning ? 0 : forWarnings)) {
      this.#left--
      return true
    }
    this.#countUnshown(isWarning ? 'warning' : 'normal', nowMs)
    return false
  }

  countTooLong(nowMs: number): void {
    this.#countUnshown('tooLong', nowMs)
  }

  forget(): void {
    this.unshown = undefined
  }

  #countUnshown(what: 'normal' | 'warning' | 'tooLong', nowMs: number): void {
    const before = this.unshown ?? { normal: 0, warning: 0, tooLong: 0, fromMs: nowMs }
    this.unshown = { ...before, [what]: before[what] + 1, toMs: nowMs }
  }
}
