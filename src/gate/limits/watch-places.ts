import type { Place } from './fair-places.ts'

/** Why there can be no further watch: not of anybody, or not of this user. */
export type WatchRefusal = 'watches-full' | 'user-watches-full'

/** Counts watches, which last for hours: waiting for one to end would make no sense. */
export class WatchPlaces {
  readonly #max: number
  readonly #maxPerUser: number
  /** Of users who have any. */
  readonly #byUser = new Map<string, number>()
  #held = 0

  constructor(max: number, maxPerUser: number) {
    this.#max = max
    this.#maxPerUser = maxPerUser
  }

  get held(): number {
    return this.#held
  }

  enter(user: string): Place | WatchRefusal {
    if (this.#held >= this.#max) return 'watches-full'
    if ((this.#byUser.get(user) ?? 0) >= this.#maxPerUser) return 'user-watches-full'
    this.#count(user, 1)
    let isHeld = true
    return {
      [Symbol.dispose]: () => {
        if (isHeld) this.#count(user, -1)
        isHeld = false
      },
    }
  }

  #count(user: string, change: 1 | -1): void {
    this.#held += change
    const count = (this.#byUser.get(user) ?? 0) + change
    if (count === 0) this.#byUser.delete(user)
    else this.#byUser.set(user, count)
  }
}
