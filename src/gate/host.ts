import type { Request } from '../http/exchange.ts'

/**
 * A request with one of these came through a proxy on this host, so its client may be elsewhere.
 * They are patterns because many proxies and networks have a header of their own for the client's
 * address: `cf-connecting-ip`, `fastly-client-ip`, `x-azure-clientip`, `x-appengine-user-ip`,
 * `x-original-forwarded-for`, `wl-proxy-client-ip`, `x-envoy-external-address` and the like.
 */
const FORWARDING_HEADERS = new RegExp(
  `^(?:${[
    'forwarded',
    '(?:.*[-_])?forward(?:ed)?[-_].*',
    'x-forwarded',
    '(?:.*-)?via',
    'max-forwards',
    '(?:.*-)?(?:coming-from|proxy(?:-.*)?|origin-hop|edgescape|lb-ip)',
    '(?:x-)?(?:akamai|vercel|bluecoat|ms-proxy)-.*',
    'x-ms-proxy',
    'cdn-loop',
    'remote-addr',
    '(?:.*-)?(?:client|client-connection|connecting|real|user|source|remote|peer)-?ip(?:v6)?',
    'x-(?:remote|original|envoy|proxyuser|varnish|appengine|azure|amz-cf|nginx)-?.*',
    'cf-.*',
  ].join('|')})$`,
)

/** Returns whether a request comes from a process on this host, and not through a proxy. */
export function isFromHost(request: Request): boolean {
  return (
    request.peer.isLoopback &&
    !Object.keys(request.headers).some((name) => FORWARDING_HEADERS.test(name))
  )
}
