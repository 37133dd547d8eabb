/** The accounts of what is held in memory for clients, with their limits from the options. */
import { Counter, Gauge, type Registry } from '@prometheus-io/client'
import { HELD_KINDS } from './lib/held-kinds.ts'
import { HELD_LIMITS } from './lib/holding.ts'
import { DEFAULT_LEDGER_LIMITS, MemoryLedger } from './lib/ledger.ts'
import type { Options } from './options/options.ts'

const MIB = 1024 * 1024

/** What all listeners of a server share. */
export interface ClientMemory {
  readonly ledger: MemoryLedger
  /** A response was cut because its client did not read it. */
  readonly onStalled: () => void
}

/** `waiting` tells how many connections wait for room. */
export function openClientMemory(
  options: Options,
  registry: Registry,
  waiting: () => number,
): ClientMemory {
  const ledger = new MemoryLedger({
    ...DEFAULT_LEDGER_LIMITS,
    totalBytes: options.maxClientMemoryMib * MIB,
    userBytes: options.maxClientMemoryPerUserMib * MIB,
    userConnections: options.maxConnectionsPerUser,
  })
  showMemory(ledger, registry)
  new Gauge({
    name: 'tidings_connections_waiting',
    help: 'Connections of which nothing is read yet, since too many others have not shown who they are.',
    registers: [registry],
    collect() {
      this.set(waiting())
    },
  })
  return { ledger, onStalled: stalledCounter(registry) }
}

/** What is held in memory for clients, and who ran into which limit. */
function showMemory(ledger: MemoryLedger, registry: Registry): void {
  const registers = [registry]
  new Gauge({
    name: 'tidings_client_memory_bytes',
    help: 'Memory held for clients, by what it is for: estimated from what they sent and are sent.',
    labelNames: ['kind'],
    registers,
    collect() {
      for (const kind of HELD_KINDS) this.set({ kind }, ledger.held[kind])
    },
  })
  new Gauge({
    name: 'tidings_client_memory_limit_bytes',
    help: 'The most that may be held for all clients, of every kind but watches.',
    registers,
    collect() {
      this.set(ledger.limits.totalBytes)
    },
  })
  new Counter({
    name: 'tidings_client_memory_refused_total',
    help: 'Requests refused, or connections cut, because a limit on the memory held for clients was reached.',
    labelNames: ['limit'],
    registers,
    collect() {
      this.reset()
      for (const limit of HELD_LIMITS) this.inc({ limit }, ledger.refused[limit])
    },
  })
  new Gauge({
    name: 'tidings_unauthenticated_connections',
    help: 'Connections on which no client has shown who it is, from the start of their TLS handshake.',
    registers,
    collect() {
      this.set(ledger.unauthenticatedConnections)
    },
  })
}

/** Counts responses that were cut because their clients did not read them. */
function stalledCounter(registry: Registry): () => void {
  const stalled = new Counter({
    name: 'tidings_stalled_responses_total',
    help: 'Responses that were cut because their clients took nothing of them for too long.',
    registers: [registry],
  })
  return () => stalled.inc()
}
