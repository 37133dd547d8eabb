import { badRequest } from '../../api/status.ts'
import { TIDINGS_GROUP, TIDINGS_VERSION } from '../../api/tidings-group.ts'
import { EncodedRunCache } from '../../codec/encoders/encoded-run-cache.ts'
import { EventEncoders } from '../../codec/encoders/event-encoders.ts'
import { clusterView } from '../../codec/encoders/object-views.ts'
import type { AccessChecks } from '../../gate/access-checks.ts'
import { ALL_CLUSTERS, type Attributes } from '../../gate/attributes.ts'
import type { Decision } from '../../gate/decisions.ts'
import type { Caller } from '../../gate/gate.ts'
import { accountOf, type User } from '../../gate/user.ts'
import { type Lane, laneOf } from '../../lib/run-queue.ts'
import { SharedSelectors } from '../../registry/read/event-selector.ts'
import { notFound, resourceNames } from '../../registry/storage-errors.ts'
import { uidOf } from '../../storage/namespace-form.ts'
import type { Version } from '../../storage/resource-version.ts'
import type { StoredEvent } from '../../storage/storage.ts'
import { StoredBody } from '../../storage/stored-form.ts'
import { listResponse } from '../events/list.ts'
import { WatchFrameWriter } from '../events/watch-frame-writer.ts'
import { listPlan, watchPlan } from '../request/list-plan.ts'
import { negotiateList, negotiateObject, negotiateWatch } from '../request/negotiate.ts'
import { eventResponse } from '../response/respond.ts'
import type { ClusterStatus, ClusterStatuses } from './cluster-statuses.ts'
import { computedListing } from './computed-listing.ts'
import { polledFrames } from './polled-watch.ts'
import type { ReadOnlyResource } from './read-only-service.ts'

export const CLUSTERS: Pick<ReadOnlyResource, 'group' | 'version' | 'resource'> = {
  group: TIDINGS_GROUP,
  version: TIDINGS_VERSION,
  resource: 'clusters',
}

export interface ClustersOptions {
  readonly statuses: ClusterStatuses
  /** The API group of events. */
  readonly eventsGroup: string
  readonly decide: (user: User, attributes: Attributes) => Promise<Decision | undefined>
  /** The version of memory. */
  readonly version: () => Version
  readonly accessChecks?: Pick<AccessChecks, 'add'> | undefined
  readonly watchMsMax: number
  /** The time between two polls of a watch. */
  readonly pollMs?: number | undefined
}

const pollMsUsual = 5_000
const versionOffset = '{"metadata":{'.length

/**
 * The clusters whose events are stored here, with the state of their mirrors. Every replica
 * computes them when they are read. A user sees the clusters whose events the user may list in all
 * namespaces; the others do not exist for that user.
 */
export function clusters(options: ClustersOptions): ReadOnlyResource {
  const names = resourceNames(CLUSTERS.group, CLUSTERS.resource)
  const encoders = new EventEncoders(clusterView, Date.now)
  const runCache = new EncodedRunCache()
  const selectors = new SharedSelectors()
  const objects = new ClusterObjects(options.version)
  const visible = async (
    caller: Caller,
    cluster: string,
    lane: Lane,
  ): Promise<readonly StoredEvent[]> => {
    const all = inReach(caller, cluster, await options.statuses.list(lane))
    const shown = await visibleTo(caller.user, all, options)
    return shown.map((status) => objects.object(status))
  }
  return {
    ...CLUSTERS,
    get: async (request, { cluster, place: { name } }, caller) => {
      const encoder = encoders.response(negotiateObject(request))
      const status = await options.statuses.get(name, laneOf(request))
      const found = status === undefined ? [] : inReach(caller, cluster, [status])
      const [shown] = await visibleTo(caller.user, found, options)
      if (shown === undefined) throw notFound(names, name)
      return eventResponse(200, encoder, objects.object(shown))
    },
    list: async (request, target, caller) => {
      const encoder = encoders.response(negotiateList(request))
      const { selector, after } = listPlan(target)
      // All clusters are in the first page, so this server issued no token.
      if (after !== undefined) throw badRequest('a list of clusters has no further pages')
      const lane = laneOf(request)
      const items = (await visible(caller, target.cluster, lane)).filter(
        (one) => selector?.matches(one) ?? true,
      )
      const listing = computedListing(options.version(), items, encoder)
      return listResponse(encoder, listing, {
        ...{ runCache, warning: undefined },
        ...{ lane, signal: request.signal },
      })
    },
    watch: async (request, target, caller) => {
      const encoder = encoders.watch(negotiateWatch(request))
      const { cluster } = target
      const lane = laneOf(request)
      const plan = watchPlan(target, {
        watchMsMax: options.watchMsMax,
        selectors,
        now: Date.now,
      })
      const { promise: settled, resolve: settle } = Promise.withResolvers<void>()
      const body = polledFrames({
        plan,
        read: () => visible(caller, cluster, lane),
        version: options.version,
        writer: new WatchFrameWriter(encoder, plan.selector),
        pollMs: options.pollMs ?? pollMsUsual,
        request: request.signal,
        access: (end) =>
          caller.recheck &&
          options.accessChecks?.add(caller.recheck, end, accountOf(caller.sender ?? caller.user)),
        settle,
      })
      const headers = { 'content-type': encoder.first.contentType }
      return { status: 200, headers, body, longRunning: true, settled }
    },
  }
}

