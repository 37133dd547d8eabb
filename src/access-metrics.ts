/** Who does not get in, and how far they come. */
import { Counter, type Registry } from '@prometheus-io/client'
import { REFUSALS, type Refusal } from './gate/refusal.ts'

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
