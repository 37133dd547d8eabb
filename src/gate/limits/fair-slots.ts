/**
 * A fixed number of slots that users share fairly.
 *
 * A tenth of the slots is reserved: a user that holds none may take one of them for a request of
 * width 1. Whatever others hold, a user with one request at a time is served at once.
 *
 * The other slots are shared by dynamic thresholds. No user has a fixed part: a user may hold up to
 * `SHARE_OF_FREE` times what it leaves free. One user alone gets three quarters of the shared
 * slots, two get three sevenths each. As slots are taken and given back, users who want all of them
 * end up with equal shares.
 *
 * A request may take several slots (its width), at most an eighth of all. Waiting requests are
 * admitted in the order of what their users would hold with them, least first. Only a request of a
 * user who would hold less overtakes the first one for a shared slot; otherwise narrow requests
 * would starve wide ones. So if every request gives its slots back in time, a user within its fair
 * share (an equal part of the shared slots, with one part left over) is always admitted: while it
 * waits, nobody is admitted who would then hold more. `test/nightly/fairness` tests this with
 * random users.
 */
import { AbortListener } from '../../lib/abort.ts'
import { type Clock, monotonicClock } from '../../lib/clock.ts'

/** A higher value would give more slots to one user alone, and leave fewer for the next one. */
const SHARE_OF_FREE = 3
/** The fraction of the slots that only users without a slot may take. */
const RESERVED_PART = 0.1
/** The fraction of the slots that one request may take. */
const WIDTH_PART_MAX = 1 / 8

/** Disposing of it gives the slots of a request back. Further calls have no effect. */
export type Slot = Disposable

/** Why a request got no slot: its queue is full, or it waited too long. */
export type RefusalReason = 'queue-full' | 'time-out'

export interface SlotRequest {
  readonly user: string
  /** How many slots it takes, capped at the maximum for one request. */
  readonly width: number
}

export interface FairSlotsOptions {
  /** If it is Infinity, requests are only counted. */
  readonly limit: number
  /** The maximum for one user, however many are free. */
  readonly userMax?: number
  /** Length of the queue. One user may use half of what other users leave of it. */
  readonly waitingMax: number
  /** A request is refused if another one of the same user has waited for this long. */
  readonly firstWaitMsMax?: number
  /**
   * Returns how long a request may wait when this many others are waiting. Called for each request,
   * so that requests that arrived together can leave at different times.
   */
  readonly waitMs: (waiting: number) => number
  /** Called when a request stops waiting, whether or not it got a slot. */
  readonly onWaited?: (waitedMs: number, hasSlot: boolean) => void
  readonly clock?: Clock
}

export class FairSlots {
  readonly #options: FairSlotsOptions
  readonly #clock: Clock
  readonly #userMax: number
  readonly #sharedMax: number
  readonly #reservedMax: number
  readonly #widthMax: number
  #sharedHeld = 0
  #reservedHeld = 0
  #entered = 0
  #waiting = 0
  /** Users that hold a slot or wait for one, and no others: idle users take no memory. */
  readonly #users = new Map<string, UserState>()
  readonly #queue = new UserQueue()

  constructor(options: FairSlotsOptions) {
    const { limit } = options
    this.#options = options
    this.#clock = options.clock ?? monotonicClock
    this.#userMax = options.userMax ?? Number.POSITIVE_INFINITY
    this.#reservedMax = Number.isFinite(limit) ? Math.floor(limit * RESERVED_PART) : 0
    this.#sharedMax = limit - this.#reservedMax
    this.#widthMax = Math.max(1, Math.floor(limit * WIDTH_PART_MAX))
  }

  /** Number of slots taken. */
  get held(): number {
    return this.#sharedHeld + this.#reservedHeld
  }

  /** Number of requests that hold slots. */
  get entered(): number {
    return this.#entered
  }

  get waiting(): number {
    return this.#waiting
  }

  /** Number of users that hold a slot or wait for one. */
  get users(): number {
    return this.#users.size
  }

