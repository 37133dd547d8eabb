import { badRequest } from '../../api/status.ts'
import { TIDINGS_GROUP, TIDINGS_VERSION } from '../../api/tidings-group.ts'
import { EncodedRunCache } from '../../codec/encoders/encoded-run-cache.ts'
import { EventEncoders } from '../../codec/encoders/event-encoders.ts'
import { retentionWindowView } from '../../codec/encoders/window-view.ts'
import { ALL_CLUSTERS } from '../../gate/attributes.ts'
import { type InLane, laneOf, mapInSlices } from '../../lib/run-queue.ts'
import { inApiTerms, resourceNames } from '../../registry/storage-errors.ts'
import { formatVersion, type Version } from '../../storage/resource-version.ts'
import type { StoredEvent } from '../../storage/storage.ts'
import { StoredBody } from '../../storage/stored-form.ts'
import { listResponse } from '../events/list.ts'
import type { ListTarget } from '../request/list-options.ts'
import { listPlan } from '../request/list-plan.ts'
import { negotiateList } from '../request/negotiate.ts'
import { warningHeader } from '../response/warnings.ts'
import { computedListing } from './computed-listing.ts'
import type { ListOnlyResource, ResourcePath } from './read-only-service.ts'

export const RETENTION_WINDOWS: ResourcePath = {
  group: TIDINGS_GROUP,
  version: TIDINGS_VERSION,
  resource: 'retentionwindows',
}

/** How many events of a namespace, or of a whole cluster, are retained, and for how long. */
export interface WindowStatus {
  readonly cluster: string
  /** Undefined for the whole cluster. */
  readonly namespace: string | undefined
  readonly events: number
  readonly bytes: number
  /** When the oldest event was last seen. */
  readonly oldestMs: number | undefined
  /** The lifetimes of the rules that can apply, in order. */
  readonly lifetimes: readonly {
    readonly rule: string
    readonly selects: string
    readonly lifetime: string
  }[]
  readonly budget:
    | {
        readonly name: string
        readonly events: number | undefined
        readonly bytes: number | undefined
      }
    | undefined
  /** Number of rules that can apply and are not in `lifetimes`. */
  readonly hiddenRules: number
  /** Number of events deleted because of budgets; undefined if unknown. */
  readonly evicted: number | undefined
  /** Undefined while nothing is archived. */
  readonly history?: WindowHistory | undefined
}

/** What the archive has of a cluster. Only `untilMs` may differ between its namespaces. */
export interface WindowHistory {
  /** The start of the oldest day. Undefined when there is none. */
  readonly oldestMs: number | undefined
  /** What was last seen before is read from the archive. Undefined when memory has everything. */
  readonly untilMs: number | undefined
  /** Every change up to this version is archived. */
  readonly position: Version
  /** When the archiver had read up to the position. */
  readonly positionAtMs: number
}

/**
 * Selects the window of one namespace, or those of one or all clusters and all their namespaces.
 */
export interface WindowQuery extends InLane {
  readonly cluster: string | undefined
  readonly namespace: string | undefined
  readonly isSelected: (of: Pick<WindowStatus, 'cluster' | 'namespace'>) => boolean
  readonly windowsMax: number
}

export interface WindowList {
  /** The first ones, sorted by name. */
  readonly windows: readonly WindowStatus[]
  /** Number of windows that are not listed. */
  readonly hidden: number
}

export interface WindowStatuses {
  /** Whether events are archived. */
  readonly hasHistory: boolean
  /** Rejects with `unavailable` until all events are loaded. */
  list(query: WindowQuery): Promise<WindowList>
}

export interface WindowsOptions {
  readonly statuses: WindowStatuses
  /** The version of memory. */
  readonly version: () => Version
  /** Returns the number of writes to a cluster that this replica has refused. */
  readonly refusedIn?: ((cluster: string) => number | undefined) | undefined
}

/** More windows than this are not listed, since the list has no pages. */
export const WINDOWS_MAX = 1_000

const versionOffset = '{"metadata":{'.length

