import { entityTooLarge } from '../../api/status.ts'
import type { Json } from '../../lib/json.ts'

/**
 * The maximum length of an encoded string: etcd's request limit, beyond which nothing is stored.
 */
const TEXT_LENGTH_MAX = 1024 * 1536

/** Writes compact JSON like Go: sorts members, and escapes `<`, `>`, `&` and line separators. */
export function jsonOf(tree: Json): string {
  if (typeof tree === 'string') return quotedJson(tree)
  if (typeof tree !== 'object' || tree === null) return JSON.stringify(tree)
  if (Array.isArray(tree)) return `[${tree.map(jsonOf).join(',')}]`
  const members = sortedNames(tree).map(
    (name) => `${quotedJson(name)}:${jsonOf(tree[name] ?? null)}`,
  )
  return `{${members.join(',')}}`
}

/** Writes a JSON string with Go's escapes. Throws a StatusError 413 if it is too long. */
export function quotedJson(text: string): string {
  return ESCAPED.test(text) ? escapedJson(text) : `"${text}"`
}

/** Characters that are escaped, and surrogates, which may be unpaired. */
const ESCAPED = /[^ !#-%'-;=?-[\]-\u2027\u202a-\ud7ff\ue000-\uffff]/

/** Returns the names of an object in the order of their UTF-8 bytes, like Go. */
export function sortedNames(object: object): string[] {
  const names = Object.keys(object).sort()
  // Sorting by UTF-16 units is much faster, and the order differs only for surrogates.
  return names.some((name) => SURROGATE.test(name)) ? names.sort(compareBytes) : names
}

const SURROGATE = /[\ud800-\udfff]/

function compareBytes(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at++) {
    const left = a.charCodeAt(at)
    const right = b.charCodeAt(at)
    if (left !== right) return rank(left) - rank(right)
  }
  return a.length - b.length
}

/** Surrogates sort last, since they encode characters above all that have one unit. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}

/** Characters that Go escapes and JSON.stringify does not. */
const MORE_ESCAPES: ReadonlyMap<string, string> = new Map([
  ['<', '\\u003c'],
  ['>', '\\u003e'],
  ['&', '\\u0026'],
  ['\u2028', '\\u2028'],
  ['\u2029', '\\u2029'],
])

function escapedJson(text: string): string {
  const json = JSON.stringify(text.toWellFormed())
  // Expanding a megabyte of these characters to six megabytes would block the event loop.
  if (json.length * ESCAPE_LENGTH > TEXT_LENGTH_MAX) checkGrowth(json)
  return json.replace(/[<>&\u2028\u2029]/g, (character) => MORE_ESCAPES.get(character) ?? character)
}

const ESCAPE_LENGTH = '\\u003c'.length

function checkGrowth(json: string): void {
  let length = json.length
  for (let at = 0; at < json.length; at++) {
    if (isGrowing(json.charCodeAt(at))) length += ESCAPE_LENGTH - 1
  }
  if (length <= TEXT_LENGTH_MAX) return
  throw entityTooLarge('the event does not fit into the datastore', undefined)
}

/** Returns whether it is `<`, `>`, `&` or one of the two line separators. */
function isGrowing(code: number): boolean {
  return code === 0x3c || code === 0x3e || code === 0x26 || code === 0x2028 || code === 0x2029
}
