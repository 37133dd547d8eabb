/** The health checks of each endpoint, in the order in which they are reported. */
import {
  conditionCheck,
  datastoreCheck,
  datastoreClientCheck,
  followedBy,
  logCheck,
  ping,
} from '../health/checks.ts'
import { type HealthCheck, Probe, withGrace } from '../health/probe.ts'
import type { Clock } from '../lib/clock.ts'
import type { Engine } from './engine.ts'
import type { Lifecycle } from './lifecycle.ts'
import type { Startup } from './startup.ts'

export interface ProbeParts {
  readonly engine: Engine
  readonly startup: Startup
  readonly services: { missing(): readonly string[] }
  readonly lifecycle: Lifecycle
  readonly writer: { lastFlushedAt(): number }
  readonly clock: Clock
  /** When the process started, by `clock`. */
  readonly startedAt: number
  readonly livezGraceMs: number
}

/** `/livez` checks this process only; `/readyz` and `/healthz` also check that etcd responds. */
export function healthProbes(parts: ProbeParts): readonly Probe[] {
  const { engine, services, lifecycle, writer, clock, startedAt, livezGraceMs: graceMs } = parts
  const first = [ping, logCheck(writer, clock)]
  const responds = datastoreCheck(() => engine.ask(), clock)
  const isClientAlive = datastoreClientCheck(() => engine.overdueMs())
  // The response of etcd is cached for a second; the history is verified on every probe.
  const respondsWithSameHistory = followedBy(responds, () => engine.followsHistory())
  const informerSync = conditionCheck(
    'informer-sync',
    () => engine.unsynced === undefined,
    () => engine.unsynced ?? '',
  )
  const startup: readonly HealthCheck[] = [
    ...parts.startup.checks(),
    conditionCheck(
      'autoregister-completion',
      () => services.missing().length === 0,
      () => `missing APIService: [${services.missing().join(' ')}]`,
    ),
  ]
  const shutdown = conditionCheck(
    'shutdown',
    () => !lifecycle.shutdownInitiated.isOpen,
    () => 'process is shutting down',
  )
  const gracefulStartup = startup.map((check) => withGrace(check, { graceMs, startedAt, clock }))
  return [
    new Probe('healthz', [...first, responds, ...startup]),
    new Probe('livez', [...first, isClientAlive, ...gracefulStartup]),
    new Probe('readyz', [...first, respondsWithSameHistory, informerSync, ...startup, shutdown]),
  ]
}
