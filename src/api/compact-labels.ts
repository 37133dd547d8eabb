import { ownText } from '../lib/own-text.ts'
import { keyEndIn } from '../lib/sorted-text.ts'

/** With fewer labels than this, the object itself is kept. */
const FEW = 64

/** The labels of an object, as selectors read them. */
export type Labels = Readonly<Record<string, string>> | CompactLabels

/** Names come from clients, but nothing that an object inherits is a string. */
export function labelOf(labels: Labels, name: string): string | undefined {
  if (labels instanceof CompactLabels) return labels.get(name)
  const value: unknown = labels[name]
  return typeof value === 'string' ? value : undefined
}

/** To be kept: many labels take as much memory as their text, where an object takes six times that. */
export function compactLabels(labels: Readonly<Record<string, string>>): Labels {
  const names = Object.keys(labels)
  if (names.length < FEW) return labels
  const text = `\n${names
    .sort()
    .map((name) => `${name}\0${labels[name]}`)
    .join('\n')}\n`
  // No valid label has these characters. A value that another program wrote may: it stays an object.
  const isPlain = count(text, '\n') === names.length + 1 && count(text, '\0') === names.length
  return isPlain ? new CompactLabels(text) : labels
}

function count(text: string, character: string): number {
  return text.split(character).length - 1
}

/** Labels in one text, sorted by name. */
export class CompactLabels {
  /** A line feed before each, and one after the last. */
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
