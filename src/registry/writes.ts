/** What callers say about a write, and what they are answered. */
import type { Event } from '../api/event.ts'
import type { ShownEvent } from '../codec/event-bytes.ts'
import type { StoredEvent } from '../storage/storage.ts'
import type { Preconditions } from './preconditions.ts'

export interface WriteOptions {
  /** Everything is done but the writing. */
  readonly isDryRun: boolean
  /**
   * Hears of the event that is about to be written and of the bytes that etcd stores for it, and
   * throws to prevent it. Perhaps more than once, when others write at the same time; not for a dry
   * run, nor for a delete, nor when nothing changes.
   */
  readonly admit?: (event: Event, bytes: number) => void
}

/** Of a change to an event whose fields may have owners. */
export interface ChangeOptions extends WriteOptions {
  /** Who is to own what changes. */
  readonly manager: () => string
}

export interface DeleteOptions extends WriteOptions {
  readonly preconditions: Preconditions
  /** Of another event than the one that was meant the delete knows nothing: it is not found. */
  readonly isMeant?: (current: StoredEvent) => boolean
}

export interface Updated {
  readonly event: ShownEvent
  readonly isCreated: boolean
}

export interface Deleted {
  readonly event: ShownEvent
  readonly uid: string
  /** False: finalizers keep it, and it was marked instead. */
  readonly isGone: boolean
}
