import { unauthorized } from '../api/status.ts'
import type { Request } from '../http/exchange.ts'

/** Who a request comes from. */
export interface User {
  readonly name: string
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

/** A process on this host that showed no credentials. */
const HOST: User = { name: 'system:host', groups: ['system:unauthenticated'] }

/** A proxy on this host speaks for others: whatever carries one of these is not local. */
const FORWARDING_HEADERS = /^(forwarded|via|x-real-ip|true-client-ip|x-forwarded-.*|x-remote-.*)$/

/**
 * Knows one kind of caller, the host itself, and lets it read what is open to it. Credentials
 * that nobody here can check are refused rather than overlooked: a client that sends a wrong
 * token must hear of it.
 */
export function hostGate(): Gate {
  return {
    authenticate: async (request, access) => {
      if (access.isOpenToHost && isFromHost(request) && !hasCredentials(request)) return HOST
      throw unauthorized()
    },
  }
}

function isFromHost(request: Request): boolean {
  return (
    request.peer.isLoopback &&
    !Object.keys(request.headers).some((name) => FORWARDING_HEADERS.test(name))
  )
}

function hasCredentials(request: Request): boolean {
  return /^bearer\s+\S/i.test(request.headers['authorization'] ?? '')
}
