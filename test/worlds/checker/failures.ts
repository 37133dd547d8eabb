/** How production code refuses or fails, in the terms of the checks. */
import { StatusError } from '../../../src/api/status.ts'
import { CreationNeeded } from '../../../src/registry/change-checks.ts'
import { StorageError, type StorageErrorKind } from '../../../src/storage/errors.ts'

export type FailureKind =
  | StorageErrorKind
  /** A precondition of the client was not met; nothing was written. */
  | 'precondition'
  /** A replacement changes a field that another client has changed, and that is immutable. */
  | 'invalid'
  /** An error that no client should ever see. */
  | 'unexpected'

export interface Failure {
  readonly kind: FailureKind
  readonly error: unknown
}

/** Thrown by guards of clients to refuse a change themselves. */
export class Declined extends Error {
  override readonly name = 'Declined'
}

export function failureOf(error: unknown): Failure {
  return { kind: kindOf(error), error }
}

function kindOf(error: unknown): FailureKind {
  if (error instanceof Declined) return 'precondition'
  if (error instanceof StorageError) return checked(error.kind)
  if (error instanceof CreationNeeded) return 'missing'
  if (!(error instanceof StatusError)) return 'unexpected'
  const { cause } = error
  if (cause instanceof StorageError) return checked(cause.kind)
  switch (error.reason) {
    case 'NotFound':
      return 'missing'
    case 'AlreadyExists':
      return 'exists'
    case 'Conflict':
      return 'precondition'
    case 'Invalid':
      return 'invalid'
    case 'Expired':
      return 'compacted'
    default:
      return 'unexpected'
  }
}

/** Clients store small events only, and without a fence. */
const impossible: ReadonlySet<StorageErrorKind> = new Set([
  'corrupt',
  'foreign',
  'too-large',
  'fenced',
])

function checked(kind: StorageErrorKind): FailureKind {
  return impossible.has(kind) ? 'unexpected' : kind
}

/** A write that failed so may have been applied, or may still be. */
export function isUnknown(kind: FailureKind): boolean {
  return kind === 'timeout'
}

/** Refusals that a healthy store has no reason for. */
export function isUnavailability(kind: FailureKind): boolean {
  return kind === 'unavailable' || kind === 'timeout' || kind === 'overloaded'
}

export function describeFailure({ kind, error }: Failure): string {
  if (!(error instanceof Error)) return `${kind}: ${String(error)}`
  const lines = kind === 'unexpected' ? (error.stack ?? error.message) : error.message
  return `${kind}: ${error.name}: ${lines}`
}
