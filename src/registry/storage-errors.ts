import {
  entityTooLarge,
  internalError,
  type StatusDetails,
  StatusError,
  timedOut,
  tooManyRequests,
  unavailable,
} from '../api/status.ts'
import { goQuote } from '../lib/go-quote.ts'
import type { StorageError } from '../storage/errors.ts'
import { formatVersion, type Version } from '../storage/resource-version.ts'

/** How events are called in messages and details. */
export interface ResourceNames {
  readonly group: string
  /** `events.<group>`, or `events` in the group without a name. */
  readonly qualified: string
}

export function resourceNames(group: string): ResourceNames {
  return { group, qualified: group === '' ? 'events' : `events.${group}` }
}

export function notFound(names: ResourceNames, name: string): StatusError {
  return new StatusError('NotFound', `${names.qualified} ${goQuote(name)} not found`, {
    details: detailsOf(names, name),
  })
}

/** `reason`: what there is in place of an event that could be shown. */
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

/** No free name was found among those that were made up. */
export function noUniqueName(names: ResourceNames, name: string): StatusError {
  return new StatusError(
    'AlreadyExists',
    `${names.qualified} ${goQuote(name)} already exists, the server was not able to generate a unique name for the object`,
    { details: { ...detailsOf(names, name), retryAfterSeconds: 1 } },
  )
}

/** A write that was meant for another state of the event. */
export function conflict(names: ResourceNames, name: string, why: string): StatusError {
  return new StatusError(
    'Conflict',
    `Operation cannot be fulfilled on ${names.qualified} ${goQuote(name)}: ${why}`,
    { details: detailsOf(names, name) },
  )
}

/** A delete that was meant for another event, or another state of it. */
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

/** `continueToken` goes on where the list stopped, at the newest state. */
export function pageExpired(continueToken: string): StatusError {
  return new StatusError(
    'Expired',
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.',
    { continueToken },
  )
}

/** What was asked of the storage when it failed. */
export interface Attempt {
  /** No state older than this one, or exactly this one. */
  readonly wanted?: Version | undefined
  /** The same in the client's digits, if it sent any. */
  readonly asked?: string | undefined
  /** Nothing was to be written, so that it may simply be tried again. */
  readonly isRead?: boolean | undefined
  /** Of many events some were changed before it failed. */
  readonly isPartlyDone?: boolean | undefined
}

/** What became of the storage's errors in the words of the API: the one place where that is said. */
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
        `the datastore has more to do than it can; ${done}`,
        Math.ceil((error.retryAfterMs ?? 1000) / 1000),
        error,
      )
    case 'too-large':
      return entityTooLarge('the event does not fit into the datastore', error)
    case 'corrupt':
    case 'foreign':
      return internalError(error, error.reason)
  }
}

const PARTLY_DONE = 'some of the events were deleted, repeat the request for the others'
/**
 * Whoever repeats such a write may do it twice, so nobody is told when to. Where a reason is known
 * there was an answer: nothing more will come of the write.
 */
function inDoubt(cause: StorageError): StatusError {
  const what =
    cause.reason === undefined
      ? 'Timeout: the datastore did not answer in time; the write may have happened, or may yet'
      : `${cause.reason}; the write may have happened`
  return new StatusError('Timeout', `${what}: look before repeating it`, { details: {}, cause })
}

const KEPT_CHANGING = 'others kept changing the object for as long as this change was tried'

function future({ wanted, asked }: Attempt, error: StorageError): StatusError {
  const named = wanted === undefined ? '' : `: ${asked ? BigInt(asked) : formatVersion(wanted)}`
  const newest = error.version === undefined ? '' : `, current: ${formatVersion(error.version)}`
  return new StatusError('Timeout', `Timeout: Too large resource version${named}${newest}`, {
    details: {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    },
    cause: error,
  })
}

/** Which event, or which kind of object, a Status is about. */
export function detailsOf({ group }: ResourceNames, name = ''): StatusDetails {
  return {
    ...(name === '' ? {} : { name }),
    ...(group === '' ? {} : { group }),
    kind: 'events',
  }
}
