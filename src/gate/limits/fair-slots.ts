/**
 * A fixed number of slots that users share by dynamic thresholds. No user has a fixed part: a user
 * may take another slot while it holds fewer than `SHARE_OF_FREE` times the number of free slots.
 * So one user alone gets three quarters of them, and two get three sevenths each. As slots are
 * taken and given back, users who want all slots end up with equal shares, and a third of such a
 * share stays free for the next user: a user with few requests never waits for a user with many.
 *
 * A request may take several slots (its width). It is admitted as soon as one slot is free; the
 * excess is missing for later requests. Otherwise small requests would always be admitted first.
 */
import { type Clock, monotonicClock } from '../../lib/clock.ts'

/**
 * A higher value would give more slots to one user alone, and fewer users who hold their slots
 * (clients that do not read their responses) could exhaust all slots.
 */
const SHARE_OF_FREE = 3

/** Gives the slots of a request back; further calls have no effect. */
export type Slot = Disposable

/** Why a request got no slot: its queue is full, or it waited too long. */
export type RefusalReason = 'queue-full' | 'time-out'

/** A request for a slot. */
export interface SlotRequest {
  readonly user: string
  /** How many slots it takes. */
  readonly width: number
}

export interface FairSlotsOptions {
  /** With Infinity, requests are only counted. */
  readonly limit: number
  /** Of one user, however many are free. */
  readonly userMax?: number
  /** Length of the queue. One user may use half of what the other users leave of it. */
  readonly waitingMax: number
  /** No request queues behind one of the same user that has waited for this long. */
  readonly firstWaitMsMax?: number
  /**
   * How long a request may wait that finds so many others waiting. Called for each request, so that
   * requests that arrived together can leave at different times.
   */
  readonly waitMs: (waiting: number) => number
  /** Called when a request stops waiting: how long it waited, and whether it got a slot. */
  readonly onWaited?: (waitedMs: number, hasSlot: boolean) => void
  readonly clock?: Clock
}

/** Gives slots to users by fair shares. The queue is served round-robin, user by user. */
export class FairSlots {
  readonly #options: FairSlotsOptions
  readonly #clock: Clock
  readonly #userMax: number
  #held = 0
  #entered = 0
  #waiting = 0
  /** Users that hold a slot or wait for one, and no others: idle users take no memory. */
  readonly #users = new Map<string, UserState>()
  /** Users with waiting requests in round-robin order; some may have none left. */
  readonly #queue: UserState[] = []

  constructor(options: FairSlotsOptions) {
    this.#options = options
    this.#clock = options.clock ?? monotonicClock
    this.#userMax = options.userMax ?? Number.POSITIVE_INFINITY
  }

  /** Slots taken. May exceed the limit, by less than the width of one request. */
  get held(): number {
    return this.#held
  }

  /** Requests that hold slots. */
  get entered(): number {
    return this.#entered
  }

  get waiting(): number {
    return this.#waiting
  }

  /** Users that hold a slot or wait for one. */
  get users(): number {
    return this.#users.size
  }

  /** Takes slots without waiting; undefined when the user would have to wait. */
  tryEnter({ user, width }: SlotRequest): Slot | undefined {
    const state = this.#stateOf(user)
    if (state.waiters.size === 0 && this.#mayTake(state)) return this.#take(state, width)
    this.#forgetIfIdle(state)
    return undefined
  }

  /**
   * Waits for a slot. Resolves with the reason when the queue is full or the wait is too long.
   * Rejects at once with the signal's reason when the signal aborts.
   */
  wait({ user, width }: SlotRequest, signal: AbortSignal): Promise<Slot | RefusalReason> {
    if (signal.aborted) return Promise.reject(signal.reason)
    const state = this.#stateOf(user)
    const since = this.#clock.now()
    if (this.#isQueueFull(state, since)) {
      this.#forgetIfIdle(state)
      return Promise.resolve('queue-full')
    }
    return new Promise((resolve, reject) => {
      const leave = (hasSlot: boolean): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
        this.#waiting -= 1
        state.waiters.remove(waiter)
        if (!hasSlot) this.#forgetIfIdle(state)
        this.#options.onWaited?.(this.#clock.now() - since, hasSlot)
      }
      const onAbort = (): void => {
        leave(false)
        reject(signal.reason)
      }
      const timer = setTimeout(() => {
        leave(false)
        resolve('time-out')
      }, this.#options.waitMs(this.#waiting))
      const admit = (slot: Slot): void => {
        leave(true)
        resolve(slot)
      }
      const waiter: Waiter = { width, since, admit, previous: undefined, next: undefined }
      signal.addEventListener('abort', onAbort)
      this.#waiting += 1
      state.waiters.add(waiter)
      this.#enqueue(state)
    })
  }

  /** Also when the user's requests are admitted so slowly that another one would time out. */
  #isQueueFull({ waiters }: UserState, now: number): boolean {
    if (waiters.size >= this.#options.waitingMax - this.#waiting) return true
    const { firstWaitMsMax = Number.POSITIVE_INFINITY } = this.#options
    const { first } = waiters
    return first !== undefined && now - first.since >= firstWaitMsMax
  }

  #mayTake({ held }: UserState): boolean {
    return this.#free > 0 && held < SHARE_OF_FREE * this.#free && held < this.#userMax
  }

