import { conditionCheck } from './health/checks.ts'
import type { HealthCheck } from './health/probe.ts'
import type { Log } from './lib/log.ts'

/** One thing that must be done before the server is fit for work. */
export interface StartupStep {
  /** Shows as `poststarthook/<name>` in the probes, under the name Kubernetes has for that job. */
  readonly name: string
  run(): Promise<void>
}

/**
 * Runs the start-up steps, all at once, after the listener is up: probes must be answered while
 * the server starts. A step that fails is fatal, since nothing would ever run it again; waiting
 * for something that may still come (an etcd that is down) is not failing and not a step's
 * business either, as no restart would hurry it.
 */
export class Startup {
  readonly #steps: readonly StartupStep[]
  readonly #done = new Set<StartupStep>()
  readonly #log: Log

  constructor(steps: readonly StartupStep[], log: Log) {
    this.#steps = steps
    this.#log = log
  }

  /** One check per step, in order. */
  checks(): readonly HealthCheck[] {
    return this.#steps.map((step) =>
      conditionCheck(
        `poststarthook/${step.name}`,
        () => this.#done.has(step),
        () => 'not finished',
      ),
    )
  }

  /** Rejects with the failure of the first step that fails. */
  async run(): Promise<void> {
    await Promise.all(
      this.#steps.map(async (step) => {
        try {
          await step.run()
        } catch (cause) {
          throw new Error(`start-up step ${step.name} failed`, { cause })
        }
        this.#done.add(step)
        this.#log.v(1, 'Start-up step finished', { step: step.name })
      }),
    )
  }
}
