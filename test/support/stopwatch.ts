import { readFileSync } from 'node:fs'
import process from 'node:process'

/**
 * Measures how long something takes, without the time in which the main thread of this process, or of
 * the others, was ready to run while other work had the processors. Limits stay tight that way on a
 * busy machine.
 */
export class Stopwatch {
  readonly #pids: readonly number[]
  readonly #startedAt = performance.now()
  readonly #starvedMs: number

  constructor(...others: readonly (number | undefined)[]) {
    this.#pids = [process.pid, ...others.filter((pid) => pid !== undefined)]
    this.#starvedMs = this.#starved()
  }

  get ms(): number {
    return performance.now() - this.#startedAt - (this.#starved() - this.#starvedMs)
  }

  #starved(): number {
    return this.#pids.reduce((sum, pid) => sum + starvedMs(pid), 0)
  }
}

/** How long the main thread of a process has been ready to run without a processor. */
export function starvedMs(pid: number | undefined): number {
  const [, waitedNs] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')
  return Number(waitedNs) / 1e6
}
