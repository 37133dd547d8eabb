/** Exponential backoff with jitter: each pause is twice as long as the previous, up to a maximum. */
export class Backoff {
  readonly #firstMs: number
  readonly #mostMs: number
  readonly #random: () => number
  #nextMs: number

  constructor(bounds: {
    readonly firstMs: number
    readonly mostMs: number
    /** Uniform in [0, 1); tests pass their own. */
    readonly random?: () => number
  }) {
    this.#firstMs = bounds.firstMs
    this.#mostMs = bounds.mostMs
    this.#random = bounds.random ?? Math.random
    this.#nextMs = bounds.firstMs
  }

  /** Returns 80 % to 100 % of the step, so that clients do not retry in sync. */
  next(): number {
    const stepMs = this.#nextMs
    this.#nextMs = Math.min(this.#mostMs, stepMs * 2)
    return stepMs * (0.8 + 0.2 * this.#random())
  }

  /** Must be called after a success: the next pause is the first one again. */
  reset(): void {
    this.#nextMs = this.#firstMs
  }
}
