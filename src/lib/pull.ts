/**
 * Something that comes piece by piece, taken without a promise for each: what is there is there at
 * once, and whoever finds nothing leaves word where to call. For what is handed to ten thousands,
 * this is most of what it costs.
 */
export interface Pull<T> {
  /**
   * The next piece. Undefined when there is none: then, unless it is over, `wake` is called once, as
   * soon as it is worth asking again, and never before this returns. Throws, once, why it ends.
   */
  take(wake: () => void): T | undefined
  /** There will be no more. */
  readonly isOver: boolean
  /** No more is wanted. */
  stop(): void
  /** What is kept for whoever takes the pieces, and for nobody else; without it, nothing. */
  readonly heldBytes?: number
}

/** The same for `for await`. */
export class Pulled<T> implements AsyncIterableIterator<T, undefined> {
  readonly #pull: Pull<T>
  #answer: ((result: Promise<IteratorResult<T, undefined>>) => void) | undefined

  constructor(pull: Pull<T>) {
    this.#pull = pull
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** One at a time, as `for await` does it. */
  async next(): Promise<IteratorResult<T, undefined>> {
    const value = this.#pull.take(this.#wake)
    if (value !== undefined) return { value, done: false }
    if (this.#pull.isOver) return { value: undefined, done: true }
    return new Promise((resolve) => {
      this.#answer = resolve
    })
  }

  async return(): Promise<IteratorResult<T, undefined>> {
    this.#pull.stop()
    return { value: undefined, done: true }
  }

  readonly #wake = (): void => {
    const answer = this.#answer
    this.#answer = undefined
    answer?.(this.next())
  }
}
