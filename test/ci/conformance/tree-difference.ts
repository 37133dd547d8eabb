import { isDeepStrictEqual } from 'node:util'
import { isObject, type Json, memberOf } from '../../../src/lib/json.ts'

const SHOWN_LENGTH_MAX = 160

/** Where two trees differ: one line for each place, the innermost that contains the difference. */
export function treeDifferences(got: Json, wanted: Json, path = ''): readonly string[] {
  if (isDeepStrictEqual(got, wanted)) return []
  if (Array.isArray(got) && Array.isArray(wanted)) {
    if (got.length !== wanted.length) {
      return [
        `${path || '.'}: ${got.length} items instead of ${wanted.length}: ${shownItems(got)} instead of ${shownItems(wanted)}`,
      ]
    }
    return got.flatMap((item, index) =>
      treeDifferences(item, wanted[index] as Json, `${path}[${index}]`),
    )
  }
  if (isObject(got) && isObject(wanted)) {
    const names = new Set([...Object.keys(wanted), ...Object.keys(got)])
    return [...names].flatMap((name) => {
      const [left, right] = [memberOf(got, name), memberOf(wanted, name)]
      const at = `${path}.${name}`
      if (left === undefined) return [`${at}: missing, wanted ${shown(right)}`]
      if (right === undefined) return [`${at}: unexpected ${shown(left)}`]
      return treeDifferences(left, right, at)
    })
  }
  if (typeof got === 'string' && typeof wanted === 'string') {
    return [`${path || '.'}: ${shownBeside(got, wanted)}`]
  }
  return [`${path || '.'}: ${shown(got)}, wanted ${shown(wanted)}`]
}

/** Two texts, from shortly before their first difference. */
export function shownBeside(got: string, wanted: string): string {
  let same = 0
  while (same < got.length && got[same] === wanted[same]) same++
  const from = got.length + wanted.length > SHOWN_LENGTH_MAX ? Math.max(0, same - 30) : 0
  const lead = from > 0 ? '…' : ''
  return `${lead}${shown(got.slice(from))}, wanted ${lead}${shown(wanted.slice(from))}`
}

/** A value as JSON, cut to what fits on a line. */
export function shown(value: Json | undefined): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length <= SHOWN_LENGTH_MAX ? text : `${text.slice(0, SHOWN_LENGTH_MAX)}…`
}

/** Items by their names where they have some, so that a reader sees which one is too many. */
function shownItems(items: readonly Json[]): string {
  return shown(items.map(nameOf))
}

function nameOf(item: Json): Json {
  if (!isObject(item)) return item
  const inner = memberOf(item, 'object')
  const metadata = memberOf(item, 'metadata')
  const name = isObject(metadata) ? memberOf(metadata, 'name') : undefined
  const type = memberOf(item, 'type')
  if (typeof type === 'string' && inner !== undefined) return `${type} ${String(nameOf(inner))}`
  return name ?? memberOf(item, 'field') ?? memberOf(item, 'kind') ?? item
}