  /** Takes slots without waiting. Returns undefined when the user would have to wait. */
  tryEnter({ user, width: wanted }: SlotRequest): Slot | undefined {
    const state = this.#stateOf(user)
    const width = Math.min(wanted, this.#widthMax)
    if (this.#isNext(state, width) && this.#mayShare(state, width)) {
      return this.#take(state, width, false)
    }
    if (this.#mayReserve(state, width)) return this.#take(state, width, true)
    this.#forgetIfIdle(state)
    return undefined
  }

  /**
   * Waits for a slot. Resolves with the reason when the queue is full or the wait is too long.
   * Rejects at once with the signal's reason when the signal aborts.
   */
  wait({ user, width: wanted }: SlotRequest, signal: AbortSignal): Promise<Slot | RefusalReason> {
    if (signal.aborted) return Promise.reject(signal.reason)
    const width = Math.min(wanted, this.#widthMax)
    const state = this.#stateOf(user)
    const since = this.#clock.now()
    if (this.#isQueueFull(state, since)) {
      this.#forgetIfIdle(state)
      return Promise.resolve('queue-full')
    }
    return new Promise((resolve, reject) => {
      const leave = (hasSlot: boolean): void => {
        clearTimeout(timer)
        listener[Symbol.dispose]()
        this.#waiting -= 1
        state.waiters.remove(waiter)
        this.#queue.place(state)
        if (!hasSlot) this.#forgetIfIdle(state)
        this.#options.onWaited?.(this.#clock.now() - since, hasSlot)
      }
      const onAbort = (): void => {
        leave(false)
        reject(signal.reason)
        this.#admitWaiting()
      }
      const timer = setTimeout(() => {
        leave(false)
        resolve('time-out')
        this.#admitWaiting()
      }, this.#options.waitMs(this.#waiting))
      const admit = (slot: Slot): void => {
        leave(true)
        resolve(slot)
      }
      const waiter: Waiter = { width, since, admit, previous: undefined, next: undefined }
      const listener = new AbortListener(signal, onAbort)
      this.#waiting += 1
      state.waiters.add(waiter)
      this.#queue.place(state)
    })
  }

  /** A queue is also full when it moves so slowly that another request would time out. */
  #isQueueFull({ waiters }: UserState, now: number): boolean {
    if (waiters.size >= this.#options.waitingMax - this.#waiting) return true
    const { firstWaitMsMax = Number.POSITIVE_INFINITY } = this.#options
    const { first } = waiters
    return first !== undefined && now - first.since >= firstWaitMsMax
  }

  /** Returns whether a request of this user would be the first in the queue. */
  #isNext({ waiters, held }: UserState, width: number): boolean {
    if (waiters.size > 0) return false
    const first = this.#queue.first
    return first === undefined || held + width < (first.level ?? 0)
  }

  #mayShare({ held }: UserState, width: number): boolean {
    if (held + width > this.#userMax) return false
    const left = this.#sharedMax - this.#sharedHeld - width
    return left >= 0 && (held === 0 || held + width <= SHARE_OF_FREE * left)
  }

  #mayReserve({ held }: UserState, width: number): boolean {
    return held === 0 && width === 1 && this.#reservedHeld < this.#reservedMax
  }

  #take(state: UserState, width: number, isReserved: boolean): Slot {
    this.#hold(state, width, isReserved)
    this.#entered += 1
    return new HeldSlot(this.#giveBack, state, width, isReserved)
  }

  #hold(state: UserState, change: number, isReserved: boolean): void {
    if (isReserved) this.#reservedHeld += change
    else this.#sharedHeld += change
    state.held += change
    this.#queue.place(state)
  }

  readonly #giveBack = (state: UserState, width: number, isReserved: boolean): void => {
    this.#hold(state, -width, isReserved)
    this.#entered -= 1
    this.#forgetIfIdle(state)
    this.#admitWaiting()
  }

