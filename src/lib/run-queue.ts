/**
 * Shares the event loop among all work that may take milliseconds: searches, summaries, encodings,
 * watchers that catch up, loading, retention.
 *
 * Work runs in slices of a few milliseconds. Each slice belongs to a lane: a user, or a part of the
 * server. All slices in one turn of the event loop share a budget; once it is spent, I/O, timers,
 * leases, health checks and short requests run before the next slices. The lane that has used the
 * least time goes first, so a user with hundreds of searches delays another user by about one slice.
 *
 * | slices in a turn                | begin while the slices so far took less than
 * | ------------------------------- | --------------------------------------------
 * | of server lanes                 | 4 ms
 * | of waiting users                | 8 ms; one begins in any case
 * | of work that begins unqueued    | 10 ms
 *
 * Work begins unqueued if no user waits, or if its user neither waits nor has run since others began
 * to wait. It then costs two reads of the clock.
 */
import { AbortListener } from './abort.ts'
import { type Clock, monotonicClock } from './clock.ts'
import { LaneOrder, type Waiter } from './lane-order.ts'

/** A slice ends at the first opportunity after this. */
export const sliceMs = 4
const serverMs = 4
const queuedMs = 8
export const turnMs = 10
/** Less time than this carries over into the next turn, so that short requests need no callback. */
const carriedMs = 1

export interface RunQueueOptions {
  readonly clock?: Clock | undefined
  /** Called when a user's work gets a slice that it waited for. */
  readonly onWaited?: ((waitedMs: number) => void) | undefined
}

export class RunQueue {
  readonly clock: Clock
  readonly #onWaited: RunQueueOptions['onWaited']
  readonly #server = new LaneOrder()
  readonly #users = new LaneOrder()
  readonly #beginTurn = (): void => this.#pump(true)
  readonly #continueTurn = (): void => this.#pump(false)
  #isScheduled = false
  #spentMs = 0
  #hasServedUser = false
  /** The owner of the running slice, if it was waited for. */
  #granted: { readonly order: LaneOrder; readonly name: string } | undefined
  #grantedAtMs = 0
  #turns = 0

  constructor(options: RunQueueOptions = {}) {
    this.clock = options.clock ?? monotonicClock
    this.#onWaited = options.onWaited
  }

