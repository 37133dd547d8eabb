import { conditionCheck } from '../health/checks.ts'
import type { HealthCheck } from '../health/probe.ts'
import type { Log } from '../lib/log/log.ts'

/** Work that must be done before the server is ready. */
export interface StartupStep {
  /** Reported as `poststarthook/<name>`, with the name that Kubernetes has for this job. */
  readonly name: string
  run(): Promise<void>
}

/**
 * Runs the start-up steps concurrently after the listener is up, since probes need responses while
 * the server starts. A step that fails is fatal, since nothing would run it again. A step does not
 * wait for etcd: an etcd that is down is no failure of this process, and a restart would not help.
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

  /** Rejects with the error of the first step that fails. */
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
