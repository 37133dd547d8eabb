/** An event on the wire, with the fields that tests use. */
export interface WireEvent {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly uid?: string
    readonly resourceVersion?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly reason?: string
  readonly note?: string
  readonly [field: string]: unknown
}

export interface WireList {
  readonly metadata: {
    readonly resourceVersion: string
    readonly continue?: string
    readonly remainingItemCount?: number
    readonly shardInfo?: { readonly selector: string }
  }
  readonly items: readonly WireEvent[]
}

/** One line of a watch. `object` is a Status in an ERROR. */
export interface WatchFrame {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly object: WireEvent & { readonly code?: number; readonly message?: string }
}

export interface EventFields {
  readonly labels?: Readonly<Record<string, string>>
  readonly [field: string]: unknown
}

/** A complete event; `fields` override its own, `labels` go into its metadata. */
export function makeEvent(
  namespace: string,
  name: string,
  { labels, ...fields }: EventFields = {},
): WireEvent {
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name, namespace, ...(labels === undefined ? {} : { labels }) },
    eventTime: '2026-01-02T03:04:05.000006Z',
    reportingController: 'example.com/tester',
    reportingInstance: 'tester-0',
    action: 'Testing',
    reason: 'Tested',
    regarding: { apiVersion: 'v1', kind: 'Pod', namespace, name: 'pod-0' },
    note: 'one of many',
    type: 'Normal',
    ...fields,
  }
}
