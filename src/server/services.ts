/**
 * The services of a replica, and when each is installed: health and the web page before the listener
 * is up, the self reviews with the gate, the events when the engine is open, and the rest by a
 * start-up step.
 */

import type { Registry } from '@prometheus-io/client'
import { coreGroup, type EventGroup, eventsGroup } from '../api/event-groups.ts'
import { EncodedRunCache } from '../codec/encoders/encoded-run-cache.ts'
import { eventsOpenApi, reviewsOpenApi, tidingsOpenApi } from '../codec/openapi/openapi-groups.ts'
import {
  type DiscoveryOptions,
  discoveryService,
  tidingsGroup,
} from '../endpoints/discovery/discovery.ts'
import { openApiService } from '../endpoints/discovery/openapi.ts'
import type { MirroredClusters } from '../endpoints/events/event-api.ts'
import {
  type EventsServiceOptions,
  eventsService,
  eventsServiceName,
} from '../endpoints/events/events-service.ts'
import { LOG_LEVEL_PATH, logLevelService } from '../endpoints/log-level.ts'
import { type ClusterSources, clusterStatuses } from '../endpoints/objects/cluster-statuses.ts'
import { CLUSTERS, type ClustersOptions, clusters } from '../endpoints/objects/clusters.ts'
import { NAMESPACES, namespaces } from '../endpoints/objects/namespaces.ts'
import {
  listOnlyService,
  readOnlyService,
  readOnlyServiceName,
} from '../endpoints/objects/read-only-service.ts'
import {
  RETENTION_WINDOWS,
  retentionWindows,
  type WindowStatuses,
  type WindowsOptions,
} from '../endpoints/objects/retention-windows.ts'
import {
  SELF_REVIEWS,
  selfReviewGroups,
  selfReviewsService,
} from '../endpoints/reviews/self-reviews.ts'
import { metricsService, versionService } from '../endpoints/server-info.ts'
import { Services } from '../endpoints/services.ts'
import { EVENT_HISTOGRAMS, eventHistograms } from '../endpoints/summaries/histograms.ts'
import { EVENT_SUMMARIES, eventSummaries } from '../endpoints/summaries/summaries.ts'
import { loadPageFiles } from '../endpoints/ui/page-files.ts'
import { SIGN_IN, type SignIn, signInService } from '../endpoints/ui/sign-in.ts'
import { UI, uiService } from '../endpoints/ui/ui-service.ts'
import type { AccessChecks } from '../gate/access-checks.ts'
import { HEALTH_PATHS, METRICS_PATH, SLIS_PATH } from '../gate/server-paths.ts'
import { healthPaths } from '../health/handler.ts'
import type { Probe } from '../health/probe.ts'
import { HealthTallies } from '../health/tallies.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import type { Options } from '../options/options.ts'
import type { WriteAdmission } from '../registry/admission/write-admission.ts'
import { removalSemaphore } from '../registry/collection-delete.ts'
import type { TopSources } from '../registry/top-sources.ts'
import type { RegardedKind } from '../storage/event-fields.ts'
import type { Version } from '../storage/resource-version.ts'
import type { EventScope, EventWrites, ReadStorage } from '../storage/storage.ts'
import type { EventSummaries } from '../storage/summary.ts'
import { buildInfo, pageFolder } from './build-info.ts'
import type { OpenedGate } from './gate.ts'
import type { MemoryBudget } from './memory-budget.ts'
import { registerRunCacheMetrics } from './metrics/cache.ts'
import { healthRegistry } from './metrics/health.ts'
import { registerBuildMetrics, registerProcessMetrics } from './metrics/process.ts'

/** Installs the services of one replica as the parts that they need become available. */
export class ServiceInstaller {
  readonly services: Services
  readonly #options: Options
  readonly #metrics: Registry
  /** The same events under two names. */
  readonly #groups: readonly EventGroup[]
  readonly #signIn: SignIn | undefined
  readonly #listBytes: number | undefined
  readonly #healthTallies = new HealthTallies()

