import { ownText } from '../../lib/text/own-text.ts'
import { keyEndIn } from '../../lib/text/sorted-text.ts'

/** An object with fewer labels is used as it is. */
const COMPACT_MIN = 64

export type Labels = Readonly<Record<string, string>> | CompactLabels

/** A name from a client may be that of an inherited member, but none of those is a string. */
export function labelOf(labels: Labels, name: string): string | undefined {
  if (labels instanceof CompactLabels) return labels.get(name)
  const value: unknown = labels[name]
  return typeof value === 'string' ? value : undefined
}

/**
 * Compacts labels that stay in memory: the compact form takes the size of its text, an object six
 * times that.
 */
export function compactLabels(labels: Readonly<Record<string, string>>): Labels {
  const names = Object.keys(labels)
  if (names.length < COMPACT_MIN) return labels
  const text = `\n${names
    .sort()
    .map((name) => `${name}\0${labels[name]}`)
    .join('\n')}\n`
  // No valid label contains these characters, but a label that another program wrote may.
  const isPlain = count(text, '\n') === names.length + 1 && count(text, '\0') === names.length
  return isPlain ? new CompactLabels(text) : labels
}

function count(text: string, character: string): number {
  return text.split(character).length - 1
}

/** Labels in one string, sorted by name for binary search. */
export class CompactLabels {
  /** A line feed precedes each label, and another one follows the last. */
  readonly #text: string

  constructor(text: string) {
    this.#text = ownText(text)
  }

  get(name: string): string | undefined {
    const text = this.#text
    const end = keyEndIn(text, name, PLACES)
    return end === undefined ? undefined : text.slice(end + 1, text.indexOf('\n', end))
  }
}

const PLACES = { separator: '\n', keyEnd: '\0' }
