import { isObject, type Json } from '../../lib/json.ts'
import { TRUNCATED_MAX, truncate } from '../../lib/text/truncate.ts'
import type { ParsedJson } from '../json/json-text.ts'
import { PROBLEMS_MAX } from './struct-decoding.ts'

/**
 * Returns the paths of repeated names in any document, such as `metadata.labels.a` or `[0].op`, in
 * document order. There are at most PROBLEMS_MAX, each truncated to little more than a name.
 */
export function duplicateFields({ value, duplicates }: ParsedJson): readonly string[] {
  if (duplicates.size === 0) return []
  const search = new Search(duplicates)
  search.visit(value)
  return search.found
}

class Search {
  readonly found: string[] = []
  readonly #duplicates: ParsedJson['duplicates']
  /** The path of the current value, joined only when a duplicate is found. */
  readonly #path: string[] = []

  constructor(duplicates: ParsedJson['duplicates']) {
    this.#duplicates = duplicates
  }

  visit(tree: Json): void {
    if (Array.isArray(tree)) {
      for (const [index, entry] of tree.entries()) this.#enter(`[${index}]`, entry, false)
    } else if (isObject(tree)) {
      const repeated = this.#duplicates.get(tree)
      for (const name of Object.keys(tree)) {
        const part = `.${truncate(name)}`
        this.#enter(part, tree[name] ?? null, repeated?.has(name) === true)
      }
    }
  }

  #enter(part: string, value: Json, isRepeated: boolean): void {
    if (this.found.length >= PROBLEMS_MAX) return
    this.#path.push(part)
    if (isRepeated) this.found.push(pathText(this.#path))
    this.visit(value)
    this.#path.pop()
  }
}

function pathText(path: readonly string[]): string {
  const name = path.at(-1) ?? ''
  const before = path.slice(0, -1).join('')
  const start = before.length <= TRUNCATED_MAX ? before : `${truncate(before)}...`
  return `${start}${name}`.replace(/^\./, '')
}
