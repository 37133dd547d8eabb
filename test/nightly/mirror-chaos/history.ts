/** The histories of a run, as the checker reads them. */

/** One change of an event at the origin, from the history of its etcd. */
export interface OriginChange {
  readonly type: 'put' | 'delete'
  readonly name: string
  readonly uid: string
  /** The resourceVersion at the origin. All changes of an origin have different ones. */
  readonly version: number
  /** The event without what mirrors and servers add. */
  readonly content: string
}

/** One change of a mirrored event, from the history of the target's etcd. */
export interface TargetChange {
  readonly type: 'put' | 'delete'
  readonly name: string
  readonly uid: string
  /** The origin's version that the event carries; NaN when it carries none. */
  readonly version: number
  readonly epoch: number
  readonly content: string
}

/** A state that a client of the target received, from a list or from a watch. */
export type Sighting = Omit<TargetChange, 'content'>

/**
 * Versions of the origin that the mirror could not watch: its history before `upTo` was compacted
 * when the mirror had stored everything up to `after`. States that were replaced or deleted within
 * a gap cannot be had from anywhere.
 */
export interface Gap {
  readonly after: number
  readonly upTo: number
}

export interface RunHistory {
  /** Sorted by version. */
  readonly origin: readonly OriginChange[]
  /** Sorted by revision. */
  readonly target: readonly TargetChange[]
  /** What clients of the target received, each in the order of arrival. */
  readonly observers: readonly (readonly Sighting[])[]
  /** The list of each replica of the target after the run. */
  readonly lists: readonly (readonly Sighting[])[]
  readonly gaps: readonly Gap[]
  readonly deletes: 'never' | 'explicit'
}

export const violationKinds = [
  /** The target does not have an event that the origin has, or had last. */
  'missing',
  /** The target has an older state than the origin's last one. */
  'outdated',
  /** An older state of the same uid replaced a newer one. */
  'went back',
  /** An event replaced its successor of the same name. */
  'predecessor',
  /** The same state was stored twice, or a list has a name twice. */
  'duplicate',
  /** The origin never had this state. */
  'invented',
  /** The target deleted an event that it must retain. */
  'deleted',
  /** The target has an event that was deleted at the origin, with `deletes: explicit`. */
  'not deleted',
  /** The target took the origin for one that was restored. */
  'epoch',
  /** A list of a replica differs from the etcd behind it, or an observer missed the last state. */
  'served',
  /** The mirror did not catch up in time after all faults were repaired. */
  'stalled',
] as const
export type ViolationKind = (typeof violationKinds)[number]

export interface Violation {
  readonly kind: ViolationKind
  readonly message: string
}
