/** Turns the versions and tokens that clients send into options for the storage. */
import { badRequest } from '../../api/status.ts'
import { goQuote } from '../../lib/go/go-quote.ts'
import { truncate } from '../../lib/text/truncate.ts'
import {
  beginning,
  parseVersion,
  type Version,
  VersionSyntaxError,
} from '../../storage/resource-version.ts'
import type { EventKey, EventScope, ListOrder } from '../../storage/storage.ts'
import { decodeContinue } from './continue-token.ts'

/** How the version of the response must relate to the one that was sent. Empty: not sent. */
export type VersionMatch = '' | 'Exact' | 'NotOlderThan'

/** The version and position options of a list request, as sent. Empty: not sent. */
export interface ListRequest {
  readonly resourceVersion: string
  readonly match: VersionMatch
  readonly continueToken: string
  /** 0: no limit. */
  readonly limit: number
  /** Undefined: not sent. */
  readonly order: ListOrder | undefined
}

/** Where a list starts; see `ListOptions`. At most one of `at` and `notOlderThan` is set. */
export interface ListPosition {
  readonly at: Version | undefined
  readonly notOlderThan: Version | undefined
  /** The version as sent; a version beyond the range of numbers is reduced for storage. */
  readonly versionText?: string
  readonly after: EventKey | undefined
  /** When the event with that key was last seen; set by orders other than by key. */
  readonly afterMs?: number | undefined
  /** Undefined: by key. */
  readonly order?: ListOrder | undefined
  /** The order was not requested: a list by key is acceptable if memory cannot serve it. */
  readonly isOrderOptional?: boolean | undefined
  /** Durations in the selector are before this time, on all pages of a list. */
  readonly nowMs?: number | undefined
  /** The state of the archive that earlier pages were read from. */
  readonly archiveState?: string | undefined
  /** The uid of the event with the key in `after`. */
  readonly afterUid?: string | undefined
}

export interface PositionDefaults {
  readonly order: ListOrder
  /** The wall clock. */
  readonly nowMs: number
}

/** Throws a 400 when the token or the version is invalid. */
export function listPosition(
  scope: EventScope,
  request: ListRequest,
  defaults: PositionDefaults,
): ListPosition & Pick<PositionDefaults, 'nowMs'> {
  const { resourceVersion, match, continueToken, limit } = request
  const isOrderOptional = request.order === undefined
  if (continueToken !== '') {
    const point = decodeContinue(scope, continueToken)
    const { after, version, order = 'key' } = point
    if (order !== (request.order ?? order)) {
      throw badRequest('the continue token is of a list with another order')
    }
    if (resourceVersion !== '' && resourceVersion !== '0') {
      throw badRequest('specifying resource version is not allowed when using continue')
    }
    return {
      at: version,
      notOlderThan: undefined,
      after,
      afterMs: point.afterMs,
      order,
      isOrderOptional: false,
      nowMs: point.nowMs ?? defaults.nowMs,
      ...(point.archive !== undefined && { archiveState: point.archive }),
      ...(point.afterUid !== undefined && { afterUid: point.afterUid }),
    }
  }
  const version = readVersion(resourceVersion)
  // A paged list without a match means exactly that version.
  const isPagedAt = match === '' && limit > 0 && version !== beginning
  const isExact = match === 'Exact' || isPagedAt
  return {
    at: isExact ? version : undefined,
    notOlderThan: isExact ? undefined : version,
    after: undefined,
    versionText: resourceVersion,
    order: request.order ?? defaults.order,
    isOrderOptional,
    nowMs: defaults.nowMs,
  }
}

/** The version that a client sent; undefined when it sent none. Throws a 400 when it is invalid. */
export function readVersion(text: string): Version | undefined {
  if (text === '') return undefined
  try {
    return parseVersion(text)
  } catch (error) {
    if (!(error instanceof VersionSyntaxError)) throw error
    const quoted = goQuote(truncate(text))
    const problem = error.reason === 'syntax' ? 'invalid syntax' : 'value out of range'
    throw badRequest(
      `invalid resource version: resourceVersion: Invalid value: ${quoted}: ` +
        `strconv.ParseUint: parsing ${quoted}: ${problem}`,
      error,
    )
  }
}
