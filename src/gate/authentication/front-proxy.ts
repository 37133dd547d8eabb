import { headerValues, type PresentedCertificate, type Request } from '../../http/exchange.ts'
import type { Authenticator } from '../gate.ts'
import { certificateRefused, notIdentified } from '../refusal.ts'
import { authenticated, type User } from '../user.ts'
import type { ClientAuthorities } from './authorities.ts'
import { certificateFacts } from './certificate-facts.ts'

/** Header names, in lower case. */
export interface FrontProxyHeaders {
  readonly username: readonly string[]
  readonly group: readonly string[]
  readonly uid: readonly string[]
  readonly extraPrefix: readonly string[]
}

export interface FrontProxyOptions {
  readonly authorities: Pick<ClientAuthorities, 'frontProxy'>
  /** Common names of proxies. If empty, every certificate of the authority is a proxy. */
  readonly allowedNames: readonly string[]
  readonly headers: FrontProxyHeaders
  readonly now?: () => number
}

/**
 * Authenticates the users that a trusted front proxy names in headers. The headers are read only
 * after the proxy's certificate has been checked. A request that names two users is refused: a
 * proxy that forwards such headers of its clients along with its own would let a client be any
 * user.
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
  /**
   * Returns false if no front proxies are configured. Throws a 401 for a bad certificate or name.
   */
  const isProxy = (presented: PresentedCertificate): boolean => {
    if (authorities.frontProxy === undefined) return false
    const nowMs = now()
    if (!authorities.frontProxy.trusts(presented, nowMs)) {
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
    reauthenticator: (request) => {
      const presented = request.peer.clientCertificate()
      if (presented === undefined) return undefined
      return reauthenticatorOf(presented, isProxy, userIn(request, headers))
    },
  }
}

/** The user stays the one that the proxy named; only trust in the proxy can end. */
function reauthenticatorOf(
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

/** An empty value counts as not sent. */
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
  // Object.fromEntries makes `__proto__` a key like any other.
  return found.size === 0 ? undefined : Object.fromEntries(found)
}

/** Keys may have characters that header names cannot, so proxies percent-encode them. */
function decoded(key: string): string {
  try {
    return decodeURIComponent(key)
  } catch {
    // Not percent-encoded.
    return key
  }
}

/** Decodes UTF-8, of which Node returns each byte as one character. */
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