  userLane(account: string): Lane {
    return new Lane(this, account, this.#users)
  }

  /** The lane of a part of the server that must keep up, whatever users do. */
  serverLane(name: string): Lane {
    return new Lane(this, name, this.#server)
  }

  /** Number of slices that work waits for. */
  get waiting(): number {
    return this.#server.waiting + this.#users.waiting
  }

  /** Number of users that wait or have run since others began to wait. */
  get users(): number {
    return this.#users.size
  }

  /** Number of event-loop turns that ran slices. */
  get turns(): number {
    return this.#turns
  }

  /** Whether the lane's work may run now. */
  mayBegin({ name, order }: Lane): boolean {
    if (this.#isGranted(name, order)) return this.clock.now() - this.#grantedAtMs < sliceMs
    if (order.waiting > 0 && order.find(name) !== undefined) return false
    return this.#spentMs < turnMs
  }

  /**
   * Calls `resume` for a slice. If the signal aborts first, calls it in the next turn without one.
   * Calling it immediately would let work that ignores its signal run to its end within one turn.
   */
  schedule({ name, order }: Lane, resume: () => void, signal?: AbortSignal): void {
    if (signal?.aborted === true) {
      setImmediate(resume)
      return
    }
    const leave = () => {
      if (order.remove(name, waiter)) setImmediate(resume)
    }
    const waiter: Waiter = {
      sinceMs: this.clock.now(),
      resume: () => {
        listener?.[Symbol.dispose]()
        resume()
      },
    }
    const listener = signal && new AbortListener(signal, leave)
    order.add(name, waiter)
    this.#scheduleTurn()
  }

  /** Charges the time of a slice, unless it was waited for: the queue measures those itself. */
  charge({ name, order }: Lane, ms: number): void {
    if (this.#isGranted(name, order)) return
    this.#spentMs += ms
    order.charge(name, ms)
    if (this.#spentMs >= carriedMs) this.#scheduleTurn()
  }

  #scheduleTurn(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(this.#beginTurn)
  }

  #pump(isNewTurn: boolean): void {
    this.#endSlice()
    if (isNewTurn) {
      this.#turns++
      this.#spentMs = 0
      this.#hasServedUser = false
    }
    if (this.#beginSlice()) {
      // Ticks run when no microtask is left; by then the slice has ended or waits for something.
      queueMicrotask(() => process.nextTick(this.#continueTurn))
      return
    }
    this.#isScheduled = false
    if (this.waiting > 0) this.#scheduleTurn()
  }

  /** Returns false when nothing waits or the turn has no time left. */
  #beginSlice(): boolean {
    if (this.#spentMs < serverMs && this.#resumeNext(this.#server)) return true
    if (this.#spentMs >= queuedMs && this.#hasServedUser) return false
    if (!this.#resumeNext(this.#users)) return false
    this.#hasServedUser = true
    return true
  }

  #resumeNext(order: LaneOrder): boolean {
    const next = order.next()
    if (next === undefined) return false
    const { name, waiter } = next
    this.#granted = { order, name }
    this.#grantedAtMs = this.clock.now()
    if (order === this.#users) this.#onWaited?.(this.#grantedAtMs - waiter.sinceMs)
    waiter.resume()
    return true
  }

  #isGranted(name: string, order: LaneOrder): boolean {
    return this.#granted?.name === name && this.#granted.order === order
  }

  #endSlice(): void {
    if (this.#granted === undefined) return
    const { order, name } = this.#granted
    const ms = this.clock.now() - this.#grantedAtMs
    this.#granted = undefined
    this.#spentMs += ms
    order.charge(name, ms)
  }
}

/** Takes turns with other lanes; the slices of all work in a lane count together. */
export class Lane {
  readonly name: string
  /** The lanes that this one competes with. */
  readonly order: LaneOrder
  readonly #queue: RunQueue

  constructor(queue: RunQueue, name: string, order: LaneOrder) {
    this.#queue = queue
    this.name = name
    this.order = order
  }

  /**
   * Must be called before work that may be long, while holding nothing. Returns undefined when the
   * work may begin now, otherwise a promise for its first slice, which resolves early when the signal
   * aborts. Do not await undefined: other work would begin in between, with no time left for it.
   */
  enter(signal?: AbortSignal): Promise<void> | undefined {
    return this.#queue.mayBegin(this) ? undefined : this.next(signal)
  }

  /** Waits for a slice. Resolves early when the signal aborts. */
  next(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => this.#queue.schedule(this, resolve, signal))
  }

  /** Calls the callback when the lane gets a slice. */
  schedule(callback: () => void): void {
    this.#queue.schedule(this, callback)
  }

  /** Cuts long work into slices; must be disposed of at the end of the work. */
  slices(options: SlicesOptions = {}): Slices {
    return new Slices(this, this.#queue, options)
  }
}

/** The lane that work runs in, and the signal that ends it. */
export interface InLane {
  readonly lane: Lane
  readonly signal: AbortSignal
}

/** The lane of a request, which is set once its user is known. */
export function laneOf({ lane }: { readonly lane?: Lane | undefined }): Lane {
  if (lane === undefined) throw new Error('the request has no lane')
  return lane
}

/** Rejects with the reason of the signal when it aborts. */
export async function mapInSlices<T, U>(
  items: Iterable<T>,
  { lane, signal }: InLane,
  map: (item: T) => U,
): Promise<U[]> {
  const mapped: U[] = []
  using slices = lane.slices({ signal })
  for (const item of items) {
    mapped.push(map(item))
    if (!slices.isOver()) continue
    await slices.next()
    signal.throwIfAborted()
  }
  return mapped
}

export interface SlicesOptions {
  /**
   * Acquires what the work needs across slices. Called only before the first wait, so that work that
   * fits into one slice does not pay for it.
   */
  readonly hold?: (() => Disposable) | undefined
  /** Takes the work out of the queue on abort; the work must check it after each wait. */
  readonly signal?: AbortSignal | undefined
}

export class Slices implements Disposable {
  readonly #lane: Lane
  readonly #queue: RunQueue
  readonly #options: SlicesOptions
  #held: Disposable | undefined
  #beganAtMs: number

  constructor(lane: Lane, queue: RunQueue, options: SlicesOptions) {
    this.#lane = lane
    this.#queue = queue
    this.#options = options
    this.#beganAtMs = queue.clock.now()
  }

  /** Must be called when the work resumes after waiting for anything but a slice. */
  begin(): void {
    this.#beganAtMs = this.#queue.clock.now()
  }

  isOver(): boolean {
    return this.#queue.clock.now() - this.#beganAtMs >= sliceMs
  }

  /** Waits for the next slice. */
  async next(): Promise<void> {
    const { hold, signal } = this.#options
    this.#held ??= hold?.()
    this.#charge()
    await this.#lane.next(signal)
    this.begin()
  }

  [Symbol.dispose](): void {
    this.#charge()
    this.#held?.[Symbol.dispose]()
  }

  #charge(): void {
    this.#queue.charge(this.#lane, this.#queue.clock.now() - this.#beganAtMs)
  }
}
