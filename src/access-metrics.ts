/** Who does not get in, and how far they come. */
import { Counter, type Registry } from '@prometheus-io/client'
import { REFUSALS, type Refusal } from './gate/refusal.ts'
import { PROXY_REFUSALS, type ProxyRefusal } from './http/proxied-connections.ts'
import type { Clock } from './lib/clock.ts'
import type { Log } from './lib/log.ts'

/** Hears of everyone who is not identified. */
export function refusalCounter(registry: Registry): (refusal: Refusal) => void {
  const refused = new Counter({
    name: 'tidings_authentication_failures_total',
    help: 'Requests of which it could not be told who sent them, by the reason.',
    labelNames: ['reason'],
    registers: [registry],
  })
  // There from the start, so that the first one shows as a rise.
  for (const reason of REFUSALS) refused.inc({ reason }, 0)
  return (reason) => refused.inc({ reason })
}

/** Hears of every handshake that fails. */
export function handshakeErrorCounter(registry: Registry): () => void {
  const failed = new Counter({
    name: 'apiserver_tls_handshake_errors_total',
    help: 'Connections that ended before TLS was agreed on, plain HTTP among them.',
    registers: [registry],
  })
  return () => failed.inc()
}

/** Hears of every watch that may not go on. */
export function endedWatchCounter(registry: Registry): (reason: string) => void {
  const ended = new Counter({
    name: 'tidings_watches_ended_total',
    help: 'Watches that were ended because their access was, by the reason of the last frame.',
    labelNames: ['reason'],
    registers: [registry],
  })
  for (const reason of ['Unauthorized', 'Forbidden', 'ServiceUnavailable']) ended.inc({ reason }, 0)
  return (reason) => ended.inc({ reason })
}

const PROXY_LINE_EVERY_MS = 60_000

/** Counts connections from proxies that were closed for want of a valid header, and logs one a minute. */
export function proxyRefusalCounter(
  registry: Registry,
  log: Log,
  clock: Clock,
): (reason: ProxyRefusal, address: string) => void {
  const refused = new Counter({
    name: 'tidings_proxy_header_errors_total',
    help: 'Connections from --proxy-protocol-from that were closed without a valid PROXY protocol header, by the reason.',
    labelNames: ['reason'],
    registers: [registry],
  })
  for (const reason of PROXY_REFUSALS) refused.inc({ reason }, 0)
  let nextLineAt = Number.NEGATIVE_INFINITY
  return (reason, proxy) => {
    refused.inc({ reason })
    // A check that only connects sends nothing, and is no mistake.
    if (reason === 'closed' || clock.now() < nextLineAt) return
    nextLineAt = clock.now() + PROXY_LINE_EVERY_MS
    log.warn('Connection from a proxy closed: no valid PROXY protocol header', { reason, proxy })
  }
}