/**
 * Permission to impersonate a user in the cluster of the path says nothing about other clusters, so
 * the permissions of that user in other clusters must not be used.
 */
function inReach(
  { sender }: Caller,
  cluster: string,
  all: readonly ClusterStatus[],
): readonly ClusterStatus[] {
  if (sender === undefined || cluster === ALL_CLUSTERS) return all
  return all.filter(({ name }) => name === cluster)
}

/** The clusters whose events the user may list. If this cannot be decided, the user may not. */
async function visibleTo(
  user: User,
  all: readonly ClusterStatus[],
  { decide, eventsGroup }: Pick<ClustersOptions, 'decide' | 'eventsGroup'>,
): Promise<readonly ClusterStatus[]> {
  const mayList = async (cluster: string): Promise<boolean> => {
    const decision = await decide(user, {
      isResource: true,
      cluster,
      verb: 'list',
      group: eventsGroup,
      version: 'v1',
      resource: 'events',
      subresource: '',
      namespace: '',
      name: '',
      path: `/apis/${eventsGroup}/v1/events`,
    })
    return decision?.verdict === 'allow'
  }
  // A user who may list the events of all clusters may list those of each: one decision suffices.
  if (all.length > 1 && (await mayList(ALL_CLUSTERS))) return all
  const shown: ClusterStatus[] = []
  for (const status of all) if (await mayList(status.name)) shown.push(status)
  return shown
}

/** Creates the objects. The version of an object changes only with its content. */
class ClusterObjects {
  readonly #version: () => Version
  readonly #known = new Map<string, StoredEvent>()

  constructor(version: () => Version) {
    this.#version = version
  }

  object(status: ClusterStatus): StoredEvent {
    const { name } = status
    const body = bodyOf(status)
    const known = this.#known.get(name)
    if (known?.body.equals(body) === true) return known
    const version = this.#version()
    const key = { cluster: name, namespace: name, name }
    const object = new StoredBody({ key, body, versionOffset, version, writtenAtMs: 0 })
    if (this.#known.size >= CLUSTERS_KNOWN_MAX) this.#known.clear()
    this.#known.set(name, object)
    return object
  }
}

/** Versions change with each read if there are more clusters than this. */
const CLUSTERS_KNOWN_MAX = 10_000

function bodyOf({ name, events, oldestMs, newestMs, mirror }: ClusterStatus): Buffer {
  return Buffer.from(
    JSON.stringify({
      metadata: { name, uid: uidOf(`clusters/${name}`) },
      status: {
        events,
        oldestEventTime: timeOf(oldestMs),
        lastEventTime: timeOf(newestMs),
        mirror: mirror && {
          state: mirror.state,
          lagSeconds: mirror.lagMs === undefined ? undefined : Math.round(mirror.lagMs / 1000),
          message: mirror.message,
        },
      },
    }),
  )
}

function timeOf(ms: number | undefined): string | undefined {
  if (ms === undefined || !Number.isFinite(ms)) return undefined
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}
