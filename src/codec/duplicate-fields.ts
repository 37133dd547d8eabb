import { isObject, type Json } from '../lib/json.ts'
import { SHOWN_MAX, shown } from '../lib/shown.ts'
import type { ParsedJson } from './json-text.ts'
import { PROBLEMS_MAX } from './struct-decoding.ts'

/**
 * Where a text repeats names, whatever it is about: `metadata.labels.a`, `[0].op`. In the order of the
 * document, as many as are told, and none much longer than a name.
 */
export function duplicateFields({ value, duplicates }: ParsedJson): readonly string[] {
  if (duplicates.size === 0) return []
  const search = new Search(duplicates)
  search.within(value)
  return search.found
}

class Search {
  readonly found: string[] = []
  readonly #duplicates: ParsedJson['duplicates']
  /** To where the search is; printed only for what is found. */
  readonly #way: string[] = []

  constructor(duplicates: ParsedJson['duplicates']) {
    this.#duplicates = duplicates
  }

  within(tree: Json): void {
    if (Array.isArray(tree)) {
      for (const [index, entry] of tree.entries()) this.#enter(`[${index}]`, entry, false)
    } else if (isObject(tree)) {
      const repeated = this.#duplicates.get(tree)
      for (const name of Object.keys(tree)) {
        const part = `.${shown(name)}`
        this.#enter(part, tree[name] ?? null, repeated?.has(name) === true)
      }
    }
  }

  #enter(part: string, value: Json, isRepeated: boolean): void {
    if (this.found.length >= PROBLEMS_MAX) return
    this.#way.push(part)
    if (isRepeated) this.found.push(printed(this.#way))
    this.within(value)
    this.#way.pop()
  }
}

function printed(way: readonly string[]): string {
  const name = way.at(-1) ?? ''
  const before = way.slice(0, -1).join('')
  const start = before.length <= SHOWN_MAX ? before : `${shown(before)}...`
  return `${start}${name}`.replace(/^\./, '')
}
