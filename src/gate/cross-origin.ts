/**
 * Refuses requests that a browser sends for a page of another origin. The browser identifies its
 * user without being asked (by a client certificate, the session of a front proxy, or the address
 * of this host), so such a page would act as the user. It could not read the response, but it could
 * write. kubectl, client-go, curl and probes send none of the headers that are read here.
 */
import { StatusError } from '../api/status.ts'
import type { Request } from '../http/exchange.ts'

/** `none` means that the user entered the address or opened a bookmark. */
const OWN_SITES: ReadonlySet<string> = new Set(['same-origin', 'none'])

const ADVICE = 'use the page of this server, /ui/, or a client outside of a browser'

/** Created once: any page can cause them, and most of the cost of an error is its stack trace. */
const BY_SITE = refusal(`Sec-Fetch-Site is neither same-origin nor none; ${ADVICE}`)
const BY_ORIGIN = refusal(
  `Origin is not the host of the request; ${ADVICE}; a proxy in front of this server must keep the Host header, or serve the page over HTTPS`,
)

function refusal(why: string): StatusError {
  const message = `requests of web pages of other origins are refused: ${why}`
  const made = new StatusError('Forbidden', message, { details: {} })
  Object.freeze(made)
  return made
}

/**
 * Throws a 403 for a request of another origin, unless it is a link that opens the response as a
 * page of its own. `Sec-Fetch-Site` decides if it was sent, since it is correct behind any proxy; a
 * browser that does not send it still sends `Origin` with everything that could write.
 */
export function refuseOtherOrigins({ method, headers }: Pick<Request, 'method' | 'headers'>): void {
  const site = headers['sec-fetch-site']
  if (site !== undefined) {
    const isLink =
      method === 'GET' &&
      headers['sec-fetch-mode'] === 'navigate' &&
      headers['sec-fetch-dest'] === 'document'
    if (!OWN_SITES.has(site) && !isLink) throw BY_SITE
    return
  }
  const { origin } = headers
  if (origin !== undefined && !isOfHost(origin, headers[':authority'] ?? headers['host'])) {
    throw BY_ORIGIN
  }
}

/** Compares URLs, which omit the default port. The origin `null` is not a URL. */
function isOfHost(origin: string, host: string | undefined): boolean {
  const from = URL.parse(origin)
  const to = from && URL.parse(`${from.protocol}//${host}`)
  return from !== null && from.host !== '' && from.host === to?.host
}
