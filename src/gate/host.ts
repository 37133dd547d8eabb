import type { Request } from '../http/exchange.ts'

/** A proxy on this host speaks for others: whatever carries one of these is not local. */
const FORWARDING_HEADERS = /^(forwarded|via|x-real-ip|true-client-ip|x-forwarded-.*|x-remote-.*)$/

/** Whether a request comes from a process on this very host, which speaks for itself. */
export function isFromHost(request: Request): boolean {
  return (
    request.peer.isLoopback &&
    !Object.keys(request.headers).some((name) => FORWARDING_HEADERS.test(name))
  )
}
