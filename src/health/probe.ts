import type { Clock } from '../lib/clock.ts'

/** One named question about this server's own condition. */
export interface HealthCheck {
  readonly name: string
  /** Other names under which it can be asked for and excluded. */
  readonly aliases?: readonly string[]
  /** Resolves when healthy, rejects with the reason when not. */
  run(signal: AbortSignal): Promise<void>
}

/** What became of one check. `excluded` means the caller asked us not to run it. */
export type CheckOutcome =
  | { readonly name: string; readonly result: 'ok' | 'excluded' }
  | { readonly name: string; readonly result: 'failed'; readonly reason: unknown }

export interface ProbeReport {
  readonly outcomes: readonly CheckOutcome[]
  /** Names the caller asked to exclude that no check has. */
  readonly unmatched: readonly string[]
  readonly isHealthy: boolean
}

/** A check that has not answered by then counts as failed: a probe must not hang with what it probes. */
const CHECK_TIMEOUT_MS = 10_000

/**
 * The checks behind one endpoint (livez, readyz or healthz), in the order they are reported.
 *
 * Checks run side by side so that one slow dependency costs its own time only; the report
 * keeps registration order all the same, because operators compare these lists by eye.
 */
export class Probe {
  readonly name: string
  readonly #checks: readonly HealthCheck[]
  readonly #byName = new Map<string, HealthCheck>()

  constructor(name: string, checks: readonly HealthCheck[]) {
    this.name = name
    this.#checks = checks
    for (const check of checks) {
      for (const known of [check.name, ...(check.aliases ?? [])]) {
        if (this.#byName.has(known)) throw new Error(`duplicate health check: ${known}`)
        this.#byName.set(known, check)
      }
    }
  }

  find(name: string): HealthCheck | undefined {
    return this.#byName.get(name)
  }

  async run(excluded: readonly string[], signal: AbortSignal): Promise<ProbeReport> {
    const left = new Set(excluded.map((name) => this.#byName.get(name)))
    using limit = new TimeLimit()
    const outcomes = await Promise.all(
      this.#checks.map((check) =>
        left.has(check) ? excludedOutcome(check) : outcomeOf(check, signal, limit),
      ),
    )
    return {
      outcomes,
      unmatched: [...new Set(excluded)].filter((name) => !this.#byName.has(name)),
      isHealthy: outcomes.every((outcome) => outcome.result !== 'failed'),
    }
  }
}

/** Runs one check, for as long as a check may take. */
export async function runCheck(check: HealthCheck, signal: AbortSignal): Promise<CheckOutcome> {
  using limit = new TimeLimit()
  return await outcomeOf(check, signal, limit)
}

/** Holds a check green until `graceMs` after `startedAt`: livez must not kill a slow starter. */
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
      () => reject(new Error(`no answer within ${seconds}s`)),
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
