/** Something that happens once and stays so: can be looked at, and waited for. */
export class Latch {
  readonly #opened = Promise.withResolvers<void>()
  #isOpen = false

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Resolves when open; at once if it already is. */
  get opened(): Promise<void> {
    return this.#opened.promise
  }

  open(): void {
    this.#isOpen = true
    this.#opened.resolve()
  }
}
