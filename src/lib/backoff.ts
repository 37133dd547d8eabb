/** Growing pauses between attempts: each twice the one before, up to a most, never quite equal. */
export class Backoff {
  readonly #firstMs: number
  readonly #mostMs: number
  readonly #random: () => number
  #nextMs: number

  constructor(bounds: {
    readonly firstMs: number
    readonly mostMs: number
    /** Uniform in [0, 1); handed in by tests. */
    readonly random?: () => number
  }) {
    this.#firstMs = bounds.firstMs
    this.#mostMs = bounds.mostMs
    this.#random = bounds.random ?? Math.random
    this.#nextMs = bounds.firstMs
  }

  /** The pause to make now, between 80 % and 100 % of its step so that crowds spread out. */
  next(): number {
    const stepMs = this.#nextMs
    this.#nextMs = Math.min(this.#mostMs, stepMs * 2)
    return stepMs * (0.8 + 0.2 * this.#random())
  }

  /** Call after a success: the next pause is the first one again. */
  reset(): void {
    this.#nextMs = this.#firstMs
  }
}
