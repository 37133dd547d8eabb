import { Counter, Gauge, type Registry } from '@prometheus-io/client'
import { HELD_KINDS } from '../../lib/client-memory/held-kinds.ts'
import { HELD_LIMITS } from '../../lib/client-memory/holding.ts'
import type { MemoryLedger } from '../../lib/client-memory/ledger.ts'

/** How the memory limit is divided, in bytes. */
export function registerMemoryLimitMetrics(
  parts: Readonly<
    Record<
      'all' | 'events' | 'history' | 'history-processes' | 'states' | 'lists' | 'clients',
      number
    >
  >,
  registry: Registry,
): void {
  const gauge = new Gauge({
    name: 'tidings_memory_limit_bytes',
    help: 'The memory that the process may take, by --memory-limit, its control group or the machine (all), and the parts of it that bound recent changes, earlier states, encoded lists and what is held for clients; the part history-processes is for those of --history. The part of events bounds nothing; above it, there is a warning.',
    labelNames: ['part'],
    registers: [registry],
  })
  for (const [part, bytes] of Object.entries(parts)) gauge.set({ part }, bytes)
}

/** Memory held for clients, and how often each of its limits was reached. */
export function registerClientMemoryMetrics(ledger: MemoryLedger, registry: Registry): void {
  const registers = [registry]
  new Gauge({
    name: 'tidings_client_memory_bytes',
    help: 'Estimated memory held for clients, by kind.',
    labelNames: ['kind'],
    registers,
    collect() {
      for (const kind of HELD_KINDS) this.set({ kind }, ledger.held[kind])
    },
  })
  new Gauge({
    name: 'tidings_client_memory_limit_bytes',
    help: 'Limit on the memory held for all clients, of every kind except watches.',
    registers,
    collect() {
      this.set(ledger.limits.totalBytes)
    },
  })
  new Counter({
    name: 'tidings_client_memory_refused_total',
    help: 'Requests refused, or connections closed, because a limit on the memory held for clients was reached.',
    labelNames: ['limit'],
    registers,
    collect() {
      this.reset()
      for (const limit of HELD_LIMITS) this.inc({ limit }, ledger.refused[limit])
    },
  })
  new Gauge({
    name: 'tidings_authenticated_connections',
    help: 'Connections on which a user has authenticated.',
    registers,
    collect() {
      this.set(ledger.identifiedConnections)
    },
  })
  new Gauge({
    name: 'tidings_unauthenticated_connections',
    help: 'Connections without an authenticated request yet, counted from the start of the TLS handshake.',
    registers,
    collect() {
      this.set(ledger.unauthenticatedConnections)
    },
  })
}

/** How many connections and watches the memory limit, or a flag, allows. */
export function registerClientNumberMetrics(
  limits: Readonly<Record<'connections' | 'user-connections' | 'watches' | 'user-watches', number>>,
  registry: Registry,
): void {
  const gauge = new Gauge({
    name: 'tidings_client_number_limit',
    help: 'Connections and watches that are allowed in total and for one user, by the memory limit or by a flag; 0 means no limit.',
    labelNames: ['limit'],
    registers: [registry],
  })
  for (const [limit, number] of Object.entries(limits)) gauge.set({ limit }, number)
}

/** Counts responses that were cancelled because their clients did not read them. */
export function stalledCounter(registry: Registry): () => void {
  const stalled = new Counter({
    name: 'tidings_stalled_responses_total',
    help: 'Responses cancelled because their client read nothing for --stalled-response-timeout.',
    registers: [registry],
  })
  return () => stalled.inc()
}

export function registerWaitingConnectionMetrics(waiting: () => number, registry: Registry): void {
  new Gauge({
    name: 'tidings_connections_waiting',
    help: 'Connections that wait unread, since too many other connections are unauthenticated.',
    registers: [registry],
    collect() {
      this.set(waiting())
    },
  })
}
