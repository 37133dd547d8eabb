import { headerValues, type PresentedCertificate, type Request } from '../../http/exchange.ts'
import type { Authenticator } from '../gate.ts'
import { certificateRefused, notIdentified } from '../refusal.ts'
import { authenticated, type User } from '../user.ts'
import type { ClientAuthorities } from './authorities.ts'
import { certificateFacts } from './certificate-facts.ts'

/** Header names are in lower case. */
export interface FrontProxyHeaders {
  readonly username: readonly string[]
  readonly group: readonly string[]
  readonly uid: readonly string[]
  readonly extraPrefix: readonly string[]
}

export interface FrontProxyOptions {
  readonly authorities: Pick<ClientAuthorities, 'frontProxy'>
  /** Common names of proxies; none means that all of their authority may speak for others. */
  readonly allowedNames: readonly string[]
  readonly headers: FrontProxyHeaders
  readonly now?: () => number
}

/**
 * Users in whose name a trusted proxy speaks. Its certificate comes first: without it the headers
 * are not even looked at. A proxy that passes on what it was sent beside what it says itself would
 * give away every identity, hence a user that is named twice is nobody.
 */
export function frontProxy(options: FrontProxyOptions): Authenticator {
  const { authorities, headers, now = Date.now } = options
  const allowed: ReadonlySet<string> = new Set(options.allowedNames)
  const names = new WeakMap<PresentedCertificate, string>()
  const nameOf = (presented: PresentedCertificate): string => {
    const name = names.get(presented) ?? certificateFacts(presented.leaf.raw).commonName
    names.set(presented, name)
    return name
  }
  /** Whether it is a proxy that may speak for others; throws when it must not. */
  const isProxy = (presented: PresentedCertificate): boolean => {
    if (authorities.frontProxy === undefined) return false
    const nowMs = now()
    if (!authorities.frontProxy.vouchesFor(presented, nowMs)) {
      throw certificateRefused(presented, nowMs)
    }
    if (allowed.size > 0 && !allowed.has(nameOf(presented))) {
      throw notIdentified('bad-certificate')
    }
    return true
  }
  return {
    authenticate: async (request) => {
      const presented = request.peer.clientCertificate()
      if (presented === undefined || !isProxy(presented)) return undefined
      return userIn(request, headers)
    },
    again: (request) => {
      const presented = request.peer.clientCertificate()
      if (presented === undefined) return undefined
      return askAgain(presented, isProxy, userIn(request, headers))
    },
  }
}

/** Whom a proxy named it has named for good: what can end is that it is believed. */
function askAgain(
  presented: PresentedCertificate,
  isProxy: (presented: PresentedCertificate) => boolean,
  user: User | undefined,
): () => Promise<User | undefined> {
  return async () => (isProxy(presented) ? user : undefined)
}

function userIn(request: Request, headers: FrontProxyHeaders): User | undefined {
  const name = single(request, headers.username)
  if (name === undefined) return undefined
  const uid = single(request, headers.uid)
  const groups = headers.group.flatMap((header) => valuesOf(request, header))
  const extra = extraIn(request, headers.extraPrefix)
  return authenticated({
    name,
    ...(uid === undefined ? {} : { uid }),
    groups,
    ...(extra === undefined ? {} : { extra }),
  })
}

/** The value of the first of these headers that has one. */
function single(request: Request, names: readonly string[]): string | undefined {
  for (const name of names) {
    const [value, ...more] = valuesOf(request, name)
    if (more.length > 0) throw notIdentified('bad-proxy-headers')
    if (value !== undefined) return value
  }
  return undefined
}

/** Empty ones count as not sent. */
function valuesOf(request: Request, name: string): readonly string[] {
  return headerValues(request, name)
    .filter((value) => value !== '')
    .map(readable)
}

function extraIn(request: Request, prefixes: readonly string[]): User['extra'] {
  const found = new Map<string, string[]>()
  for (const name of Object.keys(request.headers)) {
    const prefix = prefixes.find((start) => name.startsWith(start))
    if (prefix === undefined) continue
    const key = decoded(name.slice(prefix.length))
    found.set(key, [...(found.get(key) ?? []), ...headerValues(request, name).map(readable)])
  }
  // Made of entries, so that no name means anything else than itself.
  return found.size === 0 ? undefined : Object.fromEntries(found)
}

/** Names of headers cannot hold everything that keys can, so proxies write it with percent signs. */
function decoded(key: string): string {
  try {
    return decodeURIComponent(key)
  } catch {
    // Not meant that way, then.
    return key
  }
}

/** Bytes beyond ASCII arrive as one character each; proxies send UTF-8. */
function readable(value: string): string {
  if (/^[\x20-\x7e]*$/.test(value)) return value
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
      Buffer.from(value, 'latin1'),
    )
  } catch {
    throw notIdentified('bad-proxy-headers')
  }
}
