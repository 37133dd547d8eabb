/**
 * Delays 429 responses (backpressure). A client that is refused at once sends its next request at
 * once, and a refusal costs a good part of what serving costs: a server that refuses requests as
 * fast as they arrive soon does nothing else. So a refusal is held back. Meanwhile its stream or
 * connection stays occupied, which slows down even a client that ignores Retry-After.
 *
 * While the event loop is busy, one refusal is sent for every few requests served, so that refusals
 * cost a small part of what serving costs, on slow machines too.
 */
import { AbortListener } from '../../lib/abort.ts'
import { type Clock, monotonicClock } from '../../lib/clock.ts'

const TICK_MS = 20
/** About 1,000 a second while the event loop is idle, and fewer the busier it is. */
const SENT_PER_TICK_IDLE = 20
const SERVED_PER_REFUSAL = 4
/** The event loop is busy from this utilization on. Refusals alone cause half of it. */
const BUSY_PART = 0.7
/** At least 50 refusals a second are sent, however few requests are served. */
const SENT_PER_TICK_MIN = 1
/**
 * A refusal held for this long is overdue. Overdue ones are sent at the rate that sends all that
 * can be held within the same time again, and no faster: otherwise a crowd that arrived together
 * would be refused together, and would all return together.
 */
const OVERDUE_MS = 15_000
/**
 * Each takes some 17 KiB besides the received part of its body. Together with the requests that
 * wait for a slot, this is the maximum number of connections.
 */
const HELD_MAX = 12_000

export interface RefusalPaceOptions {
  /** Returns the utilization of the event loop since the last call, from 0 to 1. */
  readonly busyPart?: () => number
  /** Refusals beyond this number are sent at once. */
  readonly heldMax?: number
  /**
   * Refusals are held for up to twice this time, which must be well below the request timeout;
   * otherwise held requests time out.
   */
  readonly overdueMs?: number
  readonly clock?: Clock
}

interface Held {
  readonly since: number
  send(): void
}

/** Holds refusals back and sends them at a limited rate. */
export class RefusalPace {
  readonly #busyPart: () => number
  readonly #heldMax: number
  readonly #overdueMs: number
  readonly #clock: Clock
  /** FIFO. */
  readonly #held = new Set<Held>()
  #isReleased = false
  #served = 0
  #allowance = 0
  #overdueAllowance = 0
  #tickedAt = 0
  #timer: NodeJS.Timeout | undefined

  constructor(options: RefusalPaceOptions = {}) {
    this.#busyPart = options.busyPart ?? loopBusyPart()
    this.#heldMax = options.heldMax ?? HELD_MAX
    this.#overdueMs = Math.min(options.overdueMs ?? OVERDUE_MS, OVERDUE_MS)
    this.#clock = options.clock ?? monotonicClock
  }

  /** Number of refusals that are held back. */
  get held(): number {
    return this.#held.size
  }

  /** Called when a request has been served. */
  served(): void {
    this.#served += 1
  }

  /** Resolves when the refusal may be sent. Rejects at once when the signal aborts. */
  async hold(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.#isReleased || this.#held.size >= this.#heldMax) return
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const onAbort = (): void => {
      this.#held.delete(held)
      reject(signal.reason)
    }
    const send = (): void => {
      listener[Symbol.dispose]()
      resolve()
    }
    const held = { since: this.#clock.now(), send }
    const listener = new AbortListener(signal, onAbort)
    this.#held.add(held)
    this.#timer ??= this.#startTimer()
    await promise
  }

  /** Sends all held refusals, and does not hold later ones. */
  release(): void {
    this.#isReleased = true
    for (const held of this.#held) this.#send(held)
  }

  #startTimer(): NodeJS.Timeout {
    this.#served = 0
    this.#allowance = 0
    this.#overdueAllowance = 0
    this.#tickedAt = this.#clock.now()
    this.#busyPart()
    return setInterval(() => this.#tick(), TICK_MS)
  }

  #tick(): void {
    this.#allowance += this.#earned()
    this.#served = 0
    const now = this.#clock.now()
    // Measured by the clock, since ticks are late on a slow machine.
    this.#overdueAllowance += (this.#heldMax * (now - this.#tickedAt)) / this.#overdueMs
    this.#tickedAt = now
    for (const held of this.#held) {
      if (this.#allowance >= 1) this.#allowance -= 1
      else if (now - held.since < this.#overdueMs) {
        this.#overdueAllowance = 0
        return
      } else if (this.#overdueAllowance >= 1) this.#overdueAllowance -= 1
      else return
      this.#send(held)
    }
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #send(held: Held): void {
    this.#held.delete(held)
    held.send()
  }

  #earned(): number {
    const byServed = Math.min(this.#served / SERVED_PER_REFUSAL, SENT_PER_TICK_IDLE)
    const byIdle = SENT_PER_TICK_IDLE * (1 - this.#busyPart() / BUSY_PART)
    return Math.max(byServed, byIdle, SENT_PER_TICK_MIN)
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
