import type { Clock } from '../lib/clock.ts'

/** A named check of this server's own state. */
export interface HealthCheck {
  readonly name: string
  /** Other names by which it can be requested and excluded. */
  readonly aliases?: readonly string[]
  /** Resolves when healthy, rejects with the reason when not. */
  run(signal: AbortSignal): Promise<void>
}

/** `excluded`: the request excluded the check, so it did not run. */
export type CheckOutcome =
  | { readonly name: string; readonly result: 'ok' | 'excluded' }
  | { readonly name: string; readonly result: 'failed'; readonly reason: unknown }

export interface ProbeReport {
  readonly outcomes: readonly CheckOutcome[]
  /** The names in `exclude` that no check has. */
  readonly unmatched: readonly string[]
  readonly isHealthy: boolean
}

/** A check that takes longer has failed: a probe must not hang when its dependency hangs. */
const CHECK_TIMEOUT_MS = 10_000

/**
 * The checks of one endpoint (livez, readyz or healthz), in the order in which they are reported.
 *
 * Checks run concurrently, so that a slow dependency does not delay the others. The report still
 * has the order of registration, because operators compare these lists by eye.
 */
export class Probe {
  readonly name: string
  readonly #checks: readonly HealthCheck[]
  readonly #byName = new Map<string, HealthCheck>()

  constructor(name: string, checks: readonly HealthCheck[]) {
    this.name = name
    this.#checks = checks
    for (const check of checks) {
      for (const name of [check.name, ...(check.aliases ?? [])]) {
        if (this.#byName.has(name)) throw new Error(`duplicate health check: ${name}`)
        this.#byName.set(name, check)
      }
    }
  }

  find(name: string): HealthCheck | undefined {
    return this.#byName.get(name)
  }

  async run(excluded: readonly string[], signal: AbortSignal): Promise<ProbeReport> {
    const skipped = new Set(excluded.map((name) => this.#byName.get(name)))
    using limit = new TimeLimit()
    const outcomes = await Promise.all(
      this.#checks.map((check) =>
        skipped.has(check) ? excludedOutcome(check) : outcomeOf(check, signal, limit),
      ),
    )
    return {
      outcomes,
      unmatched: [...new Set(excluded)].filter((name) => !this.#byName.has(name)),
      isHealthy: outcomes.every((outcome) => outcome.result !== 'failed'),
    }
  }
}

/** Runs one check with the time limit of a check. */
export async function runCheck(check: HealthCheck, signal: AbortSignal): Promise<CheckOutcome> {
  using limit = new TimeLimit()
  return await outcomeOf(check, signal, limit)
}

/** Lets a check pass until `graceMs` after `startedAt`: livez must not kill a slow start. */
export function withGrace(
  check: HealthCheck,
  grace: { readonly graceMs: number; readonly startedAt: number; readonly clock: Clock },
): HealthCheck {
  const endsAt = grace.startedAt + grace.graceMs
  return {
    ...check,
    run: async (signal) => {
      if (grace.clock.now() < endsAt) return
      await check.run(signal)
    },
  }
}

async function outcomeOf(
  check: HealthCheck,
  signal: AbortSignal,
  limit: TimeLimit,
): Promise<CheckOutcome> {
  try {
    await Promise.race([check.run(signal), limit.reached])
    return { name: check.name, result: 'ok' }
  } catch (reason) {
    return { name: check.name, result: 'failed', reason }
  }
}

class TimeLimit implements Disposable {
  /** Rejects when the time is up. */
  readonly reached: Promise<never>
  readonly #timer: NodeJS.Timeout

  constructor() {
    const { promise, reject } = Promise.withResolvers<never>()
    this.reached = promise
    const seconds = CHECK_TIMEOUT_MS / 1000
    this.#timer = setTimeout(
      () => reject(new Error(`timed out after ${seconds}s`)),
      CHECK_TIMEOUT_MS,
    )
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
  }
}

function excludedOutcome(check: HealthCheck): CheckOutcome {
  return { name: check.name, result: 'excluded' }
}
