/**
 * The token with which a list goes on: where it had come to, and in which state. Clients pass it
 * back and do not look inside. It is written as the Kubernetes API server writes it, so that tools
 * which do look inside find what they know: unpadded base64url of
 * `{"v":"meta.k8s.io/v1","rv":<version>,"start":"<key>\u0000"}`. The key is what follows the path of
 * the list: `name` in one namespace, `namespace/name` in all.
 */
import { badRequest, type StatusError } from '../api/status.ts'
import { isObject, type Json, memberOf } from '../lib/json.ts'
import { formatVersion, parseVersion, type Version } from '../storage/resource-version.ts'
import type { EventKey, EventScope } from '../storage/storage.ts'

/** Where a list goes on. */
export interface ContinuePoint {
  /** It need not exist. */
  readonly after: EventKey
  /** Of the state to read; undefined for the newest there is. */
  readonly version: Version | undefined
}

const encodingVersion = 'meta.k8s.io/v1'

/** The next possible key after another is that key and this. */
const keyEnd = '\0'

/** How a token says that no version is meant. */
const newest = -1

/** The longest names make tokens a quarter as long. */
const tokenLengthMax = 2048

const int64Limit = 2 ** 63

/** `scope` is that of the request's path; so it is when the token comes back. */
export function encodeContinue(scope: EventScope, { after, version }: ContinuePoint): string {
  const key = scope.namespace === undefined ? `${after.namespace}/${after.name}` : after.name
  const rv = version === undefined ? newest : Number(formatVersion(version))
  const token = JSON.stringify({ v: encodingVersion, rv, start: key + keyEnd })
  return Buffer.from(token).toString('base64url')
}

/** Throws the 400 that a token which is not ours, or not of such a list, is answered with. */
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
  if (start === '') throw invalidToken(`encoded start key empty (version ${encodingVersion})`)
  return {
    after: keyBefore(scope, start),
    version: rv < 0 ? undefined : parseVersion(String(BigInt(rv))),
  }
}

function parseToken(token: string): { [name: string]: Json } {
  const strange = token.search(/[^A-Za-z0-9_-]/)
  if (strange >= 0) throw invalidToken(`illegal base64 data at input byte ${strange}`)
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
  const [first = '', second, ...rest] = parts
  if (!isClean || rest.length > 0) throw invalidToken(start)

  if (scope.namespace !== undefined) {
    if (second !== undefined) throw invalidToken(start)
    return { namespace: scope.namespace, name: first }
  }
  // The token of one namespace also goes with the list of all: it is a place among the keys, before
  // the first namespace whose name begins like that.
  if (second === undefined) return { namespace: start, name: keyEnd }
  return { namespace: first, name: second }
}

function invalidToken(problem: string, cause?: unknown): StatusError {
  return badRequest(`invalid continue token: continue key is not valid: ${problem}`, cause)
}
