import { coreGroup, type EventGroup } from '../../src/api/event-groups.ts'
import type { EncodedRunCache } from '../../src/codec/encoders/encoded-run-cache.ts'
import type { MirroredClusters, ReadApi } from '../../src/endpoints/events/event-api.ts'
import { eventsService, eventsServiceName } from '../../src/endpoints/events/events-service.ts'
import { NAMESPACES, namespaces } from '../../src/endpoints/objects/namespaces.ts'
import {
  listOnlyService,
  readOnlyService,
  readOnlyServiceName,
} from '../../src/endpoints/objects/read-only-service.ts'
import {
  RETENTION_WINDOWS,
  retentionWindows,
} from '../../src/endpoints/objects/retention-windows.ts'
import { Services } from '../../src/endpoints/services.ts'
import { EVENT_HISTOGRAMS, eventHistograms } from '../../src/endpoints/summaries/histograms.ts'
import { EVENT_SUMMARIES, eventSummaries } from '../../src/endpoints/summaries/summaries.ts'
import type { TopSources } from '../../src/registry/top-sources.ts'
import type { Retention } from '../../src/retention/retention.ts'
import { windowStatuses } from '../../src/server/windows.ts'
import type { CachedEventStorage } from './cached-event-storage.ts'

export interface EventServicesOptions {
  readonly storage: CachedEventStorage
  /** Events are also served in core/v1. */
  readonly group: EventGroup
  readonly runCache: EncodedRunCache
  readonly sources: TopSources
  readonly mirrored: MirroredClusters | undefined
  /** What retention windows tell of the policy and of the account. */
  readonly kept: Pick<Retention, 'policy' | 'totals'>
  /** What retention windows tell of the archive. */
  readonly archived: Parameters<typeof windowStatuses>[2]
  readonly now: (() => number) | undefined
  readonly accessChecks: ReadApi['accessChecks']
}

/** The services that read events, as the server installs them. */
export function eventServices(options: EventServicesOptions): Services {
  const { storage, runCache, sources, mirrored, kept, archived, now, accessChecks } = options
  const groups = [options.group, coreGroup]
  const services = new Services([
    ...groups.map(eventsServiceName),
    ...[NAMESPACES, EVENT_SUMMARIES, EVENT_HISTOGRAMS, RETENTION_WINDOWS].map(readOnlyServiceName),
  ])
  const watchMsMax = 3_600_000
  services.install(readOnlyService(namespaces({ storage: storage.namespaces, watchMsMax })))
  const { summaries } = storage
  const version = () => storage.stats().version
  const summarized = eventSummaries({
    storage: summaries,
    version,
    mirrored,
    rates: sources,
    now,
  })
  services.install(listOnlyService(summarized))
  services.install(listOnlyService(eventHistograms({ storage: summaries, mirrored, now })))
  const statuses = windowStatuses(storage, kept, archived)
  services.install(listOnlyService(retentionWindows({ statuses, version, refusedIn: () => 3 })))
  const oldestIn: ReadApi['oldestIn'] = (scope, lane) => storage.oldest.in(scope, lane)
  // The last ones: core/v1 answers for every path below its own.
  for (const group of groups) {
    services.install(
      eventsService({
        storage,
        writes: storage,
        group,
        runCache,
        mirrored,
        oldestIn,
        now,
        accessChecks,
      }),
    )
  }
  return services
}
