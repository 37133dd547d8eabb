import { Counter, Gauge, Registry } from '@prometheus-io/client'
import type { CheckOutcome } from './probe.ts'

interface Tally {
  readonly name: string
  readonly type: string
  isPassing: boolean
  passed: number
  failed: number
}

/**
 * The service level indicators at `/metrics/slis`: what each check said, now and over time.
 * Probes come far more often than anybody looks, so they only count; series are made on a look.
 */
export class HealthMetrics {
  readonly registry: Registry = new Registry()
  readonly #tallies = new Map<string, Map<string, Tally>>()

  constructor() {
    const tallies = (): Iterable<Tally> => this.#all()
    const registers = [this.registry]
    new Gauge({
      name: 'kubernetes_healthcheck',
      help: 'Whether the check passed when it was last run: 1 if it did, 0 if not.',
      labelNames: ['name', 'type'],
      registers,
      collect() {
        for (const { name, type, isPassing } of tallies())
          this.set({ name, type }, isPassing ? 1 : 0)
      },
    })
    new Counter({
      name: 'kubernetes_healthchecks_total',
      help: 'How often the check was run, by outcome.',
      labelNames: ['name', 'type', 'status'],
      registers,
      collect() {
        this.reset()
        for (const { name, type, passed, failed } of tallies()) {
          if (passed > 0) this.inc({ name, type, status: 'success' }, passed)
          if (failed > 0) this.inc({ name, type, status: 'error' }, failed)
        }
      },
    })
  }

  /** Checks that were excluded did not run and do not count. */
  record(type: string, outcomes: readonly CheckOutcome[]): void {
    for (const { name, result } of outcomes) {
      if (result === 'excluded') continue
      const tally = this.#tally(type, name)
      tally.isPassing = result === 'ok'
      if (result === 'ok') tally.passed += 1
      else tally.failed += 1
    }
  }

  #tally(type: string, name: string): Tally {
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

  *#all(): Iterable<Tally> {
    for (const ofType of this.#tallies.values()) yield* ofType.values()
  }
}
