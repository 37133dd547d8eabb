import { EtcdError, type EtcdErrorKind } from '../../etcd/errors.ts'
import { StorageError, type StorageErrorKind } from '../errors.ts'
import { versionOfState } from '../resource-version.ts'
import { fullReason } from './quota-alarm.ts'

const retryAfterMs = 1_000

/** Maps an EtcdError of a read to a StorageError; any other error is returned unchanged. */
export function storageErrorOfRead(error: unknown): unknown {
  if (!(error instanceof EtcdError)) return error
  const kind = readKinds.get(error.kind) ?? 'unavailable'
  const oldest = error.compactRevision
  return new StorageError({
    kind,
    message: error.message,
    version: oldest === undefined ? undefined : versionOfState(oldest),
    retryAfterMs: retryAfter(kind),
    cause: error,
  })
}

/** Maps an error of a write. If the write may have been applied, the kind is `timeout`. */
export function storageErrorOfWrite(error: unknown): StorageError {
  const isEtcdError = error instanceof EtcdError
  const isOutcomeUnknown = !isEtcdError || error.mayHaveBeenApplied
  const kind = isOutcomeUnknown ? 'timeout' : (writeKinds.get(error.kind) ?? 'unavailable')
  const reason = error instanceof Error ? error.message : String(error)
  return new StorageError({
    kind,
    message: isOutcomeUnknown ? `it is unknown whether the write was applied: ${reason}` : reason,
    reason: isEtcdError && error.kind === 'no-space' ? fullReason : undefined,
    retryAfterMs: retryAfter(kind),
    cause: error,
  })
}

const readKinds: ReadonlyMap<EtcdErrorKind, StorageErrorKind> = new Map<
  EtcdErrorKind,
  StorageErrorKind
>([
  ['timeout', 'timeout'],
  // The request timed out, its client disconnected, or the etcd client was closed.
  ['cancelled', 'timeout'],
  ['compacted', 'compacted'],
  ['future-revision', 'future'],
  ['too-many-requests', 'overloaded'],
  ['too-large', 'too-large'],
])

/**
 * Kinds of writes that were certainly not applied. A timeout of these means that there was no
 * connection, so it becomes `unavailable`.
 */
const writeKinds: ReadonlyMap<EtcdErrorKind, StorageErrorKind> = new Map<
  EtcdErrorKind,
  StorageErrorKind
>([
  ['too-many-requests', 'overloaded'],
  ['too-large', 'too-large'],
])

function retryAfter(kind: StorageErrorKind): number | undefined {
  return kind === 'overloaded' || kind === 'unavailable' ? retryAfterMs : undefined
}
