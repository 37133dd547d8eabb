/** Events as the two recorders of client-go write them: the old one for core/v1, and the new one. */
import type { WireEvent } from './wire-event.ts'

/** An object that events are about. */
export interface Subject {
  readonly kind: string
  readonly apiVersion: string
  /** Empty for a node: its events are in `default`. */
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

export interface Happening {
  readonly about: Subject
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly note: string
  /** The controller. */
  readonly by: string
  /** The node of a kubelet. */
  readonly host?: string
  readonly fieldPath?: string
  readonly firstMs: number
  /** When it was seen last, and how often in all. */
  readonly repeated?: { readonly lastMs: number; readonly count: number }
}

/** Returns events.k8s.io form. Before Kubernetes 1.29 only the source names the controller. */
export function oldStyle(what: Happening, name: string, namesController: boolean): WireEvent {
  const { by, host, firstMs, repeated } = what
  return {
    ...common(what, name),
    ...(namesController ? { reportingController: by } : {}),
    ...(namesController && host !== undefined ? { reportingInstance: host } : {}),
    deprecatedSource: host === undefined ? { component: by } : { component: by, host },
    deprecatedFirstTimestamp: secondOf(firstMs),
    deprecatedLastTimestamp: secondOf(repeated?.lastMs ?? firstMs),
    deprecatedCount: repeated?.count ?? 1,
  }
}

export function newStyle(
  what: Happening,
  name: string,
  { instance, related }: { readonly instance: string; readonly related?: Subject | undefined },
): WireEvent {
  const { by, firstMs, repeated } = what
  return {
    ...common(what, name),
    eventTime: microsecondOf(firstMs),
    reportingController: by,
    reportingInstance: instance,
    action: what.reason === 'Preempted' ? 'Preempting' : 'Scheduling',
    ...(related === undefined ? {} : { related: referenceTo(related) }),
    ...(repeated === undefined
      ? {}
      : { series: { count: repeated.count, lastObservedTime: microsecondOf(repeated.lastMs) } }),
  }
}

/** Whether the event can only be created in core/v1. */
export function isOldStyle(event: WireEvent): boolean {
  return event['eventTime'] === undefined
}

/** The same event with the field names of core/v1. */
export function asCore(event: WireEvent): WireEvent {
  const { metadata, ...fields } = event
  const renamed = Object.entries(fields).map(([name, value]) => [CORE_NAMES[name] ?? name, value])
  return { ...Object.fromEntries(renamed), metadata, apiVersion: 'v1' }
}

/** The names that core/v1 has for fields of events.k8s.io/v1, where they differ. */
export const CORE_NAMES: Readonly<Record<string, string>> = {
  regarding: 'involvedObject',
  note: 'message',
  reportingController: 'reportingComponent',
  deprecatedSource: 'source',
  deprecatedFirstTimestamp: 'firstTimestamp',
  deprecatedLastTimestamp: 'lastTimestamp',
  deprecatedCount: 'count',
}

function common({ about, type, reason, note, fieldPath }: Happening, name: string): WireEvent {
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name, namespace: about.namespace === '' ? 'default' : about.namespace },
    type,
    reason,
    note,
    regarding: { ...referenceTo(about), ...(fieldPath === undefined ? {} : { fieldPath }) },
  }
}

function referenceTo(subject: Subject): Readonly<Record<string, string>> {
  const { kind, apiVersion, namespace, name, uid } = subject
  return { kind, ...(namespace === '' ? {} : { namespace }), name, uid, apiVersion }
}

function secondOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}

function microsecondOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 23)}000Z`
}
