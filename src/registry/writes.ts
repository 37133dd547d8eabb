import type { ShownEvent } from '../codec/event/event-bytes.ts'
import type { Traced } from '../lib/tracing/span.ts'
import type { StoredEvent } from '../storage/storage.ts'
import type { Writer } from './admission/write-admission.ts'
import type { Preconditions } from './change-checks.ts'

export interface WriteOptions extends Traced {
  /** Skips only the write itself. */
  readonly isDryRun: boolean
  /** Size of the request body, all of which the event's strings may retain in memory. */
  readonly sentBytes?: number | undefined
  /**
   * Who is charged for the write, once per request. A dry run, a delete and a change without effect
   * are free. Default: nobody.
   */
  readonly writer?: Writer | undefined
}

export interface ChangeOptions extends WriteOptions {
  /** The owner of the changed fields. */
  readonly manager: () => string
}

export interface DeleteOptions extends WriteOptions {
  readonly preconditions: Preconditions
  /** Whether the stored event is the one to delete; if not, the delete fails with 404. */
  readonly isTarget?: (current: StoredEvent) => boolean
  /** Whether to delete only a damaged value; an event that can be decoded is a 409. */
  readonly onlyDamaged?: boolean
}

export interface Updated {
  readonly event: ShownEvent
  readonly isCreated: boolean
}

export interface Deleted {
  readonly event: ShownEvent
  readonly uid: string
  /** False when the event has finalizers and was only marked as being deleted. */
  readonly isGone: boolean
}
