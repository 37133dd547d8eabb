import type { Version } from './resource-version.ts'
import type { EventKey, StoredEvent } from './storage.ts'

/** What went wrong, in the words callers decide by. */
export type StorageErrorKind =
  | 'missing'
  /** The key is taken; see `current`, or `reason` when what is there is not an event. */
  | 'exists'
  /** Others kept changing the event for as long as we tried. Nothing was written. */
  | 'conflict'
  /** The history asked for is gone; see `version` for the oldest that is left, when known. */
  | 'compacted'
  /** The version asked for has not come to be; see `version` for the newest there is. */
  | 'future'
  /** The store cannot be reached or cannot serve. Of a write: it has not happened and will not. */
  | 'unavailable'
  /** No answer in time. Of a write: it may have happened, may happen yet, or not at all. */
  | 'timeout'
  /** Too much is waiting already. Nothing was written; `retryAfterMs` says when to come back. */
  | 'overloaded'
  | 'too-large'
  /** What is stored there is ours, but cannot be read as an event. It can be deleted. */
  | 'corrupt'
  /** What is stored there was written by another program, and is left alone. */
  | 'foreign'

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

/** The one family of errors that leaves this room. */
export class StorageError extends Error {
  override readonly name = 'StorageError'
  readonly kind: StorageErrorKind
  readonly key: EventKey | undefined
  readonly version: Version | undefined
  /** With `exists`: the event that has the key. */
  readonly current: StoredEvent | undefined
  readonly retryAfterMs: number | undefined
  /** Why, in words that clients may read; `message` is for the log. */
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
 * The store goes on in another history than the one that is known here, with the same versions for
 * other changes. Nothing that is remembered holds any more.
 */
export class OtherHistoryError extends Error {
  override readonly name = 'OtherHistoryError'
}

export function missing(key: EventKey): StorageError {
  return new StorageError({
    kind: 'missing',
    message: `there is no event ${key.namespace}/${key.name}`,
    key,
  })
}

/** There is something, and it is not an event. */
export function isUnreadable(error: unknown): error is StorageError {
  return error instanceof StorageError && (error.kind === 'corrupt' || error.kind === 'foreign')
}
