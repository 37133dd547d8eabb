/** Limits how much work runs concurrently; the rest waits in a FIFO queue. */
export class Semaphore {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(concurrency: number) {
    this.#free = concurrency
  }

  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      // The slot goes straight to the first waiter, so that a new caller cannot overtake the queue.
      const next = this.#waiting.shift()
      if (next === undefined) this.#free++
      else next()
    }
  }
}
