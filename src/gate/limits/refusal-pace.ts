/**
 * How fast clients are told no. One that is told at once has its next request ready, and to read and
 * refuse that costs a good part of what serving it would: a server that refuses as fast as it is
 * asked soon does nothing else. So a refusal waits for its turn. Meanwhile the stream or connection
 * it came on is taken, which holds back even a client that minds nothing it is told.
 *
 * While the processor is busy, one is told for every few that are served: what refusing takes stays
 * a small part of what serving takes, on slow machines too.
 */
import { type Clock, monotonicClock } from '../../lib/clock.ts'

const TICK_MS = 20
/** About 1,000 a second, when there is nothing better to do. */
const TOLD_PER_TICK_IDLE = 20
const SERVED_PER_TOLD = 4
/** From this part of its time on, the event loop counts as busy. */
const BUSY_PART = 0.7
/** However little is served, 50 a second are told. */
const TOLD_PER_TICK_MIN = 1
/** Whoever has been held for so long is told, up to 3,000 a second of them. */
const HELD_MS_MAX = 15_000
const OVERDUE_PER_TICK_MAX = 60
/**
 * Each takes some 17 KiB besides what was sent of its body. With those who wait for a place, as many
 * as there may be connections.
 */
const HELD_MAX = 12_000

export interface RefusalPaceOptions {
  /** From 0 to 1: how busy the event loop has been since this was last asked. */
  readonly busyPart?: () => number
  /** More than these are told at once. */
  readonly heldMax?: number
  /** Must be well below the time that a request may take, or it ends as one that took too long. */
  readonly heldMsMax?: number
  readonly clock?: Clock
}

interface Held {
  readonly since: number
  tell(): void
}

/** Lets refusals go in turn. */
export class RefusalPace {
  readonly #busyPart: () => number
  readonly #heldMax: number
  readonly #heldMsMax: number
  readonly #clock: Clock
  /** In the order in which they came. */
  readonly #held = new Set<Held>()
  #isReleased = false
  #served = 0
  #allowance = 0
  #timer: NodeJS.Timeout | undefined

  constructor(options: RefusalPaceOptions = {}) {
    this.#busyPart = options.busyPart ?? loopBusyPart()
    this.#heldMax = options.heldMax ?? HELD_MAX
    this.#heldMsMax = Math.min(options.heldMsMax ?? HELD_MS_MAX, HELD_MS_MAX)
    this.#clock = options.clock ?? monotonicClock
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
    if (this.#isReleased || this.#held.size >= this.#heldMax) return
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const onAbort = (): void => {
      this.#held.delete(held)
      reject(signal.reason)
    }
    const tell = (): void => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    }
    const held = { since: this.#clock.now(), tell }
    signal.addEventListener('abort', onAbort)
    this.#held.add(held)
    this.#timer ??= this.#begin()
    await promise
  }

  /** Tells all who are held, and holds nobody from here on. */
  release(): void {
    this.#isReleased = true
    for (const held of this.#held) this.#tell(held)
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
    const cameBefore = this.#clock.now() - this.#heldMsMax
    let overdue = OVERDUE_PER_TICK_MAX
    for (const held of this.#held) {
      if (this.#allowance >= 1) this.#allowance -= 1
      else if (held.since > cameBefore || overdue-- === 0) return
      this.#tell(held)
    }
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #tell(held: Held): void {
    this.#held.delete(held)
    held.tell()
  }

  #earned(): number {
    const isBusy = this.#busyPart() >= BUSY_PART
    const byServed = Math.min(this.#served / SERVED_PER_TOLD, TOLD_PER_TICK_IDLE)
    return Math.max(isBusy ? byServed : TOLD_PER_TICK_IDLE, TOLD_PER_TICK_MIN)
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
