import {
  entityTooLarge,
  internalError,
  type StatusDetails,
  StatusError,
  timedOut,
  tooManyRequests,
  unavailable,
} from '../api/status.ts'
import { goQuote } from '../lib/go/go-quote.ts'
import { StorageError } from '../storage/errors.ts'
import { formatVersion, type Version } from '../storage/resource-version.ts'

/** Names of the resource in error messages and details. */
export interface ResourceNames {
  readonly group: string
  readonly resource: string
  /** `events.<group>`, or `events` in the group without a name. */
  readonly qualified: string
}

export function resourceNames(group: string, resource = 'events'): ResourceNames {
  return { group, resource, qualified: group === '' ? resource : `${resource}.${group}` }
}

export function notFound(names: ResourceNames, name: string): StatusError {
  return new StatusError('NotFound', `${names.qualified} ${goQuote(name)} not found`, {
    details: detailsOf(names, name),
  })
}

/** `reason` explains why the existing value cannot be shown as an event. */
export function alreadyExists(
  names: ResourceNames,
  name: string,
  { isBeingDeleted, reason }: { isBeingDeleted?: boolean; reason?: string | undefined } = {},
): StatusError {
  const prefix = isBeingDeleted === true ? 'object is being deleted: ' : ''
  const why = reason === undefined ? '' : `: ${reason}`
  const message = `${prefix}${names.qualified} ${goQuote(name)} already exists${why}`
  return new StatusError('AlreadyExists', message, { details: detailsOf(names, name) })
}

export function noUniqueName(names: ResourceNames, name: string): StatusError {
  return new StatusError(
    'AlreadyExists',
    `${names.qualified} ${goQuote(name)} already exists, the server was not able to generate a unique name for the object`,
    { details: { ...detailsOf(names, name), retryAfterSeconds: 1 } },
  )
}

export function conflict(names: ResourceNames, name: string, why: string): StatusError {
  return new StatusError(
    'Conflict',
    `Operation cannot be fulfilled on ${names.qualified} ${goQuote(name)}: ${why}`,
    { details: detailsOf(names, name) },
  )
}

export function preconditionFailed(name: string, why: string): StatusError {
  return new StatusError(
    'Conflict',
    `Operation cannot be fulfilled on Event ${goQuote(name)}: ${why}`,
    {
      details: { name, kind: 'Event' },
    },
  )
}

function listExpired(): StatusError {
  return new StatusError('Expired', 'The resourceVersion for the provided list is too old.')
}

export function watchExpired(): StatusError {
  return new StatusError('Expired', 'The resourceVersion for the provided watch is too old.')
}

/** `continueToken` continues the list after its last page, at the newest state. */
export function pageExpired(continueToken: string): StatusError {
  return new StatusError(
    'Expired',
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.',
    { continueToken },
  )
}

/** The failed call to the storage. */
export interface Attempt {
  /** The requested version, either the oldest acceptable or the exact one. */
  readonly wanted?: Version | undefined
  /** `wanted` as the client sent it. */
  readonly versionText?: string | undefined
  /** Whether the call is a read, which is safe to retry. */
  readonly isRead?: boolean | undefined
  /** Whether some of many events were changed before the failure. */
  readonly isPartlyDone?: boolean | undefined
}

/** Translates storage errors into API errors. No other place does that. */
export function statusOfStorageError(
  error: StorageError,
  names: ResourceNames,
  attempt: Attempt = {},
): StatusError {
  const { isRead, isPartlyDone } = attempt
  const done = isPartlyDone === true ? PARTLY_DONE : 'nothing was done'
  const name = error.key?.name ?? ''
  switch (error.kind) {
    case 'missing':
      return notFound(names, name)
    case 'exists':
      return alreadyExists(names, name, { reason: error.reason })
    case 'fenced':
    case 'conflict':
      return new StatusError('Conflict', `${conflict(names, name, KEPT_CHANGING).message}`, {
        details: { ...detailsOf(names, name), retryAfterSeconds: 1 },
        cause: error,
      })
    case 'compacted':
      return listExpired()
    case 'future':
      return future(attempt, error)
    case 'unavailable':
      return unavailable(`${error.reason ?? 'the datastore cannot be reached'}; ${done}`, 1, error)
    case 'timeout':
      return isRead === true ? timedOut({ retryAfterSeconds: 1, cause: error }) : inDoubt(error)
    case 'overloaded':
      return tooManyRequests(
        `${error.reason ?? 'the datastore is overloaded'}; ${done}`,
        Math.ceil((error.retryAfterMs ?? 1000) / 1000),
        error,
      )
    case 'too-large':
      return entityTooLarge('the event does not fit into the datastore', error)
    case 'exhausted':
      return new StatusError('Timeout', error.reason ?? TOO_MUCH, {
        details: {},
        cause: error,
      })
    case 'corrupt':
    case 'foreign':
      return internalError(error, error.reason)
  }
}

const TOO_MUCH = 'the request takes more time or memory than it may: ask for less'
const PARTLY_DONE = 'some of the events were deleted, repeat the request for the others'

/**
 * A write whose outcome is unknown. It has no Retry-After, since a retry may apply it twice. A reason
 * means that there was a response, so the write will not be applied later either.
 */
function inDoubt(cause: StorageError): StatusError {
  const what =
    cause.reason === undefined
      ? 'Timeout: the datastore did not respond in time; the write may have been applied or may still be'
      : `${cause.reason}; the write may have been applied`
  const message = `${what}: read the event before you retry`
  return new StatusError('Timeout', message, { details: {}, cause })
}

const KEPT_CHANGING = 'other writes kept changing the object until the retries timed out'

function future({ wanted, versionText }: Attempt, error: StorageError): StatusError {
  const named =
    wanted === undefined ? '' : `: ${versionText ? BigInt(versionText) : formatVersion(wanted)}`
  const newest = error.version === undefined ? '' : `, current: ${formatVersion(error.version)}`
  return new StatusError('Timeout', `Timeout: Too large resource version${named}${newest}`, {
    details: {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    },
    cause: error,
  })
}

/** The details of a Status about one object, or about the resource in general. */
export function detailsOf({ group, resource }: ResourceNames, name = ''): StatusDetails {
  return {
    ...(name === '' ? {} : { name }),
    ...(group === '' ? {} : { group }),
    kind: resource,
  }
}

/** Awaits a call to the storage and translates its errors into API errors. */
export async function inApiTerms<T>(
  work: Promise<T>,
  names: ResourceNames,
  attempt?: Attempt,
): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw error instanceof StorageError ? statusOfStorageError(error, names, attempt) : error
  }
}
