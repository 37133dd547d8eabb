import { Counter, Gauge, Registry } from '@prometheus-io/client'
import type { CheckOutcome } from './probe.ts'

/** The service level indicators at `/metrics/slis`: what each check said, now and over time. */
export class HealthMetrics {
  readonly registry: Registry = new Registry()
  readonly #now: Gauge<'name' | 'type'>
  readonly #total: Counter<'name' | 'type' | 'status'>

  constructor() {
    const registers = [this.registry]
    this.#now = new Gauge({
      name: 'kubernetes_healthcheck',
      help: 'Whether the check passed when it was last run: 1 if it did, 0 if not.',
      labelNames: ['name', 'type'],
      registers,
    })
    this.#total = new Counter({
      name: 'kubernetes_healthchecks_total',
      help: 'How often the check was run, by outcome.',
      labelNames: ['name', 'type', 'status'],
      registers,
    })
  }

  /** Checks that were excluded did not run and do not count. */
  record(type: string, outcomes: readonly CheckOutcome[]): void {
    for (const { name, result } of outcomes) {
      if (result === 'excluded') continue
      this.#now.set({ name, type }, result === 'ok' ? 1 : 0)
      this.#total.inc({ name, type, status: result === 'ok' ? 'success' : 'error' })
    }
  }
}
