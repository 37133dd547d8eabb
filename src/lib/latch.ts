/** A one-shot flag: once open it stays open. It can be read and awaited. */
export class Latch {
  readonly #opened = Promise.withResolvers<void>()
  #isOpen = false

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Resolves when the latch opens; at once if it is already open. */
  get opened(): Promise<void> {
    return this.#opened.promise
  }

  open(): void {
    this.#isOpen = true
    this.#opened.resolve()
  }
}
