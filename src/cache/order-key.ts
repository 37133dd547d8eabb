/**
 * Keys as memory sorts them: the bytes of `namespace/name`, one character each. Comparing such
 * strings is comparing bytes, which is etcd's order; for names of plain letters it is the text
 * itself.
 */
import type { EventKey, EventScope } from '../storage/storage.ts'

export function orderKey(key: EventKey): string {
  return toBytes(`${key.namespace}/${key.name}`)
}

export function eventKeyOf(ordered: string): EventKey {
  const text = isPlain(ordered) ? ordered : Buffer.from(ordered, 'latin1').toString()
  const slash = text.indexOf('/')
  return { namespace: text.slice(0, slash), name: text.slice(slash + 1) }
}

/** Keys from `start` on and before `end`. */
export interface OrderRange {
  readonly start: string
  /** Undefined: to the last. */
  readonly end: string | undefined
}

/** What a scope covers, or what is left of it after a key. */
export function orderRange(scope: EventScope, after: EventKey | undefined): OrderRange {
  const namespace = scope.namespace === undefined ? undefined : toBytes(scope.namespace)
  const first = namespace === undefined ? '' : `${namespace}/`
  const next = after === undefined ? '' : `${orderKey(after)}\0`
  const isInside = next > first
  return {
    start: isInside ? next : first,
    // The character that follows the slash.
    end: namespace === undefined ? undefined : `${namespace}0`,
  }
}

function toBytes(text: string): string {
  return isPlain(text) ? text : Buffer.from(text).toString('latin1')
}

function isPlain(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII is meant
  return /^[\x00-\x7f]*$/.test(text)
}
