import type { Slot } from './fair-slots.ts'
import type { RefusalPace } from './refusal-pace.ts'

/** An admitted request. Holds its slots until it is disposed of. */
export interface Entry extends Disposable {
  /** A watch has sent its initial events: it gives its slots back and counts only as a watch. */
  settle(): void
}

export class AdmittedRequest implements Entry {
  readonly #pace: RefusalPace
  readonly #slot: Slot
  readonly #watch: Slot | undefined

  constructor(pace: RefusalPace, slot: Slot, watch: Slot | undefined) {
    this.#pace = pace
    this.#slot = slot
    this.#watch = watch
  }

  settle(): void {
    this.#slot[Symbol.dispose]()
  }

  [Symbol.dispose](): void {
    this.#pace.served()
    this.#slot[Symbol.dispose]()
    this.#watch?.[Symbol.dispose]()
  }
}
