import type { Request } from '../http/exchange.ts'

/** A request with one of these came through a proxy on this host: its client may be elsewhere. */
const FORWARDING_HEADERS = /^(forwarded|via|x-real-ip|true-client-ip|x-forwarded-.*|x-remote-.*)$/

/** Whether a request comes from a process on this host itself, not through a proxy. */
export function isFromHost(request: Request): boolean {
  return (
    request.peer.isLoopback &&
    !Object.keys(request.headers).some((name) => FORWARDING_HEADERS.test(name))
  )
}
