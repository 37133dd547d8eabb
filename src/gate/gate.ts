import { unauthorized } from '../api/status.ts'
import type { Request } from '../http/exchange.ts'

/** Who a request comes from. */
export interface User {
  readonly name: string
  readonly uid?: string
  readonly groups: readonly string[]
}

/** What the gate needs to know of the thing asked for. */
export interface Access {
  /** Open to processes on this host without credentials, as health probes are. */
  readonly isOpenToHost: boolean
}

/** Decides who may come in. Identity belongs to the request, never to its connection. */
export interface Gate {
  /** Rejects with 401 when the caller has not shown who it is. */
  authenticate(request: Request, access: Access): Promise<User>
}

/** Knows whose a bearer token is. */
export interface TokenUsers {
  /** Undefined when it is nobody's. */
  userOf(token: string): User | undefined
}

/** A process on this host that showed no credentials. */
const HOST: User = { name: 'system:host', groups: ['system:unauthenticated'] }

/** A proxy on this host speaks for others: whatever carries one of these is not local. */
const FORWARDING_HEADERS = /^(forwarded|via|x-real-ip|true-client-ip|x-forwarded-.*|x-remote-.*)$/

/**
 * Knows two kinds of callers: those with a token, wherever they are, and the host itself, for what
 * is open to it. A token that nobody knows is refused rather than overlooked: a client that sends a
 * wrong one must hear of it.
 */
export function createGate(tokens: TokenUsers): Gate {
  return {
    authenticate: async (request, access) => {
      const token = bearerToken(request)
      const user = token === undefined ? hostUser(request, access) : tokens.userOf(token)
      if (user === undefined) throw unauthorized()
      return user
    },
  }
}

/** Any case of the scheme, any text after the token; other schemes are no credentials here. */
function bearerToken(request: Request): string | undefined {
  return /^bearer\s+(\S+)/i.exec(request.headers['authorization'] ?? '')?.[1]
}

function hostUser(request: Request, access: Access): User | undefined {
  return access.isOpenToHost && isFromHost(request) ? HOST : undefined
}

function isFromHost(request: Request): boolean {
  return (
    request.peer.isLoopback &&
    !Object.keys(request.headers).some((name) => FORWARDING_HEADERS.test(name))
  )
}
