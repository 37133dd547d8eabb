/**
 * A number of places that many users share. Nobody is given a fixed part: a user may take another
 * place as long as it holds fewer than `SHARE_OF_FREE` times what is free. So one user alone gets
 * three quarters of them, two get three sevenths each, and as places come and go those who want all
 * they can get end up with the same, and leave as much as a third of that free for whoever comes
 * next: those who ask for little never wait for those who ask for much.
 *
 * A request may count as several places. It is let in as soon as one is free, and what it takes too
 * much is missing for those who come after: otherwise small ones would always be there first.
 */
import { type Clock, monotonicClock } from '../../lib/clock.ts'

/**
 * More would give one user alone more of the places, and take fewer users that sit on theirs
 * (clients that do not read their answers) to leave none.
 */
const SHARE_OF_FREE = 3

/** Gives back what was taken; more than once does no harm. */
export type Place = Disposable

/** Why there was no place: too many wait already, or waiting took too long. */
export type RefusalReason = 'queue-full' | 'time-out'

/** Who asks to be let in. */
export interface Entering {
  readonly user: string
  /** How many places it counts as. */
  readonly width: number
}

export interface FairPlacesOptions {
  /** Infinity only counts. */
  readonly limit: number
  /** Of one user, however many are free. */
  readonly userMax?: number
  /** Requests that may wait for a place; of one user, as many as there is room left for others. */
  readonly waitingMax: number
  /** Nobody lines up behind one of the same user that has been waiting for so long. */
  readonly firstWaitMsMax?: number
  /**
   * How long one may wait that finds so many waiting. Asked for each: those who came together had
   * better not leave together.
   */
  readonly waitMs: (waiting: number) => number
  /** Hears how long each one that waited has done so, and whether it was given a place. */
  readonly onWaited?: (waitedMs: number, hasPlace: boolean) => void
  readonly clock?: Clock
}

/** Gives places to users fairly; those who have to wait are taken in turn, user by user. */
export class FairPlaces {
  readonly #options: FairPlacesOptions
  readonly #clock: Clock
  readonly #userMax: number
  #held = 0
  #entered = 0
  #waiting = 0
  /** Those who hold a place or wait for one, and nobody else: strangers cannot make it grow. */
  readonly #sharers = new Map<string, Sharer>()
  /** Those who have somebody waiting, in the order of their turns; maybe some who no longer do. */
  readonly #turns: Sharer[] = []

  constructor(options: FairPlacesOptions) {
    this.#options = options
    this.#clock = options.clock ?? monotonicClock
    this.#userMax = options.userMax ?? Number.POSITIVE_INFINITY
  }

  /** Places taken; beyond the limit by less than the width of one request. */
  get held(): number {
    return this.#held
  }

  /** Requests that have been let in and have not left. */
  get entered(): number {
    return this.#entered
  }

  get waiting(): number {
    return this.#waiting
  }

  /** How many users are known at the moment. */
  get users(): number {
    return this.#sharers.size
  }

  /** Lets the user in if that may be at once. */
  tryEnter({ user, width }: Entering): Place | undefined {
    const sharer = this.#sharerOf(user)
    if (sharer.waiters.size === 0 && this.#mayTake(sharer)) return this.#take(sharer, width)
    this.#forgetIfIdle(sharer)
    return undefined
  }

  /**
   * Waits for a place; tells why when it takes too long or too many wait already. Rejects with the
   * signal's reason, at once, when that aborts.
   */
  async wait({ user, width }: Entering, signal: AbortSignal): Promise<Place | RefusalReason> {
    signal.throwIfAborted()
    const sharer = this.#sharerOf(user)
    const since = this.#clock.now()
    if (this.#isQueueFull(sharer, since)) {
      this.#forgetIfIdle(sharer)
      return 'queue-full'
    }
    const { promise, resolve, reject } = Promise.withResolvers<Place | RefusalReason>()
    const leave = (hasPlace: boolean): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      this.#waiting -= 1
      sharer.waiters.delete(waiter)
      if (!hasPlace) this.#forgetIfIdle(sharer)
      this.#options.onWaited?.(this.#clock.now() - since, hasPlace)
    }
    const waiter: Waiter = {
      width,
      since,
      admit: (place) => {
        leave(true)
        resolve(place)
      },
    }
    const onAbort = (): void => {
      leave(false)
      reject(signal.reason)
    }
    const timer = setTimeout(() => {
      leave(false)
      resolve('time-out')
    }, this.#options.waitMs(this.#waiting))
    signal.addEventListener('abort', onAbort)
    this.#waiting += 1
    sharer.waiters.add(waiter)
    this.#line(sharer)
    return promise
  }

  /** Too many wait, or so slowly do they get in that it makes no sense to line up behind them. */
  #isQueueFull({ waiters }: Sharer, now: number): boolean {
    if (waiters.size >= this.#options.waitingMax - this.#waiting) return true
    const { firstWaitMsMax = Number.POSITIVE_INFINITY } = this.#options
    const [first] = waiters
    return first !== undefined && now - first.since >= firstWaitMsMax
  }

  #mayTake({ held }: Sharer): boolean {
    return this.#free > 0 && held < SHARE_OF_FREE * this.#free && held < this.#userMax
  }

  get #free(): number {
    return this.#options.limit - this.#held
  }

  #take(sharer: Sharer, width: number): Place {
    sharer.held += width
    this.#held += width
    this.#entered += 1
    let isHeld = true
    return {
      [Symbol.dispose]: () => {
        if (!isHeld) return
        isHeld = false
        sharer.held -= width
        this.#held -= width
        this.#entered -= 1
        this.#forgetIfIdle(sharer)
        this.#admitWaiting()
      },
    }
  }

  /** One for each user in turn, until nobody may have more. */
  #admitWaiting(): void {
    for (let refused = 0; refused < this.#turns.length && this.#free > 0; ) {
      const sharer = this.#turns.shift()
      if (sharer === undefined) return
      sharer.isInLine = false
      const [waiter] = sharer.waiters
      if (waiter === undefined) continue
      if (this.#mayTake(sharer)) {
        refused = 0
        waiter.admit(this.#take(sharer, waiter.width))
      } else refused += 1
      if (sharer.waiters.size > 0) this.#line(sharer)
    }
  }

  #line(sharer: Sharer): void {
    if (sharer.isInLine) return
    sharer.isInLine = true
    this.#turns.push(sharer)
  }

  #sharerOf(user: string): Sharer {
    let sharer = this.#sharers.get(user)
    if (sharer === undefined) {
      sharer = { user, held: 0, waiters: new Set(), isInLine: false }
      this.#sharers.set(user, sharer)
    }
    return sharer
  }

  #forgetIfIdle(sharer: Sharer): void {
    if (sharer.held > 0 || sharer.waiters.size > 0) return
    this.#sharers.delete(sharer.user)
    if (sharer.isInLine) this.#turns.splice(this.#turns.indexOf(sharer), 1)
  }
}

interface Sharer {
  readonly user: string
  held: number
  /** First come, first served, among the requests of one user. */
  readonly waiters: Set<Waiter>
  isInLine: boolean
}

interface Waiter {
  readonly width: number
  readonly since: number
  readonly admit: (place: Place) => void
}

/** Places that nobody waits for. */
export function immediatePlaces(limit: number, userMax?: number): FairPlaces {
  return new FairPlaces({
    limit,
    waitingMax: 0,
    waitMs: () => 0,
    ...(userMax !== undefined && { userMax }),
  })
}
