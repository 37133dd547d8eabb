import type { EventWatch, PulledWatch, WatchBatch } from '../../../src/storage/storage.ts'

/** Lets clients pull the batches of a watch that can only be iterated. */
export class IteratedWatch implements PulledWatch {
  readonly #watch: EventWatch
  readonly #stop = new AbortController()
  readonly #batches: WatchBatch[] = []
  #error: { readonly reason: unknown } | undefined
  #isStarted = false
  #isEnded = false
  #wake: (() => void) | undefined

  constructor(open: (signal: AbortSignal) => EventWatch, signal: AbortSignal) {
    this.#watch = open(AbortSignal.any([signal, this.#stop.signal]))
  }

  get isOver(): boolean {
    return this.#isEnded && this.#batches.length === 0 && this.#error === undefined
  }

  take(wake: () => void): WatchBatch | undefined {
    if (!this.#isStarted) void this.#run()
    this.#isStarted = true
    const batch = this.#batches.shift()
    if (batch !== undefined) return batch
    const error = this.#error
    this.#error = undefined
    if (error !== undefined) throw error.reason
    if (!this.#isEnded) this.#wake = wake
    return undefined
  }

  stop(): void {
    this.#stop.abort()
  }

  requestProgress(): void {
    this.#watch.requestProgress()
  }

  [Symbol.asyncIterator](): AsyncIterator<WatchBatch> {
    return this.#watch[Symbol.asyncIterator]()
  }

  async #run(): Promise<void> {
    try {
      for await (const batch of this.#watch) {
        this.#batches.push(batch)
        this.#wakeUp()
      }
    } catch (reason) {
      this.#error = { reason }
    }
    this.#isEnded = true
    this.#wakeUp()
  }

  #wakeUp(): void {
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }
}
