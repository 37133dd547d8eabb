import { monitorEventLoopDelay } from 'node:perf_hooks'

const tickMs = 5

/**
 * How long the event loop was blocked at a time: by the clock, and by the CPU time of its thread.
 */
export class LoopHolds {
  readonly #delay = monitorEventLoopDelay({ resolution: tickMs })
  #ownMs = 0

  constructor() {
    this.#delay.enable()
    let before = threadCpuMs()
    setInterval(() => {
      const now = threadCpuMs()
      this.#ownMs = Math.max(this.#ownMs, now - before)
      before = now
    }, tickMs).unref()
  }

  /** The maximum since the last call. */
  take(): { readonly longestMs: number; readonly ownMs: number } {
    const taken = { longestMs: this.#delay.max / 1e6, ownMs: this.#ownMs }
    this.#delay.reset()
    this.#ownMs = 0
    return taken
  }
}

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
