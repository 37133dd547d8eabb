import { EtcdError, type EtcdErrorKind } from '../etcd/errors.ts'
import { StorageError, type StorageErrorKind } from './errors.ts'
import { versionOfState } from './resource-version.ts'
import { fullReason } from './space.ts'

const retryAfterMs = 1_000

/** What an error of etcd means for a read; what is not an error of etcd is handed on as it is. */
export function storageErrorOfRead(error: unknown): unknown {
  if (!(error instanceof EtcdError)) return error
  const kind = kinds.get(error.kind) ?? 'unavailable'
  const oldest = error.compactRevision
  return new StorageError({
    kind,
    message: error.message,
    version: oldest === undefined ? undefined : versionOfState(oldest),
    retryAfterMs: hint(kind),
    cause: error,
  })
}

/** For writes everything that leaves it open whether they happened is a `timeout`. */
export function storageErrorOfWrite(error: unknown): StorageError {
  const isEtcds = error instanceof EtcdError
  const isOpen = !isEtcds || error.maybeApplied
  const kind = isOpen ? 'timeout' : (writeKinds.get(error.kind) ?? 'unavailable')
  const reason = error instanceof Error ? error.message : String(error)
  return new StorageError({
    kind,
    message: isOpen ? `it is not known whether the write happened: ${reason}` : reason,
    reason: isEtcds && error.kind === 'no-space' ? fullReason : undefined,
    retryAfterMs: hint(kind),
    cause: error,
  })
}

const kinds: ReadonlyMap<EtcdErrorKind, StorageErrorKind> = new Map<
  EtcdErrorKind,
  StorageErrorKind
>([
  ['timeout', 'timeout'],
  // The caller's signal: the time it had for this is over, or nobody waits any more.
  ['cancelled', 'timeout'],
  ['compacted', 'compacted'],
  ['future-revision', 'future'],
  ['too-many-requests', 'overloaded'],
  ['too-large', 'too-large'],
])

/** Of writes that are known not to have happened: a time-out is then want of a connection. */
const writeKinds: ReadonlyMap<EtcdErrorKind, StorageErrorKind> = new Map<
  EtcdErrorKind,
  StorageErrorKind
>([
  ['too-many-requests', 'overloaded'],
  ['too-large', 'too-large'],
])

function hint(kind: StorageErrorKind): number | undefined {
  return kind === 'overloaded' || kind === 'unavailable' ? retryAfterMs : undefined
}
