/**
 * How fast clients are told no. One that is told at once has its next request ready, and to read and
 * refuse that costs a good part of what serving it would: a server that refuses as fast as it is
 * asked soon does nothing else. So a refusal waits for its turn. Meanwhile the stream or connection
 * it came on is taken, which holds back even a client that minds nothing it is told.
 *
 * While the processor is busy, one is told for every few that are served: what refusing takes stays
 * a small part of what serving takes, on slow machines too.
 */

const TICK_MS = 20
/** About 1,000 a second, when there is nothing better to do. */
const TOLD_PER_TICK_IDLE = 20
const SERVED_PER_TOLD = 4
/** From this part of its time on, the event loop counts as busy. */
const BUSY_PART = 0.7
/** However little is served, so many are told, and so much of all who are held: in 15 s most. */
const TOLD_PER_TICK_MIN = 1
const TOLD_PART_PER_TICK = 1 / 750
/** Each takes some 17 KiB. With those who wait for a place, as many as there may be connections. */
const HELD_MAX = 12_000

export interface RefusalPaceOptions {
  /** From 0 to 1: how busy the event loop has been since this was last asked. */
  readonly busyPart?: () => number
  /** More than these are told at once. */
  readonly heldMax?: number
}

/** Lets refusals go in turn. */
export class RefusalPace {
  readonly #busyPart: () => number
  readonly #heldMax: number
  /** In the order in which they came; each tells one. */
  readonly #held = new Set<() => void>()
  #served = 0
  #allowance = 0
  #timer: NodeJS.Timeout | undefined

  constructor({ busyPart = loopBusyPart(), heldMax = HELD_MAX }: RefusalPaceOptions = {}) {
    this.#busyPart = busyPart
    this.#heldMax = heldMax
  }

  /** Refusals that wait for their turn. */
  get held(): number {
    return this.#held.size
  }

  /** Somebody has been served. */
  served(): void {
    this.#served += 1
  }

  /** Resolves when it is time to tell. Rejects with the signal's reason, at once, when that aborts. */
  async turn(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.#held.size >= this.#heldMax) return
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const onAbort = (): void => {
      this.#held.delete(tell)
      reject(signal.reason)
    }
    const tell = (): void => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    }
    signal.addEventListener('abort', onAbort)
    this.#held.add(tell)
    this.#timer ??= this.#begin()
    await promise
  }

  #begin(): NodeJS.Timeout {
    this.#served = 0
    this.#allowance = 0
    this.#busyPart()
    return setInterval(() => this.#tick(), TICK_MS)
  }

  #tick(): void {
    this.#allowance += this.#earned()
    this.#served = 0
    for (const tell of this.#held) {
      if (this.#allowance < 1) return
      this.#allowance -= 1
      this.#held.delete(tell)
      tell()
    }
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #earned(): number {
    const isBusy = this.#busyPart() >= BUSY_PART
    const byServed = Math.min(this.#served / SERVED_PER_TOLD, TOLD_PER_TICK_IDLE)
    const byHeld = Math.max(this.#held.size * TOLD_PART_PER_TICK, TOLD_PER_TICK_MIN)
    return Math.max(isBusy ? byServed : TOLD_PER_TICK_IDLE, byHeld)
  }
}

function loopBusyPart(): () => number {
  let last = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, last)
    last = now
    return utilization
  }
}
