/** Groups and buckets of events, counted one by one. */
import { type PlainEvent, textOf, treeOf } from './plain-event.ts'
import {
  countBefore,
  isEstimatedIn,
  type SeenWithin,
  seenWithin,
  type Window,
} from './plain-occurrences.ts'

export const ALWAYS: Window = {
  sinceMs: Number.NEGATIVE_INFINITY,
  untilMs: Number.POSITIVE_INFINITY,
}

export const GROUP_FIELDS = [
  'cluster',
  'namespace',
  'type',
  'reason',
  'kind',
  'object',
  'controller',
] as const

export type GroupField = (typeof GROUP_FIELDS)[number]

export interface PlainGroup {
  /** One value for each of `GROUP_FIELDS`. */
  readonly values: readonly string[]
  readonly occurrences: number
  readonly events: number
  readonly objects: number
  /** Undefined when no event has a time: such an event has the time 0. */
  readonly firstMs: number | undefined
  readonly lastMs: number | undefined
  readonly isEstimated: boolean
}

interface Member extends SeenWithin {
  readonly event: PlainEvent
}

/** Counts what was observed within the window. Sorts by occurrences, most first, then by values. */
export function plainSummary(
  events: readonly PlainEvent[],
  groupBy: readonly GroupField[],
  window: Window = ALWAYS,
): readonly PlainGroup[] {
  const groups = new Map<string, Member[]>()
  for (const event of events) {
    const seen = seenWithin(event, window)
    if (seen.count === 0) continue
    const id = JSON.stringify(valuesOf(event, groupBy))
    groups.set(id, [...(groups.get(id) ?? []), { event, ...seen }])
  }
  return [...groups]
    .map(([id, members]) => ({
      values: JSON.parse(id),
      occurrences: sum(members.map(({ count }) => count)),
      events: members.length,
      objects: new Set(members.map(({ event }) => identityOf(event))).size,
      firstMs: members
        .map(({ firstMs }) => firstMs)
        .filter((ms) => ms !== 0)
        .sort((one, other) => one - other)[0],
      lastMs: Math.max(...members.map(({ lastMs }) => lastMs)) || undefined,
      isEstimated: members.some(({ isEstimated }) => isEstimated),
    }))
    .sort(
      (one, other) =>
        other.occurrences - one.occurrences || compareValues(one.values, other.values),
    )
}

export interface PlainCount {
  readonly name: string
  readonly occurrences: number
  readonly events: number
  readonly estimated?: true
}

/** Returns the counts of each bucket, keyed by name. */
export function plainHistogram(
  events: readonly PlainEvent[],
  bounds: readonly number[],
  by: 'type' | 'reason',
): readonly (readonly PlainCount[])[] {
  return bounds.slice(1).map((untilMs, index) => {
    const bucket = { sinceMs: bounds[index] ?? 0, untilMs }
    const inside = events
      .map((event) => ({ name: textOf(event.tree, by), ...countIn(event, bucket) }))
      .filter(({ count }) => count > 0)
    const names = [...new Set(inside.map(({ name }) => name))].sort(compareTexts)
    return names.map((name) => {
      const members = inside.filter((one) => one.name === name)
      const occurrences = sum(members.map(({ count }) => count))
      const isEstimated = members.some((one) => one.isEstimated)
      return { name, occurrences, events: members.length, ...(isEstimated && { estimated: true }) }
    })
  })
}

/** The occurrences of an event in a bucket. */
function countIn(
  { sightings }: PlainEvent,
  bucket: Window,
): { readonly count: number; readonly isEstimated: boolean } {
  const parts = sightings
    .map((sighting) => ({
      count: countBefore(sighting, bucket.untilMs) - countBefore(sighting, bucket.sinceMs),
      isEstimated: isEstimatedIn(sighting, bucket),
    }))
    .filter(({ count }) => count > 0)
  return {
    count: sum(parts.map(({ count }) => count)),
    isEstimated: parts.some(({ isEstimated }) => isEstimated),
  }
}

function valuesOf(event: PlainEvent, groupBy: readonly GroupField[]): readonly string[] {
  const { key, tree } = event
  const regarding = treeOf(tree, 'regarding')
  const named = [textOf(regarding, 'namespace'), textOf(regarding, 'name')]
  const values: Readonly<Record<GroupField, string>> = {
    cluster: key.cluster,
    namespace: key.namespace,
    type: textOf(tree, 'type'),
    reason: textOf(tree, 'reason'),
    kind: textOf(regarding, 'kind'),
    object: [textOf(regarding, 'kind'), ...(named[0] === '' ? named.slice(1) : named)].join('/'),
    // Old events have it in another field.
    controller:
      textOf(tree, 'reportingController') || textOf(treeOf(tree, 'deprecatedSource'), 'component'),
  }
  return GROUP_FIELDS.filter((field) => groupBy.includes(field)).map((field) => values[field])
}

function identityOf({ key, tree }: PlainEvent): string {
  const { kind, namespace, name } = treeOf(tree, 'regarding')
  return JSON.stringify([key.cluster, kind ?? '', namespace ?? '', name ?? ''])
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

function compareValues(values: readonly string[], others: readonly string[]): number {
  for (const [index, value] of values.entries()) {
    const order = compareTexts(value, others[index] ?? '')
    if (order !== 0) return order
  }
  return 0
}

function compareTexts(text: string, other: string): number {
  if (text === other) return 0
  return text < other ? -1 : 1
}
