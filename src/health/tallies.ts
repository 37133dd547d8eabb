import type { CheckOutcome } from './probe.ts'

/** The last result of one check, and its counters. */
export interface CheckTally {
  readonly name: string
  /** The endpoint: `livez`, `readyz` or `healthz`. */
  readonly type: string
  isPassing: boolean
  passed: number
  failed: number
}

/** Counts the outcomes of checks. Metrics are built at scrapes, which are rarer than probes. */
export class HealthTallies {
  readonly #tallies = new Map<string, Map<string, CheckTally>>()

  /** Excluded checks did not run and do not count. */
  record(type: string, outcomes: readonly CheckOutcome[]): void {
    for (const { name, result } of outcomes) {
      if (result === 'excluded') continue
      const tally = this.#tally(type, name)
      tally.isPassing = result === 'ok'
      if (result === 'ok') tally.passed += 1
      else tally.failed += 1
    }
  }

  #tally(type: string, name: string): CheckTally {
    let ofType = this.#tallies.get(type)
    if (ofType === undefined) {
      ofType = new Map()
      this.#tallies.set(type, ofType)
    }
    let tally = ofType.get(name)
    if (tally === undefined) {
      tally = { name, type, isPassing: false, passed: 0, failed: 0 }
      ofType.set(name, tally)
    }
    return tally
  }

  *all(): Iterable<CheckTally> {
    for (const ofType of this.#tallies.values()) yield* ofType.values()
  }
}
