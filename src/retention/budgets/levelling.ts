/** A namespace and its number of events or bytes. */
export interface Measured {
  readonly namespace: string
  readonly amount: number
}

/**
 * How much each of the largest namespaces gives up. Together they give up the excess, and none of them
 * becomes smaller than the largest one that gives up nothing. `largest` is sorted, largest first.
 */
export function levelled(largest: readonly Measured[], excess: number): readonly Measured[] {
  let sum = 0
  let count = 0
  for (const { amount } of largest) {
    // Already below the level of those before it.
    if (count > 0 && (sum - excess) / count >= amount) break
    sum += amount
    count += 1
  }
  const level = Math.max(0, Math.ceil((sum - excess) / Math.max(1, count)))
  const giving = largest.slice(0, count)
  // The remainder of rounding is less than one per namespace.
  let rest = excess - giving.reduce((given, { amount }) => given + Math.max(0, amount - level), 0)
  const shares: Measured[] = []
  for (const { namespace, amount } of giving) {
    const share = Math.max(0, amount - level) + (rest > 0 && level > 0 ? 1 : 0)
    if (rest > 0) rest -= 1
    if (share > 0) shares.push({ namespace, amount: share })
  }
  return shares
}

/** Finds the largest of many namespaces without sorting all of them. */
export class Largest {
  readonly #countMax: number
  readonly #found: Measured[] = []

  constructor(countMax: number) {
    this.#countMax = countMax
  }

  add(one: Measured): void {
    this.#found.push(one)
    if (this.#found.length >= 2 * this.#countMax) this.#cut()
  }

  /** Largest first. */
  sorted(): readonly Measured[] {
    this.#cut()
    return this.#found
  }

  #cut(): void {
    this.#found.sort((one, other) => other.amount - one.amount)
    this.#found.length = Math.min(this.#found.length, this.#countMax)
  }
}
