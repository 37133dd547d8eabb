import type { Version } from './resource-version.ts'
import type { EventKey, StoredEvent } from './storage.ts'

/** The kind of failure, by which callers decide what to do. */
export type StorageErrorKind =
  | 'missing'
  /** The key exists; see `current`, or `reason` when its value is not an event. */
  | 'exists'
  /** The event kept changing until the retries timed out. Nothing was written. */
  | 'conflict'
  /** The requested history was compacted; `version` is the oldest available one, if known. */
  | 'compacted'
  /** The requested version does not exist yet; `version` is the newest one. */
  | 'future'
  /** The store cannot be reached or cannot serve. A write was not applied and will not be. */
  | 'unavailable'
  /** No response in time. A write may have been applied, may still be, or may never be. */
  | 'timeout'
  /** The queue is full. Nothing was written; `retryAfterMs` says when to retry. */
  | 'overloaded'
  | 'too-large'
  /** The read takes more time or memory than it may; `reason` says how to ask for less. */
  | 'exhausted'
  /** The stored value is ours, but cannot be decoded as an event. It can be deleted. */
  | 'corrupt'
  /** The stored value was written by another program, and is never changed. */
  | 'foreign'
  /** The fence no longer holds: another replica has taken over. Nothing was written. */
  | 'fenced'

export interface StorageErrorDetails {
  readonly kind: StorageErrorKind
  readonly message: string
  readonly key?: EventKey | undefined
  readonly version?: Version | undefined
  readonly current?: StoredEvent | undefined
  readonly retryAfterMs?: number | undefined
  readonly reason?: string | undefined
  readonly cause?: unknown
}

/** The only kind of error that storage throws for failures of the store. */
export class StorageError extends Error {
  override readonly name = 'StorageError'
  readonly kind: StorageErrorKind
  readonly key: EventKey | undefined
  readonly version: Version | undefined
  /** The event under the key, for `exists`. */
  readonly current: StoredEvent | undefined
  readonly retryAfterMs: number | undefined
  /** The cause in a form that clients may read; `message` is for the log. */
  readonly reason: string | undefined

  constructor(details: StorageErrorDetails) {
    super(details.message, details.cause === undefined ? undefined : { cause: details.cause })
    this.kind = details.kind
    this.key = details.key
    this.version = details.version
    this.current = details.current
    this.retryAfterMs = details.retryAfterMs
    this.reason = details.reason
  }
}

/**
 * The store now has another history than the one in memory, with the same versions for other
 * changes. Everything in memory is invalid.
 */
export class OtherHistoryError extends Error {
  override readonly name = 'OtherHistoryError'
}

export function missing(key: EventKey): StorageError {
  return new StorageError({
    kind: 'missing',
    message: `event ${key.namespace}/${key.name} does not exist`,
    key,
  })
}

/** Whether the key has a value that is not an event. */
export function isUnreadable(error: unknown): error is StorageError {
  return error instanceof StorageError && (error.kind === 'corrupt' || error.kind === 'foreign')
}
