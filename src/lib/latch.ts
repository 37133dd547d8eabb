/** A one-shot flag that can be read and awaited: once open, it stays open. */
export class Latch {
  readonly #opened = Promise.withResolvers<void>()
  #isOpen = false

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Resolves when the latch opens, or immediately if it is already open. */
  get opened(): Promise<void> {
    return this.#opened.promise
  }

  open(): void {
    this.#isOpen = true
    this.#opened.resolve()
  }
}
