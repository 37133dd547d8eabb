/** From the versions and tokens that clients send to what storage is asked for. */
import { badRequest } from '../api/status.ts'
import { goQuote } from '../lib/go-quote.ts'
import { shown } from '../lib/shown.ts'
import {
  beginning,
  parseVersion,
  type Version,
  VersionSyntaxError,
} from '../storage/resource-version.ts'
import type { EventKey, EventScope } from '../storage/storage.ts'
import { decodeContinue } from './continue-token.ts'

/** How the answer's version may relate to the one that was sent; none was said when empty. */
export type VersionMatch = '' | 'Exact' | 'NotOlderThan'

/** What a list request says about state and place, as it was sent. Empty: not said. */
export interface ListRequest {
  readonly resourceVersion: string
  readonly match: VersionMatch
  readonly continueToken: string
  /** 0: no limit. */
  readonly limit: number
}

/** As in storage's ListOptions. At most one of `at` and `notOlderThan` is there. */
export interface ListPosition {
  readonly at: Version | undefined
  readonly notOlderThan: Version | undefined
  /** The version in the client's own digits; storage's may be a lesser one, but as far away. */
  readonly asked?: string
  readonly after: EventKey | undefined
}

/** Throws a 400 when the token or the version is no good. */
export function listPosition(scope: EventScope, request: ListRequest): ListPosition {
  const { resourceVersion, match, continueToken, limit } = request
  if (continueToken !== '') {
    const { after, version } = decodeContinue(scope, continueToken)
    if (resourceVersion !== '' && resourceVersion !== '0') {
      throw badRequest('specifying resource version is not allowed when using continue')
    }
    return { at: version, notOlderThan: undefined, after }
  }
  const version = readVersion(resourceVersion)
  // Whoever reads in pages and does not say means that version and no later one.
  const isPagedAt = match === '' && limit > 0 && version !== beginning
  const isExact = match === 'Exact' || isPagedAt
  return {
    at: isExact ? version : undefined,
    notOlderThan: isExact ? undefined : version,
    after: undefined,
    asked: resourceVersion,
  }
}

/** The version that a client sent; undefined when it sent none. Throws a 400 when it is no version. */
export function readVersion(text: string): Version | undefined {
  if (text === '') return undefined
  try {
    return parseVersion(text)
  } catch (error) {
    if (!(error instanceof VersionSyntaxError)) throw error
    const quoted = goQuote(shown(text))
    const problem = error.reason === 'syntax' ? 'invalid syntax' : 'value out of range'
    throw badRequest(
      `invalid resource version: resourceVersion: Invalid value: ${quoted}: ` +
        `strconv.ParseUint: parsing ${quoted}: ${problem}`,
      error,
    )
  }
}
