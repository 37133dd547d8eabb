/** The options and results of writes. */
import type { ShownEvent } from '../codec/event/event-bytes.ts'
import type { Traced } from '../lib/tracing/span.ts'
import type { StoredEvent } from '../storage/storage.ts'
import type { Writer } from './admission/write-admission.ts'
import type { Preconditions } from './preconditions.ts'

export interface WriteOptions extends Traced {
  /** Everything is done except the write itself. */
  readonly isDryRun: boolean
  /** The size of what the event was decoded from, all of which the texts of the event may keep. */
  readonly sentBytes?: number | undefined
  /**
   * Whom the write is charged to, once for each request. A dry run, a delete and a change without
   * effect are not charged. Undefined: nobody.
   */
  readonly writer?: Writer | undefined
}

/** For a change to an event whose fields may have owners. */
export interface ChangeOptions extends WriteOptions {
  /** The owner of the changed fields. */
  readonly manager: () => string
}

export interface DeleteOptions extends WriteOptions {
  readonly preconditions: Preconditions
  /** Whether the stored event is the one to delete; if not, the delete fails with 404. */
  readonly isTarget?: (current: StoredEvent) => boolean
}

export interface Updated {
  readonly event: ShownEvent
  readonly isCreated: boolean
}

export interface Deleted {
  readonly event: ShownEvent
  readonly uid: string
  /** False: finalizers keep the event, so it was only marked as being deleted. */
  readonly isGone: boolean
}