  get #free(): number {
    return this.#options.limit - this.#held
  }

  #take(state: UserState, width: number): Slot {
    state.held += width
    this.#held += width
    this.#entered += 1
    return new HeldSlot(this.#giveBack, state, width)
  }

  readonly #giveBack = (state: UserState, width: number): void => {
    state.held -= width
    this.#held -= width
    this.#entered -= 1
    this.#forgetIfIdle(state)
    this.#admitWaiting()
  }

  /** One request of each user in turn, until no user may take more. */
  #admitWaiting(): void {
    for (let refused = 0; refused < this.#queue.length && this.#free > 0; ) {
      const state = this.#queue.shift()
      if (state === undefined) return
      state.isQueued = false
      const waiter = state.waiters.first
      if (waiter === undefined) continue
      if (this.#mayTake(state)) {
        refused = 0
        waiter.admit(this.#take(state, waiter.width))
      } else refused += 1
      if (state.waiters.size > 0) this.#enqueue(state)
    }
  }

  #enqueue(state: UserState): void {
    if (state.isQueued) return
    state.isQueued = true
    this.#queue.push(state)
  }

  #stateOf(user: string): UserState {
    let state = this.#users.get(user)
    if (state === undefined) {
      state = { user, held: 0, waiters: new WaiterQueue(), isQueued: false }
      this.#users.set(user, state)
    }
    return state
  }

  #forgetIfIdle(state: UserState): void {
    if (state.held > 0 || state.waiters.size > 0) return
    this.#users.delete(state.user)
    if (state.isQueued) this.#queue.splice(this.#queue.indexOf(state), 1)
  }
}

/** A class, since an object with a computed name is slow to create, and each request has one. */
class HeldSlot implements Slot {
  readonly #giveBack: (state: UserState, width: number) => void
  readonly #state: UserState
  readonly #width: number
  #isHeld = true

  constructor(
    giveBack: (state: UserState, width: number) => void,
    state: UserState,
    width: number,
  ) {
    this.#giveBack = giveBack
    this.#state = state
    this.#width = width
  }

  [Symbol.dispose](): void {
    if (!this.#isHeld) return
    this.#isHeld = false
    this.#giveBack(this.#state, this.#width)
  }
}

interface UserState {
  readonly user: string
  held: number
  /** Requests of one user are admitted in the order of their arrival. */
  readonly waiters: WaiterQueue
  isQueued: boolean
}

interface Waiter {
  readonly width: number
  readonly since: number
  readonly admit: (slot: Slot) => void
  previous: Waiter | undefined
  next: Waiter | undefined
}

/** In the order of arrival. A list, for the reason given in placed-set.ts. */
class WaiterQueue {
  first: Waiter | undefined
  #last: Waiter | undefined
  size = 0

  add(waiter: Waiter): void {
    waiter.previous = this.#last
    if (this.#last === undefined) this.first = waiter
    else this.#last.next = waiter
    this.#last = waiter
    this.size += 1
  }

  remove(waiter: Waiter): void {
    const { previous, next } = waiter
    if (previous === undefined) this.first = next
    else previous.next = next
    if (next === undefined) this.#last = previous
    else next.previous = previous
    waiter.previous = undefined
    waiter.next = undefined
    this.size -= 1
  }
}

/** A request that gets no slot at once is not queued. */
export function slotsWithoutQueue(limit: number, userMax?: number): FairSlots {
  return new FairSlots({
    limit,
    waitingMax: 0,
    waitMs: () => 0,
    ...(userMax !== undefined && { userMax }),
  })
}