  /** `signIn`: only `tidings dev` has it. Without a budget, the list cache has its default size. */
  constructor(
    options: Options,
    metrics: Registry,
    {
      signIn,
      budget,
    }: {
      readonly signIn?: SignIn | undefined
      readonly budget?: Pick<MemoryBudget, 'listBytes'>
    } = {},
  ) {
    this.#listBytes = budget?.listBytes
    this.#options = options
    this.#metrics = metrics
    this.#signIn = signIn
    this.#groups = [eventsGroup(options.eventsGroup), coreGroup]
    this.services = new Services([
      'health',
      'version',
      METRICS_PATH,
      SLIS_PATH,
      LOG_LEVEL_PATH,
      'discovery',
      SELF_REVIEWS,
      'openapi',
      readOnlyServiceName(NAMESPACES),
      readOnlyServiceName(CLUSTERS),
      readOnlyServiceName(EVENT_SUMMARIES),
      readOnlyServiceName(EVENT_HISTOGRAMS),
      readOnlyServiceName(RETENTION_WINDOWS),
      ...this.#groups.map(eventsServiceName),
      ...(options.ui ? [UI] : []),
      ...(options.ui && signIn ? [SIGN_IN] : []),
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

  /** Needs only its files, so it is available before etcd is. */
  async installUi(log: Log): Promise<void> {
    if (!this.#options.ui) return
    const folder = pageFolder()
    const files = await loadPageFiles(folder)
    if (files === undefined) {
      log.warn('The web page is not served: it was not built', { folder, help: 'npm run build' })
    }
    if (this.#signIn !== undefined) this.services.install(signInService(this.#signIn))
    this.services.install(uiService(files))
  }

  installSelfReviews({ gate, rulesFor }: Pick<OpenedGate, 'gate' | 'rulesFor'>): void {
    this.services.install(
      selfReviewsService({
        decide: async (user, attributes) => gate.decide(user, attributes),
        rulesFor,
        wallTime: Date.now,
      }),
    )
  }

  /**
   * Both groups share the storage and everything that limits or caches access to it. Resources
   * derived from events are found first: the group of events has a 404 for all its other paths.
   */
  installEvents({
    namespaces: known,
    clusters: clusterSources,
    decide,
    version,
    summaries,
    windows,
    refusedIn,
    sources: rates,
    ...parts
  }: EventParts): void {
    const runCache = new EncodedRunCache({ bytesMax: this.#listBytes })
    registerRunCacheMetrics(runCache, this.#metrics)
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
    const watching = { accessChecks: parts.accessChecks, watchMsMax: maxWatchDurationMs }
    this.services.install(readOnlyService(namespaces({ ...watching, storage: known })))
    const statuses = clusterStatuses(clusterSources)
    const { eventsGroup } = this.#options
    this.services.install(
      readOnlyService(clusters({ ...watching, statuses, eventsGroup, decide, version })),
    )
    const { mirrored } = parts
    this.services.install(
      listOnlyService(
        eventSummaries({
          storage: summaries,
          version,
          mirrored,
          rates,
          oldestIn: (scope, lane) => parts.archivedSince?.(scope) ?? parts.oldestIn?.(scope, lane),
        }),
      ),
    )
    this.services.install(listOnlyService(eventHistograms({ storage: summaries, mirrored })))
    this.services.install(
      listOnlyService(retentionWindows({ statuses: windows, version, refusedIn })),
    )
    for (const group of this.#groups) this.services.install(eventsService({ ...shared, group }))
  }

  /** Version, log level, metrics, discovery and OpenAPI, which need neither etcd nor a file. */
  installServerInfo({ regardedKinds, decide, setVerbosity }: ServerInfoParts): void {
    const build = buildInfo()
    registerProcessMetrics(this.#metrics)
    registerBuildMetrics(this.#metrics)
    this.services.install(versionService(build))
    this.services.install(logLevelService(setVerbosity))
    this.services.install(metricsService(METRICS_PATH, this.#metrics))
    this.services.install(metricsService(SLIS_PATH, healthRegistry(this.#healthTallies)))
    this.services.install(
      discoveryService({
        group: this.#options.eventsGroup,
        otherGroups: [...selfReviewGroups, tidingsGroup],
        paths: () => this.services.paths(),
        regarded: regardedKinds,
        decide,
      }),
    )
    const groups = [...this.#groups.map(eventsOpenApi), ...reviewsOpenApi, tidingsOpenApi]
    this.services.install(openApiService({ groups, release: build.gitVersion }))
  }
}

export interface EventParts {
  readonly mirrored?: MirroredClusters | undefined
  readonly storage: ReadStorage
  readonly writes: EventWrites
  readonly sources: TopSources
  /** The namespaces that have events. */
  readonly namespaces: ReadStorage
  readonly clusters: ClusterSources
  readonly summaries: EventSummaries
  readonly windows: WindowStatuses
  readonly refusedIn?: WindowsOptions['refusedIn']
  readonly oldestIn: EventsServiceOptions['oldestIn']
  /** The oldest day in the archive of a cluster, if it has one. */
  readonly archivedSince?: ((scope: EventScope) => number | undefined) | undefined
  readonly marksOf?: EventsServiceOptions['marksOf']
  readonly decide: ClustersOptions['decide']
  /** The version of memory. */
  readonly version: () => Version
  readonly admission: WriteAdmission | undefined
  readonly accessChecks: AccessChecks
}

export interface ServerInfoParts {
  /** Kinds that stored events are about. */
  readonly regardedKinds: (cluster: string) => readonly RegardedKind[]
  readonly decide: DiscoveryOptions['decide']
  /** Sets `-v` of the running server. */
  readonly setVerbosity: (level: number) => void
}