/** How far back the events of each namespace and of each cluster go, and why. */
export function retentionWindows(options: WindowsOptions): ListOnlyResource {
  const { statuses, version, refusedIn } = options
  const names = resourceNames(RETENTION_WINDOWS.group, RETENTION_WINDOWS.resource)
  const encodersOf = (hasClusters: boolean): EventEncoders =>
    new EventEncoders(
      retentionWindowView({ hasClusters, hasHistory: statuses.hasHistory }),
      Date.now,
    )
  const encoders = encodersOf(false)
  const wildcardEncoders = encodersOf(true)
  return {
    ...RETENTION_WINDOWS,
    list: async (request, target) => {
      const isOfAll = target.cluster === ALL_CLUSTERS
      const encoder = (isOfAll ? wildcardEncoders : encoders).response(negotiateList(request))
      const { selector, after } = listPlan(target)
      if (after !== undefined) throw badRequest('a list of retention windows has no further pages')
      const cluster = isOfAll ? undefined : target.cluster
      const at = version()
      const lane = laneOf(request)
      const found = statuses.list({
        cluster,
        namespace: namespaceOf(target),
        isSelected: (of) => selector?.matches(nameOnly(of, at)) ?? true,
        windowsMax: WINDOWS_MAX,
        signal: request.signal,
        lane,
      })
      const { windows, hidden } = await inApiTerms(found, names, { isRead: true })
      const { signal } = request
      const items = await mapInSlices(windows, { lane, signal }, (status) =>
        objectOf({ ...status, refused: refusedOf(status, refusedIn) }, at),
      )
      return listResponse(encoder, computedListing(at, items, encoder), {
        lane,
        signal,
        runCache: new EncodedRunCache(),
        warning: warningHeader(hidden === 0 ? [] : [hiddenWarning(hidden)]),
      })
    },
  }
}

/** Defined only for a whole cluster. */
function refusedOf(
  { cluster, namespace }: WindowStatus,
  refusedIn: WindowsOptions['refusedIn'],
): number | undefined {
  return namespace === undefined ? refusedIn?.(cluster) : undefined
}

function hiddenWarning(hidden: number): string {
  return `${hidden} more namespaces are not shown: list a namespace, or select its metadata.name`
}

function namespaceOf({ place }: ListTarget): string | undefined {
  return 'namespace' in place ? place.namespace : undefined
}

/** The object of a cluster has no namespace; the one of a namespace has it as its name, too. */
function objectOf(
  status: WindowStatus & { readonly refused: number | undefined },
  version: Version,
): StoredEvent {
  const { cluster, oldestMs, hiddenRules, history } = status
  return stored(status, version, {
    cluster,
    events: status.events,
    bytes: status.bytes,
    oldestTime: microTime(oldestMs),
    lifetimes: status.lifetimes,
    budget: status.budget,
    evicted: status.evicted,
    hiddenRules: hiddenRules === 0 ? undefined : hiddenRules,
    refused: status.refused,
    history: history && historyOf(history, Date.now()),
  })
}

function historyOf(
  { oldestMs, untilMs, position, positionAtMs }: WindowHistory,
  nowMs: number,
): Readonly<Record<string, unknown>> {
  return {
    oldestTime: microTime(oldestMs),
    untilTime: microTime(untilMs),
    position: formatVersion(position),
    positionTime: microTime(positionAtMs),
    // The clock of the archiver may be ahead.
    lagSeconds: Math.max(0, Math.floor((nowMs - positionAtMs) / 1000)),
  }
}

/** An object without content, since only names can be selected. */
function nameOnly(of: Pick<WindowStatus, 'cluster' | 'namespace'>, version: Version): StoredEvent {
  return stored(of, version, {})
}

function stored(
  { cluster, namespace }: Pick<WindowStatus, 'cluster' | 'namespace'>,
  version: Version,
  members: Readonly<Record<string, unknown>>,
): StoredEvent {
  const name = namespace ?? cluster
  return new StoredBody({
    key: { cluster, namespace: namespace ?? '', name },
    body: Buffer.from(JSON.stringify({ metadata: { name, namespace }, ...members })),
    versionOffset,
    version,
    writtenAtMs: 0,
  })
}

function microTime(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString().replace('Z', '000Z')
}
