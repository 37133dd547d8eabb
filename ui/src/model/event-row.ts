/** An event as the page shows it, whichever API it was written with. */
import { humanDuration, timeOf } from './times.ts'

/** The object that an event is about. */
export interface ObjectName {
  readonly kind: string
  /** Empty for cluster-scoped objects. */
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

export interface EventRow {
  /** Unique: cluster, namespace and name of the event. */
  readonly key: string
  /** Empty unless all clusters are shown. */
  readonly cluster: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  readonly isWarning: boolean
  readonly type: string
  readonly reason: string
  readonly note: string
  readonly action: string
  readonly regarding: ObjectName
  readonly related: ObjectName | undefined
  readonly controller: string
  readonly instance: string
  readonly firstMs: number
  readonly lastMs: number
  /** Number of occurrences; at least 1. */
  readonly count: number
  readonly labels: Readonly<Record<string, string>>
}

/** The fields of a core/v1 Event that are shown. Any of them may be missing. */
export interface CoreEvent {
  readonly metadata?: {
    readonly name?: string
    readonly namespace?: string
    readonly uid?: string
    readonly resourceVersion?: string
    readonly creationTimestamp?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly involvedObject?: CoreReference
  readonly related?: CoreReference
  readonly type?: string
  readonly reason?: string
  readonly message?: string
  readonly action?: string
  readonly source?: { readonly component?: string; readonly host?: string }
  readonly reportingComponent?: string
  readonly reportingInstance?: string
  readonly eventTime?: string | null
  readonly firstTimestamp?: string | null
  readonly lastTimestamp?: string | null
  readonly count?: number
  readonly series?: { readonly count?: number; readonly lastObservedTime?: string | null }
}

interface CoreReference {
  readonly kind?: string
  readonly namespace?: string
  readonly name?: string
  readonly uid?: string
}

/** Annotation with the event's cluster, in lists of all clusters. */
const CLUSTER_ANNOTATION = 'tidings.dev/cluster'

/**
 * `place.cluster` is the requested cluster. The server sets the annotation only if that is `*`;
 * otherwise the annotation is whatever the event's writer made up.
 */
export function eventRow(
  event: CoreEvent,
  place: { readonly cluster: string } = { cluster: '' },
): EventRow {
  const { metadata = {}, series, source } = event
  const { name = '', namespace = '', uid = '', resourceVersion = '' } = metadata
  const named = metadata.annotations?.[CLUSTER_ANNOTATION] ?? ''
  const cluster = place.cluster === '*' ? named : ''
  const createdMs = timeOf(metadata.creationTimestamp) ?? 0
  // The server sorts and selects by the same rule.
  const lastMs =
    timeOf(series?.lastObservedTime) ??
    timeOf(event.lastTimestamp) ??
    timeOf(event.eventTime) ??
    createdMs
  const firstMs = timeOf(event.firstTimestamp) ?? timeOf(event.eventTime) ?? lastMs
  return {
    key: `${cluster}/${namespace}/${name}`,
    cluster,
    namespace,
    name,
    uid,
    resourceVersion,
    type: event.type ?? '',
    isWarning: event.type === 'Warning',
    reason: event.reason ?? '',
    note: event.message ?? '',
    action: event.action ?? '',
    regarding: objectName(event.involvedObject),
    related: event.related === undefined ? undefined : objectName(event.related),
    controller: event.reportingComponent || source?.component || '',
    instance: event.reportingInstance || source?.host || '',
    firstMs: Math.min(firstMs, lastMs),
    lastMs,
    count: Math.max(1, series?.count ?? event.count ?? 1),
    labels: metadata.labels ?? {},
  }
}

function objectName({
  kind = '',
  namespace = '',
  name = '',
  uid = '',
}: CoreReference = {}): ObjectName {
  return { kind, namespace, name, uid }
}

/** How often the event was seen: `42 over 18m`, or `42` within a second. Empty for once. */
export function repeatsOf({
  count,
  firstMs,
  lastMs,
}: Pick<EventRow, 'count' | 'firstMs' | 'lastMs'>): string {
  return count === 1 ? '' : `${count}${overText(lastMs - firstMs)}`
}

/** ` over 18m`; empty for less than a second. */
export function overText(ms: number): string {
  return ms < 1_000 ? '' : ` over ${humanDuration(ms)}`
}

/** Approximate size of an event whose JSON is not available. */
export function sizeOf(row: EventRow): number {
  let size = 500 + row.note.length + row.key.length
  for (const [name, value] of Object.entries(row.labels)) size += name.length + value.length
  return size
}

/**
 * Whether the page holds as many rows as it should. Their number is not enough: notes can be as
 * long as an event, and thousands of long ones would crash the tab.
 */
export function isMuch(rows: readonly EventRow[]): boolean {
  let bytes = 0
  for (const row of rows) bytes += sizeOf(row)
  return bytes > HELD_BYTES_MAX
}

/** About 20,000 typical events. */
const HELD_BYTES_MAX = 16 * 1024 * 1024

/** `Pod/shop/web-0` or `Node/node-1`: identifies an object in URLs and lanes. */
export function objectPath({ kind, namespace, name }: Omit<ObjectName, 'uid'>): string {
  const parts = namespace === '' ? [kind, name] : [kind, namespace, name]
  // Names never contain these, but writers of events can use any text.
  return parts.map((part) => part.replaceAll(/[%/@]/g, encodeURIComponent)).join('/')
}

/** The inverse of `objectPath`. Undefined for other texts, such as a uid. */
export function readObjectPath(path: string): Omit<ObjectName, 'uid'> | undefined {
  const parts = path.split('/').map((part) => part.replaceAll(/%(?:25|2F|40)/g, decodeURIComponent))
  const [kind = '', second = '', third] = parts
  if (parts.length < 2 || parts.length > 3) return undefined
  return third === undefined
    ? { kind, namespace: '', name: second }
    : { kind, namespace: second, name: third }
}
