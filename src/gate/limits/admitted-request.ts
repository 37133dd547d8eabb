import type { Slot } from './fair-slots.ts'
import type { RefusalPace } from './refusal-pace.ts'

/** An admitted request. Disposing of it gives everything back. */
export interface Entry extends Disposable {
  /**
   * The work is done, and the request only waits from now on: for its client, or for changes if it
   * is a watch. Gives its slots back; a watch still counts as a watch.
   */
  settle(): void
}

export class AdmittedRequest implements Entry {
  readonly #pace: RefusalPace
  readonly #slot: Slot
  readonly #watch: Slot | undefined
  #isSettled = false

  constructor(pace: RefusalPace, slot: Slot, watch: Slot | undefined) {
    this.#pace = pace
    this.#slot = slot
    this.#watch = watch
  }

  settle(): void {
    if (this.#isSettled) return
    this.#isSettled = true
    this.#pace.served()
    this.#slot[Symbol.dispose]()
  }

  [Symbol.dispose](): void {
    this.settle()
    this.#watch?.[Symbol.dispose]()
  }
}
