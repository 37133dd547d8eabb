/**
 * Delays 429 responses (backpressure). A client that is refused at once sends its next request at
 * once, and refusing that one costs a good part of what serving it would: a server that refuses as
 * fast as requests arrive soon does nothing else. So a refusal is held back. Meanwhile its stream
 * or connection stays occupied, which slows down even a client that ignores Retry-After.
 *
 * While the event loop is busy, one refusal is sent for every few requests served: refusals then
 * cost a small part of what serving costs, on slow machines too.
 */
import { AbortListener } from '../../lib/abort.ts'
import { type Clock, monotonicClock } from '../../lib/clock.ts'

const TICK_MS = 20
/** About 1,000 a second while the event loop is idle, and the fewer the busier it is. */
const SENT_PER_TICK_IDLE = 20
const SERVED_PER_REFUSAL = 4
/** From this utilization on, the event loop counts as busy. Refusals alone make it half so busy. */
const BUSY_PART = 0.7
/** However few requests are served, 50 refusals a second are sent. */
const SENT_PER_TICK_MIN = 1
/**
 * A request held for so long is overdue. As many overdue ones are sent per second as are needed to
 * send all that can be held within as long again, and no more: those of a crowd that came at once
 * would otherwise be refused at once, and all come back.
 */
const OVERDUE_MS = 15_000
/**
 * Each takes some 17 KiB besides the received part of its body. With the requests that wait for a
 * slot, as many as there may be connections.
 */
const HELD_MAX = 12_000

export interface RefusalPaceOptions {
  /** Utilization of the event loop since the last call, from 0 to 1. */
  readonly busyPart?: () => number
  /** Refusals beyond this number are sent at once. */
  readonly heldMax?: number
  /**
   * Refusals are held for up to twice this time, which must be well below the request timeout, or a
   * held request ends with that.
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
  /** In the order of their arrival. */
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

  /** Refusals that are held back. */
  get held(): number {
    return this.#held.size
  }

  /** A request has been served. */
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

  /** Sends all held refusals. Later ones are not held. */
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
    // By the clock: ticks of a slow machine are late.
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
