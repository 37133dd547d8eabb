/**
 * What the fields of a stored event mean, in the plainest way: from the parsed body, without any code
 * of the server.
 */
import type { EventKey } from '../../../src/storage/storage.ts'
import { type Sighting, sightingsOf } from './plain-occurrences.ts'

export type Tree = Readonly<Record<string, unknown>>

export interface PlainEvent {
  readonly key: EventKey
  /** `cluster/namespace/name`, whose bytes are the order of keys. */
  readonly path: Buffer
  readonly version: number
  readonly tree: Tree
  readonly lastSeenMs: number
  readonly firstSeenMs: number
  readonly occurrences: number
  readonly sightings: readonly Sighting[]
}

/** `before` is the event that was replaced. */
export function plainEvent(
  key: EventKey,
  version: number,
  tree: Tree,
  before?: PlainEvent,
): PlainEvent {
  const created = timeOf(treeOf(tree, 'metadata')['creationTimestamp'])
  const eventTime = timeOf(tree['eventTime'])
  const observed = timeOf(treeOf(tree, 'series')['lastObservedTime'])
  const deprecatedLast = timeOf(tree['deprecatedLastTimestamp'])
  const deprecatedFirst = timeOf(tree['deprecatedFirstTimestamp'])
  const seen = {
    lastSeenMs: observed ?? deprecatedLast ?? eventTime ?? created ?? 0,
    firstSeenMs: deprecatedFirst ?? eventTime ?? created ?? 0,
    occurrences: occurrencesOf(tree),
  }
  const isSame = before !== undefined && uidOf(before.tree) === uidOf(tree)
  return {
    key,
    path: Buffer.from(`${key.cluster}/${key.namespace}/${key.name}`),
    version,
    tree,
    ...seen,
    sightings: sightingsOf(seen, isSame ? before : undefined),
  }
}

function uidOf(tree: Tree): string {
  return textOf(treeOf(tree, 'metadata'), 'uid')
}

/** The member as an object; an empty one when it is something else. */
export function treeOf(tree: Tree, name: string): Tree {
  const value = Object.hasOwn(tree, name) ? tree[name] : undefined
  return typeof value === 'object' && value !== null ? (value as Tree) : {}
}

/** The member as a text; empty when it is something else. */
export function textOf(tree: Tree, name: string): string {
  const value = Object.hasOwn(tree, name) ? tree[name] : undefined
  return typeof value === 'string' ? value : ''
}

/** RFC 3339, in whole milliseconds; undefined when the value is not such a time. */
export function timeOf(value: unknown): number | undefined {
  const parts =
    typeof value === 'string'
      ? /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?Z$/.exec(value)
      : null
  if (parts === null) return undefined
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map(Number)
  const date = new Date(0)
  date.setUTCFullYear(year ?? 0, (month ?? 0) - 1, day)
  date.setUTCHours(hour ?? 0, minute, second, Number((parts[7] ?? '').padEnd(3, '0').slice(0, 3)))
  // A day or an hour that does not exist has moved the date.
  return date.toISOString().slice(0, 19) === parts[0].slice(0, 19) ? date.getTime() : undefined
}

function occurrencesOf(tree: Tree): number {
  const { series } = tree
  const hasSeries = typeof series === 'object' && series !== null
  const count = hasSeries ? treeOf(tree, 'series')['count'] : tree['deprecatedCount']
  return typeof count === 'number' ? Math.max(1, count) : 1
}
