import { ownText } from '../lib/own-text.ts'
import { keyEndIn } from '../lib/sorted-text.ts'

/**
 * Many values in one string, sorted, for a list that is kept for as long as a watch: it takes as much
 * memory as its text, where a set would take ten times that. Finding a value takes some ten
 * comparisons. Values have no commas in them.
 */
export class ValueList {
  /** A comma before each value, and one after the last. */
  readonly #text: string

  constructor(values: Iterable<string>) {
    this.#text = ownText(`,${[...new Set(values)].sort().join(',')},`)
  }

  has(value: string): boolean {
    return keyEndIn(this.#text, value, PLACES) !== undefined
  }
}

const PLACES = { separator: ',', keyEnd: ',' }
