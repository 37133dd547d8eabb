/** Reads the headers `Impersonate-…`: the user to act as, and the permissions that this needs. */
import { badRequest } from '../api/status.ts'
import { headerValues, type Request } from '../http/exchange.ts'
import type { Attributes, ResourceAttributes } from './attributes.ts'
import {
  ANONYMOUS,
  AUTHENTICATED,
  serviceAccountGroups,
  serviceAccountOf,
  UNAUTHENTICATED,
  type User,
  userMemory,
} from './user.ts'

const PREFIX = 'impersonate-'
const USER = 'impersonate-user'
const GROUP = 'impersonate-group'
const UID = 'impersonate-uid'
const EXTRA = 'impersonate-extra-'

/** Each value costs a permission check; no honest client needs nearly as many. */
const VALUES_MAX = 128
const VALUE_LENGTH_MAX = 1024

export interface Impersonation {
  readonly user: User
  /** The sender must have all of these permissions. */
  readonly needs: readonly ResourceAttributes[]
}

/** Where a user is impersonated. A permission in one cluster does not apply to another. */
type Place = Pick<Attributes, 'cluster' | 'isPrefixed' | 'path'>

/** Approximate size of one need, excluding strings shared with the user object. */
const NEED_BYTES = 160

export function impersonationMemory({ user, needs }: Impersonation): number {
  return userMemory(user) + needs.length * NEED_BYTES
}

/** Returns undefined when there are no such headers. Throws a 400 for invalid ones. */
export function impersonationOf(request: Request, place: Place): Impersonation | undefined {
  const names = namesOf(request)
  if (names.length === 0) return undefined
  const sent = readHeaders(request, names)
  const { user, groups, uid, extra } = sent
  if (user === '') {
    if (groups.length === 0 && uid === '' && extra.length === 0) return undefined
    throw badRequest(`${USER} is missing: other ${PREFIX}* headers require it`)
  }
  return { user: impersonated(sent), needs: needsOf(sent, place) }
}

function namesOf({ headers, rawHeaders }: Request): readonly string[] {
  // Nearly all requests have none, and the list of headers is faster to read than the object.
  if (rawHeaders !== undefined && !hasPrefixed(rawHeaders)) return NONE
  const names: string[] = []
  for (const name in headers) if (name.startsWith(PREFIX)) names.push(name)
  return names
}

const NONE: readonly string[] = []

/** Ignores case, since names may have any case on HTTP/1.1. */
function hasPrefixed(rawHeaders: readonly string[]): boolean {
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    if ((name.charCodeAt(0) | 0x20) !== LETTER_I) continue
    if (name.slice(0, PREFIX.length).toLowerCase() === PREFIX) return true
  }
  return false
}

const LETTER_I = 0x69

interface ImpersonationHeaders {
  readonly user: string
  readonly groups: readonly string[]
  readonly uid: string
  readonly extra: readonly (readonly [key: string, values: readonly string[]])[]
}

/** Ignores other headers with the same prefix. */
function readHeaders(request: Request, names: readonly string[]): ImpersonationHeaders {
  const bound = new Bound()
  const valuesOf = (name: string): readonly string[] => bound.checked(headerValues(request, name))
  const one = (name: string): string => {
    const values = valuesOf(name)
    // A proxy that checks only the first of two headers would let the second one pass.
    if (values.length > 1) throw badRequest(`${name} was sent more than once`)
    return values[0] ?? ''
  }
  const extra = new Map<string, readonly string[]>()
  for (const name of names) {
    if (!name.startsWith(EXTRA) || name === EXTRA) continue
    const key = unescaped(name.slice(EXTRA.length)).toLowerCase()
    extra.set(key, [...(extra.get(key) ?? []), ...valuesOf(name)])
  }
  return { user: one(USER), groups: valuesOf(GROUP), uid: one(UID), extra: [...extra] }
}

class Bound {
  #count = 0

  checked(values: readonly string[]): readonly string[] {
    this.#count += values.length
    if (this.#count > VALUES_MAX) throw badRequest(`more than ${VALUES_MAX} ${PREFIX}* headers`)
    if (values.some((value) => value.length > VALUE_LENGTH_MAX)) {
      throw badRequest(`an ${PREFIX}* header is longer than ${VALUE_LENGTH_MAX} characters`)
    }
    return values
  }
}

/** Keys may have characters that a header name cannot. Leaves invalid escapes as they are. */
function unescaped(key: string): string {
  try {
    return decodeURIComponent(key)
  } catch {
    return key
  }
}

function impersonated({ user, groups, uid, extra }: ImpersonationHeaders): User {
  const account = groups.length === 0 ? serviceAccountOf(user) : undefined
  const listed = account === undefined ? groups : serviceAccountGroups(account.namespace)
  return {
    name: user,
    ...(uid === '' ? {} : { uid }),
    groups: [...listed, ...addedGroups(user, listed)],
    ...(extra.length === 0 ? {} : { extra: Object.fromEntries(extra) }),
  }
}

/** Adds the group that every user needs, unless the headers already name one of the two. */
function addedGroups(user: string, listed: readonly string[]): readonly string[] {
  if (user === ANONYMOUS.name) return listed.includes(UNAUTHENTICATED) ? [] : [UNAUTHENTICATED]
  const isSettled = listed.includes(AUTHENTICATED) || listed.includes(UNAUTHENTICATED)
  return isSettled ? [] : [AUTHENTICATED]
}

function needsOf(
  { user, groups, uid, extra }: ImpersonationHeaders,
  place: Place,
): readonly ResourceAttributes[] {
  const { cluster, isPrefixed = false, path } = place
  const need = (resource: string, name: string): ResourceAttributes => ({
    isResource: true,
    cluster,
    isPrefixed,
    verb: 'impersonate',
    group: '',
    version: 'v1',
    resource,
    subresource: '',
    namespace: '',
    name,
    path,
  })
  const authentication = { group: 'authentication.k8s.io' }
  const account = serviceAccountOf(user)
  const needs =
    account === undefined
      ? [need('users', user)]
      : [{ ...need('serviceaccounts', account.name), namespace: account.namespace }]
  for (const group of groups) needs.push(need('groups', group))
  if (uid !== '') needs.push({ ...need('uids', uid), ...authentication })
  for (const [key, values] of extra) {
    for (const value of values) {
      needs.push({ ...need('userextras', value), ...authentication, subresource: key })
    }
  }
  return needs
}
