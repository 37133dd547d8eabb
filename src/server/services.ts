/**
 * The services of a replica, and when each is installed: health before the listener is up, the self
 * reviews with the gate, the events when the engine is open, and the rest by a start-up step.
 */
import type { Registry } from '@prometheus-io/client'
import { coreGroup, type EventGroup, eventsGroup } from '../api/event-groups.ts'
import { EncodedRunCache } from '../codec/encoders/encoded-run-cache.ts'
import { eventsOpenApi, reviewsOpenApi } from '../codec/openapi/openapi-groups.ts'
import { type DiscoveryOptions, discoveryService } from '../endpoints/discovery/discovery.ts'
import { openApiService } from '../endpoints/discovery/openapi.ts'
import { eventsService, eventsServiceName } from '../endpoints/events/events-service.ts'
import {
  SELF_REVIEWS,
  selfReviewGroups,
  selfReviewsService,
} from '../endpoints/reviews/self-reviews.ts'
import { metricsService, versionService } from '../endpoints/server-info.ts'
import { Services } from '../endpoints/services.ts'
import type { AccessChecks } from '../gate/access-checks.ts'
import type { EventLimits } from '../gate/limits/event-limits.ts'
import { HEALTH_PATHS, METRICS_PATH, SLIS_PATH } from '../gate/server-paths.ts'
import { healthPaths } from '../health/handler.ts'
import type { Probe } from '../health/probe.ts'
import { HealthTallies } from '../health/tallies.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import type { Options } from '../options/options.ts'
import { removalSemaphore } from '../registry/collection-delete.ts'
import type { RegardedKind, WatchedStorage } from '../storage/storage.ts'
import { buildInfo } from './build-info.ts'
import type { OpenedGate } from './gate.ts'
import { watchRunCache } from './metrics/cache.ts'
import { healthRegistry } from './metrics/health.ts'
import { showBuild, showProcess } from './metrics/process.ts'

/** Installs the services of one replica as the parts that they need become available. */
export class ServiceInstaller {
  readonly services: Services
  readonly #options: Options
  readonly #metrics: Registry
  /** The same events under two names. */
  readonly #groups: readonly EventGroup[]
  readonly #healthTallies = new HealthTallies()

  constructor(options: Options, metrics: Registry) {
    this.#options = options
    this.#metrics = metrics
    this.#groups = [eventsGroup(options.eventsGroup), coreGroup]
    this.services = new Services([
      'health',
      'version',
      METRICS_PATH,
      SLIS_PATH,
      'discovery',
      SELF_REVIEWS,
      'openapi',
      ...this.#groups.map(eventsServiceName),
    ])
  }

  installHealth(probes: readonly Probe[], log: Log, clock: Clock): void {
    const handlerOf = healthPaths({ probes, tallies: this.#healthTallies, log, clock })
    this.services.install({
      name: 'health',
      paths: HEALTH_PATHS,
      isOpenToHost: true,
      isOpenToHostUsers: true,
      isAboutServer: true,
      isServedAtShutdown: true,
      find: ({ path }) => handlerOf(path),
    })
  }

  installSelfReviews({ gate, rulesFor }: Pick<OpenedGate, 'gate' | 'rulesFor'>): void {
    this.services.install(
      selfReviewsService({
        decide: (user, attributes) => gate.decide(user, attributes),
        rulesFor,
        wallTime: Date.now,
      }),
    )
  }

  /** Both groups share the storage and everything that limits or caches access to it. */
  installEvents(parts: EventParts): void {
    const runCache = new EncodedRunCache()
    watchRunCache(runCache, this.#metrics)
    const { requestTimeoutMs, maxEventBytes, maxWatchDurationMs } = this.#options
    const shared = {
      ...parts,
      servedVersions: this.#groups.map(({ apiVersion }) => apiVersion),
      removalSemaphore: removalSemaphore(),
      runCache,
      requestTimeoutMs,
      eventBytesMax: maxEventBytes,
      watchMsMax: maxWatchDurationMs,
    }
    for (const group of this.#groups) this.services.install(eventsService({ ...shared, group }))
  }

  /** Version, metrics, discovery and OpenAPI, which need neither etcd nor a file. */
  installServerInfo({ regardedKinds, decide }: ServerInfoParts): void {
    const build = buildInfo()
    showProcess(this.#metrics)
    showBuild(this.#metrics)
    this.services.install(versionService(build))
    this.services.install(metricsService(METRICS_PATH, this.#metrics))
    this.services.install(metricsService(SLIS_PATH, healthRegistry(this.#healthTallies)))
    this.services.install(
      discoveryService({
        group: this.#options.eventsGroup,
        otherGroups: selfReviewGroups,
        paths: () => this.services.paths(),
        regarded: regardedKinds,
        decide,
      }),
    )
    const groups = [...this.#groups.map(eventsOpenApi), ...reviewsOpenApi]
    this.services.install(openApiService({ groups, release: build.gitVersion }))
  }
}

export interface EventParts {
  readonly storage: WatchedStorage
  readonly eventLimits: EventLimits | undefined
  readonly accessChecks: AccessChecks
}

export interface ServerInfoParts {
  /** Kinds that stored events are about. */
  readonly regardedKinds: () => readonly RegardedKind[]
  readonly decide: DiscoveryOptions['decide']
}
