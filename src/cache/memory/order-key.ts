/** Keys in the form that memory sorts by: the bytes of `cluster/namespace/name`, as in etcd. */
import { keyOfPath, pathOf, scopePath } from '../../storage/event-scope.ts'
import type { EventKey, EventScope } from '../../storage/storage.ts'

export function orderKey(key: EventKey): Buffer {
  return Buffer.from(pathOf(key))
}

export function eventKeyOf(ordered: Buffer): EventKey {
  return keyOfPath(ordered.toString())
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
export function orderRange(scope: EventScope, after: EventKey | undefined): OrderRange {
  const path = scopePath(scope)
  const first = Buffer.from(path)
  const next = after === undefined ? first : keyAfter(orderKey(after))
  return {
    start: first.compare(next) < 0 ? next : first,
    // '0' is the character after the slash.
    end: path === '' ? undefined : Buffer.from(`${path.slice(0, -1)}0`),
  }
}
