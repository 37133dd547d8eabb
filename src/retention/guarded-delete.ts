import { StorageError, type StorageErrorKind } from '../storage/errors.ts'
import type { Version } from '../storage/resource-version.ts'
import type { EventKey, EventStorage, Guard, StoredEvent } from '../storage/storage.ts'

/** The result of one delete. */
export type Outcome =
  | { readonly deleted: StoredEvent }
  /** It was already deleted. */
  | 'gone'
  | { readonly changed: StoredEvent }
  | { readonly failed: StorageError }

export interface GuardedDelete {
  readonly storage: Pick<EventStorage, 'delete'>
  /**
   * Whether etcd is in the history that the versions come from: in another history the same version
   * may belong to another change.
   */
  readonly isVerified: () => boolean
  /** Whether the event is still to be deleted; asked last. */
  readonly isWanted?: ((current: StoredEvent) => boolean) | undefined
}

/** Thrown by the guard, to tell an event that must stay from a failure of the storage. */
class Changed extends Error {
  override readonly name = 'Changed'
  readonly current: StoredEvent

  constructor(current: StoredEvent) {
    super('the event was changed after it was chosen, or the policy was')
    this.current = current
  }
}

/** Deletes an event only if it still has this version. Rejects on a bug only. */
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

/**
 * A delete with an unknown result can be repeated: it finds nothing, or the same version. A value
 * that is not an event is not retried: it will not become readable.
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
