import { yieldToEventLoop } from '../lib/yield.ts'
import { StorageError, type StorageErrorKind } from '../storage/errors.ts'
import type { Version } from '../storage/resource-version.ts'
import type { EventKey, EventStorage, Guard, StoredEvent } from '../storage/storage.ts'

export type Outcome =
  | { readonly deleted: StoredEvent }
  /** Somebody else deleted it first. */
  | 'gone'
  | { readonly changed: StoredEvent }
  | { readonly failed: StorageError }

export interface GuardedDelete {
  readonly storage: Pick<EventStorage, 'delete'>
  /**
   * Whether etcd is in the history that the versions come from. In another history, the same
   * version may belong to a different change.
   */
  readonly isVerified: () => boolean
  /** Whether the event should still be deleted; called last. */
  readonly isWanted?: ((current: StoredEvent) => boolean) | undefined
}

/** Thrown by the guard to distinguish an event that must stay from a storage failure. */
class Changed extends Error {
  override readonly name = 'Changed'
  readonly current: StoredEvent

  constructor(current: StoredEvent) {
    super('the event or the policy has changed since the event was selected')
    this.current = current
  }
}

/** Deletes an event only if it still has this version. Rejects only on a bug. */
export async function deleteUnchanged(
  event: { readonly key: EventKey; readonly version: Version },
  { storage, isVerified, isWanted }: GuardedDelete,
): Promise<Outcome> {
  const guard: Guard = (current) => {
    if (!isVerified()) throw unverified()
    if (current.version !== event.version) throw new Changed(current)
    if (isWanted?.(current) === false) throw new Changed(current)
  }
  try {
    return { deleted: await storage.delete(event.key, guard) }
  } catch (error) {
    if (error instanceof Changed) return { changed: error.current }
    if (!(error instanceof StorageError)) throw error
    return error.kind === 'missing' ? 'gone' : { failed: error }
  }
}

/** Deletes started between two yields: a few milliseconds of work, even if each reads first. */
const deletesPerSlice = 50

/** Starts a delete for each item, until it may not continue, and waits for all that were started. */
export async function deleteInSlices<T, Result>(
  items: readonly T[],
  start: (item: T) => Promise<Result>,
  mayContinue: () => boolean = () => true,
): Promise<Result[]> {
  const deletes: Promise<Result>[] = []
  for (let at = 0; at < items.length; at += deletesPerSlice) {
    if (at > 0) await yieldToEventLoop()
    if (!mayContinue()) break
    deletes.push(...items.slice(at, at + deletesPerSlice).map(start))
  }
  return Promise.all(deletes)
}

/**
 * A delete with an unknown result can be repeated: it finds nothing or the same version. A value that
 * is not an event is not retried, since it will not become one.
 */
const retryable: ReadonlySet<StorageErrorKind> = new Set<StorageErrorKind>([
  'unavailable',
  'timeout',
  'overloaded',
  'conflict',
])

export function isRetryable(error: StorageError): boolean {
  return retryable.has(error.kind)
}

function unverified(): StorageError {
  const message = 'the connection to etcd broke, and etcd may have been restored from a snapshot'
  return new StorageError({ kind: 'unavailable', message })
}
