/** The fields of an event that selectors, indexes, orders and summaries use. */
import { compactLabels, type Labels } from '../api/selectors/compact-labels.ts'

/** An object that an event is about. Absent strings are empty, as selectors require. */
export type ObjectReference = Readonly<
  Record<
    'kind' | 'namespace' | 'name' | 'uid' | 'apiVersion' | 'resourceVersion' | 'fieldPath',
    string
  >
>

/** A kind of the objects that events are about. */
export interface RegardedKind {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  readonly kind: string
}

/** Absent strings are empty. */
export interface EventFields {
  readonly uid: string
  readonly labels: Labels
  readonly reason: string
  readonly type: string
  readonly note: string
  readonly action: string
  readonly reportingController: string
  readonly reportingInstance: string
  /** `deprecatedSource.component`, which selectors of core/v1 use. */
  readonly sourceComponent: string
  /** `deprecatedSource.host`, the node of a kubelet. */
  readonly sourceHost: string
  readonly regarding: ObjectReference
  readonly related: ObjectReference
  /**
   * When the event was observed last and first, by the clocks of those who reported it; 0 when no
   * field contains it.
   */
  readonly lastSeenMs: number
  readonly firstSeenMs: number
  /** How often it was observed. */
  readonly occurrences: number
}

const NO_OBJECT: ObjectReference = {
  kind: '',
  namespace: '',
  name: '',
  uid: '',
  apiVersion: '',
  resourceVersion: '',
  fieldPath: '',
}

/** `event` is the parsed body of a stored event. */
export function fieldsIn(event: unknown): EventFields {
  const metadata = member(event, 'metadata')
  const series = member(event, 'series')
  const source = member(event, 'deprecatedSource')
  const observed = timeOf(text(event, 'eventTime')) ?? timeOf(text(metadata, 'creationTimestamp'))
  return {
    uid: text(metadata, 'uid'),
    labels: compactLabels((member(metadata, 'labels') ?? {}) as Readonly<Record<string, string>>),
    reason: text(event, 'reason'),
    type: text(event, 'type'),
    note: text(event, 'note'),
    action: text(event, 'action'),
    reportingController: text(event, 'reportingController'),
    reportingInstance: text(event, 'reportingInstance'),
    sourceComponent: text(source, 'component'),
    sourceHost: text(source, 'host'),
    regarding: referenceIn(member(event, 'regarding')),
    related: referenceIn(member(event, 'related')),
    lastSeenMs:
      timeOf(text(series, 'lastObservedTime')) ??
      timeOf(text(event, 'deprecatedLastTimestamp')) ??
      observed ??
      0,
    firstSeenMs: timeOf(text(event, 'deprecatedFirstTimestamp')) ?? observed ?? 0,
    occurrences: Math.max(
      1,
      series === undefined ? count(event, 'deprecatedCount') : count(series, 'count'),
    ),
  }
}

function referenceIn(object: unknown): ObjectReference {
  if (object === undefined) return NO_OBJECT
  return {
    kind: text(object, 'kind'),
    namespace: text(object, 'namespace'),
    name: text(object, 'name'),
    uid: text(object, 'uid'),
    apiVersion: text(object, 'apiVersion'),
    resourceVersion: text(object, 'resourceVersion'),
    fieldPath: text(object, 'fieldPath'),
  }
}

/** Undefined for a text that is not a time. */
function timeOf(time: string): number | undefined {
  if (time === '') return undefined
  const ms = Date.parse(time)
  return Number.isNaN(ms) ? undefined : ms
}

function member(object: unknown, name: string): unknown {
  if (typeof object !== 'object' || object === null || !Object.hasOwn(object, name))
    return undefined
  return (object as Readonly<Record<string, unknown>>)[name] ?? undefined
}

function text(object: unknown, name: string): string {
  const value = member(object, name)
  return typeof value === 'string' ? value : ''
}

function count(object: unknown, name: string): number {
  const value = member(object, name)
  return typeof value === 'number' ? value : 0
}
