/**
 * A pull source of pieces that needs no promise per piece: buffered pieces are returned
 * synchronously, and a consumer that finds none registers a wake callback. When each change goes to
 * ten thousand watchers, promises would be most of the cost.
 */
export interface Pull<T> {
  /**
   * The next piece, or undefined when none is buffered. In that case, unless the source is over,
   * `wake` is called once, as soon as another `take` is worthwhile, but never before this call
   * returns. When the source ends with an error, one call throws it.
   */
  take(wake: () => void): T | undefined
  readonly isOver: boolean
  /** Cancels the source. */
  stop(): void
  /** Bytes buffered for this consumer alone. Default: 0. */
  readonly heldBytes?: number
}

/** Adapts a pull source to `for await`. */
export class Pulled<T> implements AsyncIterableIterator<T, undefined> {
  readonly #pull: Pull<T>
  #resolve: ((result: Promise<IteratorResult<T, undefined>>) => void) | undefined

  constructor(pull: Pull<T>) {
    this.#pull = pull
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** At most one call may be pending, as in `for await`. */
  async next(): Promise<IteratorResult<T, undefined>> {
    const value = this.#pull.take(this.#wake)
    if (value !== undefined) return { value, done: false }
    if (this.#pull.isOver) return { value: undefined, done: true }
    return new Promise((resolve) => {
      this.#resolve = resolve
    })
  }

  async return(): Promise<IteratorResult<T, undefined>> {
    this.#pull.stop()
    return { value: undefined, done: true }
  }

  readonly #wake = (): void => {
    const resolve = this.#resolve
    this.#resolve = undefined
    resolve?.(this.next())
  }
}
