import { ownText } from '../lib/own-text.ts'

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
    const text = this.#text
    // Commas between which it must be.
    let low = 0
    let high = text.length - 1
    while (low < high) {
      const start = text.lastIndexOf(',', (low + high) >>> 1)
      const end = text.indexOf(',', start + 1)
      const order = compare(value, text, start + 1, end)
      if (order === 0) return true
      if (order < 0) high = start
      else low = end
    }
    return false
  }
}

/** As strings are sorted: by their code units. */
function compare(value: string, text: string, from: number, to: number): number {
  const length = Math.min(value.length, to - from)
  for (let at = 0; at < length; at++) {
    const difference = value.charCodeAt(at) - text.charCodeAt(from + at)
    if (difference !== 0) return difference
  }
  return value.length - (to - from)
}
