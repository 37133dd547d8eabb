/** Keys and scopes as text. The order of events is the byte order of `cluster/namespace/name`. */
import type { EventKey, EventScope } from './storage.ts'

/** The events of all clusters. */
export const allEvents: EventScope = { cluster: undefined, namespace: undefined }

export function pathOf({ cluster, namespace, name }: EventKey): string {
  return `${cluster}/${namespace}/${name}`
}

/** Undefined for a text that does not have this form. */
export function parsePath(path: string): EventKey | undefined {
  const first = path.indexOf('/')
  const second = path.indexOf('/', first + 1)
  if (first < 1 || second <= first + 1) return undefined
  const name = path.slice(second + 1)
  if (!isPart(name)) return undefined
  return { cluster: path.slice(0, first), namespace: path.slice(first + 1, second), name }
}

/** Throws for a text that does not have this form. */
export function keyOfPath(path: string): EventKey {
  const key = parsePath(path)
  if (key === undefined) throw new RangeError(`not the path of an event: ${path}`)
  return key
}

/** Whether this text can be a part of a key. */
export function isPart(text: string): boolean {
  return text !== '' && !text.includes('/')
}

/** The prefix of the paths of all events in the scope, and of no others. */
export function scopePath({ cluster, namespace }: EventScope): string {
  if (cluster === undefined) return ''
  return namespace === undefined ? `${cluster}/` : `${cluster}/${namespace}/`
}

/** Whether an event, or all events of a smaller scope, are in the scope. */
export function isInScope({ cluster, namespace }: EventScope, key: EventScope): boolean {
  if (cluster === undefined) return true
  if (cluster !== key.cluster) return false
  return namespace === undefined || namespace === key.namespace
}
