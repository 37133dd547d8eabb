import { ownText } from '../lib/own-text.ts'

/** With fewer than this, an object is small enough. */
const FEW = 64

/** As selectors ask for them. */
export type Labels = Readonly<Record<string, string>> | CompactLabels

export function labelOf(labels: Labels, name: string): string | undefined {
  if (labels instanceof CompactLabels) return labels.get(name)
  return Object.hasOwn(labels, name) ? labels[name] : undefined
}

/** To be kept: many labels take as much memory as their text, where an object takes six times that. */
export function compactLabels(labels: Readonly<Record<string, string>>): Labels {
  const names = Object.keys(labels)
  if (names.length < FEW) return labels
  const text = `\n${names
    .sort()
    .map((name) => `${name}\0${labels[name]}`)
    .join('\n')}\n`
  // None of ours has these characters; in what others wrote they would make two of one.
  const isPlain = count(text, '\n') === names.length + 1 && count(text, '\0') === names.length
  return isPlain ? new CompactLabels(text) : labels
}

function count(text: string, character: string): number {
  return text.split(character).length - 1
}

/** Labels in one text, sorted by name. Finding one takes some ten comparisons. */
export class CompactLabels {
  /** A line feed before each, and one after the last. */
  readonly #text: string

  constructor(text: string) {
    this.#text = ownText(text)
  }

  get(name: string): string | undefined {
    const text = this.#text
    // Line feeds between which it must be.
    let low = 0
    let high = text.length - 1
    while (low < high) {
      const start = text.lastIndexOf('\n', (low + high) >>> 1)
      const middle = text.indexOf('\0', start + 1)
      const end = text.indexOf('\n', middle)
      const found = text.slice(start + 1, middle)
      if (found === name) return text.slice(middle + 1, end)
      if (name < found) high = start
      else low = end
    }
    return undefined
  }
}
