/** The checks that each health endpoint runs, in report order. */
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
  /** Start of the process, by `clock`. */
  readonly startedAt: number
  readonly livezGraceMs: number
}

/**
 * `/livez` covers only this process; `/healthz` adds etcd; `/readyz` adds a loaded cache, a verified
 * history, and that the process is not shutting down.
 */
export function healthProbes(parts: ProbeParts): readonly Probe[] {
  const { engine, services, lifecycle, writer, clock, startedAt, livezGraceMs: graceMs } = parts
  const common = [ping, logCheck(writer, clock)]
  const etcdCheck = datastoreCheck(() => engine.ask(), clock)
  const etcdClientCheck = datastoreClientCheck(() => engine.overdueMs())
  // `etcdCheck` may use a result up to a second old, so the history is verified on every probe.
  const etcdAndHistoryCheck = followedBy(etcdCheck, () => engine.followsHistory())
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
  const startupWithGrace = startup.map((check) => withGrace(check, { graceMs, startedAt, clock }))
  return [
    new Probe('healthz', [...common, etcdCheck, ...startup]),
    new Probe('livez', [...common, etcdClientCheck, ...startupWithGrace]),
    new Probe('readyz', [...common, etcdAndHistoryCheck, informerSync, ...startup, shutdown]),
  ]
}
