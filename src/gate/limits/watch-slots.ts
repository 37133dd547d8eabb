import type { Slot } from './fair-slots.ts'

/** The limit that another watch would exceed: that of the replica, or that of its user. */
export type WatchRefusal = 'watches-full' | 'user-watches-full'

/**
 * Counts watches. Requests do not queue for a slot, since a watch lasts for hours. A user holds at
 * most as many as are still free, so that a few users cannot take all.
 */
export class WatchSlots {
  readonly #max: number
  readonly #maxPerUser: number
  /** Contains only users with watches. */
  readonly #byUser = new Map<string, number>()
  #held = 0

  constructor(max: number, maxPerUser: number) {
    this.#max = max
    this.#maxPerUser = maxPerUser
  }

  get held(): number {
    return this.#held
  }

  enter(user: string): Slot | WatchRefusal {
    if (this.#held >= this.#max) return 'watches-full'
    const held = this.#byUser.get(user) ?? 0
    if (held >= Math.min(this.#maxPerUser, this.#max - this.#held)) return 'user-watches-full'
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
