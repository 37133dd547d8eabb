/** Keys in the form that memory sorts by: the bytes of `namespace/name`, as in etcd. */
import type { EventKey, EventScope } from '../../storage/storage.ts'

export function orderKey(key: EventKey): Buffer {
  return Buffer.from(`${key.namespace}/${key.name}`)
}

export function eventKeyOf(ordered: Buffer): EventKey {
  const text = ordered.toString()
  const slash = text.indexOf('/')
  return { namespace: text.slice(0, slash), name: text.slice(slash + 1) }
}

/** A view for byte comparisons. */
export function viewOf(key: Buffer): DataView {
  return new DataView(key.buffer, key.byteOffset, key.length)
}

/** The first key after this one. */
export function keyAfter(key: Buffer): Buffer {
  return Buffer.concat([key, Buffer.alloc(1)])
}

/** Keys from `start` on and before `end`. */
export interface OrderRange {
  readonly start: Buffer
  /** Undefined: no upper bound. */
  readonly end: Buffer | undefined
}

/** The keys of a scope, or those of them that follow a key. */
export function orderRange({ namespace }: EventScope, after: EventKey | undefined): OrderRange {
  const first = Buffer.from(namespace === undefined ? '' : `${namespace}/`)
  const next = after === undefined ? first : keyAfter(orderKey(after))
  return {
    start: first.compare(next) < 0 ? next : first,
    // '0' is the character after the slash.
    end: namespace === undefined ? undefined : Buffer.from(`${namespace}0`),
  }
}
