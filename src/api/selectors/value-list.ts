import { ownText } from '../../lib/text/own-text.ts'
import { keyEndIn } from '../../lib/text/sorted-text.ts'

/**
 * A set of values in one sorted string, for lists that stay in memory as long as their watch: it
 * takes the size of its text, a Set would take ten times that. A lookup is a binary search with
 * about ten comparisons. Values must not contain commas.
 */
export class ValueList {
  /** A comma precedes each value, and another one follows the last. */
  readonly #text: string

  constructor(values: Iterable<string>) {
    this.#text = ownText(`,${[...new Set(values)].sort().join(',')},`)
  }

  has(value: string): boolean {
    return keyEndIn(this.#text, value, PLACES) !== undefined
  }
}

const PLACES = { separator: ',', keyEnd: ',' }
