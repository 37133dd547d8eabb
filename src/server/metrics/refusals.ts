/** Counters of failed authentication, TLS handshakes and PROXY headers, and of ended watches. */
import { Counter, type Registry } from '@prometheus-io/client'
import { REFUSALS, type Refusal } from '../../gate/refusal.ts'
import { PROXY_REFUSALS, type ProxyRefusal } from '../../http/connections/proxied-connections.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log/log.ts'

/** Counts requests that cannot be authenticated. */
export function refusalCounter(registry: Registry): (refusal: Refusal) => void {
  const refused = new Counter({
    name: 'tidings_authentication_failures_total',
    help: 'Requests that could not be authenticated, by reason.',
    labelNames: ['reason'],
    registers: [registry],
  })
  // Every series exists from the start, so that its first count shows as an increase.
  for (const reason of REFUSALS) refused.inc({ reason }, 0)
  return (reason) => refused.inc({ reason })
}

/** Counts failed TLS handshakes. */
export function handshakeErrorCounter(registry: Registry): () => void {
  const failed = new Counter({
    name: 'apiserver_tls_handshake_errors_total',
    help: 'Connections that failed the TLS handshake, plain HTTP included.',
    registers: [registry],
  })
  return () => failed.inc()
}

/** Counts watches that end because their caller lost access. */
export function endedWatchCounter(registry: Registry): (reason: string) => void {
  const ended = new Counter({
    name: 'tidings_watches_ended_total',
    help: 'Watches that ended because their caller lost access, by the reason in the last frame.',
    labelNames: ['reason'],
    registers: [registry],
  })
  for (const reason of ['Unauthorized', 'Forbidden', 'ServiceUnavailable']) ended.inc({ reason }, 0)
  return (reason) => ended.inc({ reason })
}

const PROXY_LINE_EVERY_MS = 60_000

/** Counts, and logs once a minute, connections from proxies closed without a valid header. */
export function proxyRefusalCounter(
  registry: Registry,
  log: Log,
  clock: Clock,
): (reason: ProxyRefusal, address: string) => void {
  const refused = new Counter({
    name: 'tidings_proxy_header_errors_total',
    help: 'Connections from --proxy-protocol-from that were closed without a valid PROXY protocol header, by reason.',
    labelNames: ['reason'],
    registers: [registry],
  })
  for (const reason of PROXY_REFUSALS) refused.inc({ reason }, 0)
  let nextLineAt = Number.NEGATIVE_INFINITY
  return (reason, proxy) => {
    refused.inc({ reason })
    // A health check that only connects sends nothing, which is no fault.
    if (reason === 'closed' || clock.now() < nextLineAt) return
    nextLineAt = clock.now() + PROXY_LINE_EVERY_MS
    log.warn('Connection from a proxy closed: no valid PROXY protocol header', { reason, proxy })
  }
}
