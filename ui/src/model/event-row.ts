/** An event as the page shows it, whichever API it was written with. */
import { humanDuration, timeOf } from './times.ts'

/** The object that an event is about. */
export interface ObjectName {
  readonly kind: string
  /** Empty for objects without a namespace. */
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

export interface EventRow {
  /** Unique: the cluster, the namespace and the name of the event. */
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
  /** How often it was seen; at least 1. */
  readonly count: number
  readonly labels: Readonly<Record<string, string>>
}

/** The parts of an event of core/v1 that are shown. Nothing of it is trusted to be there. */
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

/** The annotation that names the cluster of an event, in lists of all clusters. */
const CLUSTER_ANNOTATION = 'tidings.dev/cluster'

/**
 * `place.cluster`: the cluster that was asked for. The server writes the annotation only where that
 * is `*`; elsewhere it is what any writer of events has made up.
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

/** `42 over 18m`, or `42` within a second: how often it was seen. Empty for once. */
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

/** About the bytes of an event whose JSON is not at hand. */
export function sizeOf(row: EventRow): number {
  let size = 500 + row.note.length + row.key.length
  for (const [name, value] of Object.entries(row.labels)) size += name.length + value.length
  return size
}

/**
 * Whether the page holds as much as it should. Rows alone do not tell: a note may have as many bytes
 * as an event, and thousands of such events would end the tab.
 */
export function isMuch(rows: readonly EventRow[]): boolean {
  let bytes = 0
  for (const row of rows) bytes += sizeOf(row)
  return bytes > HELD_BYTES_MAX
}

/** Some 20,000 events as they usually are. */
const HELD_BYTES_MAX = 16 * 1024 * 1024

/** `Pod/shop/web-0`, or `Node/node-1`: names an object in URLs and in lanes. */
export function objectPath({ kind, namespace, name }: Omit<ObjectName, 'uid'>): string {
  const parts = namespace === '' ? [kind, name] : [kind, namespace, name]
  // No real name has these. Whoever writes events can use any text.
  return parts.map((part) => part.replaceAll(/[%/@]/g, encodeURIComponent)).join('/')
}

/** The inverse of `objectPath`. Undefined for another text, such as a uid. */
export function readObjectPath(path: string): Omit<ObjectName, 'uid'> | undefined {
  const parts = path.split('/').map((part) => part.replaceAll(/%(?:25|2F|40)/g, decodeURIComponent))
  const [kind = '', second = '', third] = parts
  if (parts.length < 2 || parts.length > 3) return undefined
  return third === undefined
    ? { kind, namespace: '', name: second }
    : { kind, namespace: second, name: third }
}
