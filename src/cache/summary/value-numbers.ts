/** Numbers values that are below a bound: 0, 1, 2 and so on. Faster than pairs. */
export class ValueNumbers {
  /** The number of each value plus 1. */
  readonly #numbers: Uint32Array
  #size = 0

  constructor(span: number) {
    this.#numbers = new Uint32Array(span)
  }

  /** Does nothing: there is always space. */
  async reserve(): Promise<void> {}

  /** Ignores the first value of the pair, which must be the same for all. */
  numberOf(_first: number, value: number): number {
    const known = this.#numbers[value] ?? 0
    if (known !== 0) return known - 1
    const number = this.#size++
    this.#numbers[value] = number + 1
    return number
  }
}