  /** Admits requests in the order of the queue while there are slots. */
  #admitWaiting(): void {
    for (let state = this.#queue.first; state !== undefined; state = this.#queue.first) {
      const waiter = state.waiters.first
      if (waiter === undefined || !this.#mayShare(state, waiter.width)) break
      waiter.admit(this.#take(state, waiter.width, false))
    }
    if (this.#reservedHeld >= this.#reservedMax) return
    for (const state of this.#queue.wantingFirstSlot()) {
      const waiter = state.waiters.first
      if (waiter === undefined || !this.#mayReserve(state, waiter.width)) continue
      waiter.admit(this.#take(state, waiter.width, true))
    }
  }

  #stateOf(user: string): UserState {
    let state = this.#users.get(user)
    if (state === undefined) {
      state = { user, held: 0, waiters: new WaiterQueue(), level: undefined }
      this.#users.set(user, state)
    }
    return state
  }

  #forgetIfIdle(state: UserState): void {
    if (state.held > 0 || state.waiters.size > 0) return
    this.#users.delete(state.user)
  }
}

/** Users with waiting requests, ordered by what they would hold with their first one. */
class UserQueue {
  /** Indexed by that number; FIFO among users with the same number. */
  readonly #levels: (Set<UserState> | undefined)[] = []
  #size = 0
  /** No user has a lower number. Spares a scan of all levels for each request. */
  #lowest = 0

  /** The user to serve next. */
  get first(): UserState | undefined {
    if (this.#size === 0) return undefined
    while ((this.#levels[this.#lowest]?.size ?? 0) === 0) this.#lowest += 1
    for (const state of this.#levels[this.#lowest] ?? NO_USERS) return state
    return undefined
  }

  /** Returns the users that hold no slot and whose first request takes one. */
  wantingFirstSlot(): Iterable<UserState> {
    return this.#levels[1] ?? NO_USERS
  }

  /** Called when the number of slots of a user, or the first of its requests, has changed. */
  place(state: UserState): void {
    const { first } = state.waiters
    const level = first && state.held + first.width
    if (level === state.level) return
    if (state.level !== undefined) {
      this.#levels[state.level]?.delete(state)
      this.#size -= 1
    }
    state.level = level
    if (level === undefined) return
    const users = this.#levels[level] ?? new Set()
    this.#levels[level] = users
    users.add(state)
    this.#size += 1
    this.#lowest = Math.min(this.#lowest, level)
  }
}

const NO_USERS: Iterable<UserState> = []

/** A class, since each request has one, and an object with a computed name is slow to create. */
class HeldSlot implements Slot {
  readonly #giveBack: GiveBack
  readonly #state: UserState
  readonly #width: number
  readonly #isReserved: boolean
  #isHeld = true

  constructor(giveBack: GiveBack, state: UserState, width: number, isReserved: boolean) {
    this.#giveBack = giveBack
    this.#state = state
    this.#width = width
    this.#isReserved = isReserved
  }

  [Symbol.dispose](): void {
    if (!this.#isHeld) return
    this.#isHeld = false
    this.#giveBack(this.#state, this.#width, this.#isReserved)
  }
}

type GiveBack = (state: UserState, width: number, isReserved: boolean) => void

interface UserState {
  readonly user: string
  held: number
  /** FIFO. */
  readonly waiters: WaiterQueue
  /** Its level in the queue of users; undefined when none of its requests waits. */
  level: number | undefined
}

interface Waiter {
  readonly width: number
  readonly since: number
  readonly admit: (slot: Slot) => void
  previous: Waiter | undefined
  next: Waiter | undefined
}

/** A FIFO queue. It is a linked list for the reason given in placed-set.ts. */
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

/** Slots without a queue: a request gets a slot at once or not at all. */
export function slotsWithoutQueue(limit: number, userMax?: number): FairSlots {
  return new FairSlots({
    limit,
    waitingMax: 0,
    waitMs: () => 0,
    ...(userMax !== undefined && { userMax }),
  })
}
