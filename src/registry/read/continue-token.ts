/**
 * The continue token of a list: the last key of a page, and the version that the list is read at. It
 * is opaque to clients, but has the format of the Kubernetes API server, because some tools decode
 * it: unpadded base64url of `{"v":"meta.k8s.io/v1","rv":<version>,"start":"<key>\u0000"}`.
 * The key is relative to the path of the list: `name` in one namespace, `namespace/name` in one
 * cluster, `cluster/namespace/name` in all. So a token never leads out of the scope of the request.
 *
 * Time-ordered lists add `order` and `seen` (when the last event was last seen). Lists with a time
 * filter add `now`, from which relative durations are measured back. Both are Unix milliseconds.
 * Lists that continue in the archive add `archive`, the state of the archive that they are read from,
 * and `uid`, that of the last event: an event that has expired may have had the same key as another.
 */
import { badRequest, type StatusError } from '../../api/status.ts'
import { isObject, type Json, memberOf } from '../../lib/json.ts'
import { pathOf, scopePath } from '../../storage/event-scope.ts'
import { formatVersion, parseVersion, type Version } from '../../storage/resource-version.ts'
import type { EventKey, EventScope, ListOrder } from '../../storage/storage.ts'

/** Where a list continues. */
export interface ContinuePoint {
  /** The key before the first one to read; it need not exist. */
  readonly after: EventKey
  /** The version of the state to read; undefined: the newest. */
  readonly version: Version | undefined
  /** Undefined: by key. */
  readonly order?: ListOrder | undefined
  /** When the event with that key was last seen. */
  readonly afterMs?: number | undefined
  /** Relative durations in the selector are measured back from this time. */
  readonly nowMs?: number | undefined
  /** The state of the archive to read. */
  readonly archive?: string | undefined
  /** The uid of the event with that key. Undefined: after all events with that key. */
  readonly afterUid?: string | undefined
}

const encodingVersion = 'meta.k8s.io/v1'

/** Appended to a key to get the next possible key. */
const keyEnd = '\0'

/** The version in a token that means the newest state. */
const latestVersion = -1

/** Well above the longest token that is issued. */
const tokenLengthMax = 2048

/** The number of parts of a key: cluster, namespace and name. */
const keyParts = 3

const int64Limit = 2 ** 63

/** `scope` is the scope of the request's path, here and when the token comes back. */
export function encodeContinue(scope: EventScope, point: ContinuePoint): string {
  const { after, version, order = 'key', afterMs, nowMs, archive, afterUid } = point
  const key = pathOf(after).slice(scopePath(scope).length)
  const rv = version === undefined ? latestVersion : Number(formatVersion(version))
  const timed = order === 'key' ? {} : { order, seen: afterMs }
  const token = JSON.stringify({
    v: encodingVersion,
    rv,
    start: key + keyEnd,
    ...timed,
    now: nowMs,
    archive,
    uid: afterUid,
  })
  return Buffer.from(token).toString('base64url')
}

/** Throws a 400 if the token is malformed, or its key has too many parts for the scope. */
export function decodeContinue(scope: EventScope, token: string): ContinuePoint {
  const fields = parseToken(token)
  const v = memberOf(fields, 'v') ?? ''
  const rv = memberOf(fields, 'rv') ?? 0
  const start = memberOf(fields, 'start') ?? ''
  if (typeof v !== 'string' || typeof rv !== 'number' || typeof start !== 'string') {
    throw invalidToken('a part of it has the wrong type')
  }
  if (v !== encodingVersion) {
    throw invalidToken(`server does not recognize this encoded version ${v}`)
  }
  if (!Number.isInteger(rv) || Math.abs(rv) >= int64Limit) {
    throw invalidToken('the resourceVersion in it is not an integer')
  }
  if (rv === 0) {
    throw invalidToken(`incorrect encoded start resourceVersion (version ${encodingVersion})`)
  }
  const now = timeIn(fields, 'now')
  if (start === '') throw invalidToken(`encoded start key empty (version ${encodingVersion})`)
  return {
    after: keyBefore(scope, start),
    version: rv < 0 ? undefined : parseVersion(String(BigInt(rv))),
    ...orderIn(fields),
    ...(now === undefined ? {} : { nowMs: now }),
    ...archiveIn(fields),
  }
}

function archiveIn(fields: { [name: string]: Json }): Pick<ContinuePoint, 'archive' | 'afterUid'> {
  const archive = textIn(fields, 'archive')
  const afterUid = textIn(fields, 'uid')
  return {
    ...(archive !== undefined && { archive }),
    ...(afterUid !== undefined && { afterUid }),
  }
}

function textIn(fields: { [name: string]: Json }, name: string): string | undefined {
  const text = memberOf(fields, name)
  if (text === undefined || typeof text === 'string') return text
  throw invalidToken('a part of it has the wrong type')
}

function orderIn(fields: { [name: string]: Json }): Pick<ContinuePoint, 'order' | 'afterMs'> {
  const order = memberOf(fields, 'order')
  if (order === undefined) return {}
  const afterMs = timeIn(fields, 'seen')
  if ((order !== 'oldest' && order !== 'newest') || afterMs === undefined) {
    throw invalidToken('its order is not known')
  }
  return { order, afterMs }
}

function timeIn(fields: { [name: string]: Json }, name: string): number | undefined {
  const ms = memberOf(fields, name)
  if (ms === undefined || Number.isSafeInteger(ms)) return ms as number | undefined
  throw invalidToken('a time in it is not an integer')
}

function parseToken(token: string): { [name: string]: Json } {
  const illegal = token.search(/[^A-Za-z0-9_-]/)
  if (illegal >= 0) throw invalidToken(`illegal base64 data at input byte ${illegal}`)
  if (token.length > tokenLengthMax) throw invalidToken('it is too long')
  let value: Json
  try {
    value = JSON.parse(Buffer.from(token, 'base64url').toString()) as Json
  } catch (cause) {
    throw invalidToken('it does not hold JSON', cause)
  }
  if (!isObject(value)) throw invalidToken('it does not hold a JSON object')
  return value
}

function keyBefore(scope: EventScope, start: string): EventKey {
  const parts = (start.endsWith(keyEnd) ? start.slice(0, -1) : '').split('/')
  const isClean = parts.every((part) => part !== '' && part !== '.' && part !== '..')
  const known = [scope.cluster, scope.namespace].filter((part) => part !== undefined)
  const missing = keyParts - known.length - parts.length
  if (!isClean || missing < 0) throw invalidToken(start)
  // The token of a narrower list has too few parts. It is a byte position among the keys here: just
  // before the first namespace (or cluster) with that prefix.
  const last = missing > 0 ? [...parts.slice(0, -1), `${parts.at(-1)}${keyEnd}`] : parts
  const [cluster = keyEnd, namespace = keyEnd, name = keyEnd] = [...known, ...last]
  return { cluster, namespace, name }
}

function invalidToken(problem: string, cause?: unknown): StatusError {
  return badRequest(`invalid continue token: continue key is not valid: ${problem}`, cause)
}
