import { coreGroup, type EventGroup } from '../../api/event-groups.ts'
import { isMirrored, methodNotAllowed } from '../../api/status.ts'
import { EncodedRunCache } from '../../codec/encoders/encoded-run-cache.ts'
import { EventEncoders } from '../../codec/encoders/event-encoders.ts'
import { viewOf } from '../../codec/encoders/event-view.ts'
import type { AccessChecks } from '../../gate/access-checks.ts'
import { ALL_CLUSTERS } from '../../gate/attributes.ts'
import type { Target } from '../../gate/target.ts'
import type { Semaphore } from '../../lib/semaphore.ts'
import type { WriteAdmission } from '../../registry/admission/write-admission.ts'
import { CollectionDelete, removalSemaphore } from '../../registry/collection-delete.ts'
import { SharedSelectors } from '../../registry/read/event-selector.ts'
import { EventLister } from '../../registry/read/listing.ts'
import { EventRegistry } from '../../registry/registry.ts'
import type { EventWrites, MarksOf, ReadStorage } from '../../storage/storage.ts'
import { inTime } from '../request/timeout.ts'
import { compressed } from '../response/compress.ts'
import { unknownPathHandler } from '../response/respond.ts'
import type { Service } from '../services.ts'
import { createEvent } from './create.ts'
import { deleteEvent } from './delete.ts'
import { deleteEvents } from './delete-collection.ts'
import type {
  Endpoint,
  EventApi,
  EventCollection,
  EventPlace,
  EventTarget,
  MirroredClusters,
  OneEvent,
} from './event-api.ts'
import { getEvent } from './get.ts'
import { listEvents } from './list.ts'
import { patchEvent } from './patch.ts'
import { updateEvent } from './update.ts'
import { watchEvents } from './watch.ts'

export interface EventsServiceOptions {
  readonly storage: ReadStorage
  readonly writes: EventWrites
  /** The API group under which events are served. */
  readonly group: EventGroup
  /** Other API versions in which events are served; core/v1 by default. */
  readonly servedVersions?: readonly string[] | undefined
  /** If undefined, every write is admitted. */
  readonly admission?: Pick<WriteAdmission, 'admit'> | undefined
  /** If undefined, nothing is known about an event but what it says. */
  readonly marksOf?: MarksOf | undefined
  readonly eventBytesMax?: number | undefined
  /** Limits concurrent collection deletes. Shared by all groups. */
  readonly removalSemaphore?: Semaphore | undefined
  /** Caches encoded runs of lists. Shared by all groups, since they share its memory limit. */
  readonly runCache?: EncodedRunCache | undefined
  readonly requestTimeoutMs?: number | undefined
  readonly accessChecks?: Pick<AccessChecks, 'add'> | undefined
  readonly watchMsMax?: number | undefined
  /** The wall clock of tables and selectors. */
  readonly now?: (() => number) | undefined
  /** If undefined, no cluster is mirrored. */
  readonly mirrored?: MirroredClusters | undefined
  /** If undefined, responses do not report the oldest time. */
  readonly oldestIn?: EventApi['oldestIn']
}

const requestTimeoutMsDefault = 60_000
const watchMsMaxDefault = 3_600_000

/** The name that probes report while the service is missing. */
export function eventsServiceName(group: EventGroup): string {
  return `v1.${group.name}`
}

/** Serves everything under `/apis/<group>/v1/`, or under `/api/v1/` for the core group. */
export function eventsService(options: EventsServiceOptions): Service {
  const { storage, group, now = Date.now } = options
  const view = viewOf(group)
  const registry = new EventRegistry({
    storage,
    writes: options.writes,
    group,
    eventBytesMax: options.eventBytesMax,
    admission: options.admission,
    marksOf: options.marksOf,
    servedVersions: options.servedVersions ?? [coreGroup.apiVersion],
  })
  const api: EventApi = {
    group,
    view,
    storage,
    registry,
    lister: new EventLister(storage, registry.names),
    collectionDelete: new CollectionDelete(
      registry,
      options.removalSemaphore ?? removalSemaphore(),
    ),
    encoders: new EventEncoders(view, now),
    wildcardEncoders: new EventEncoders(view, now, true),
    tableOrder: 'oldest',
    runCache: options.runCache ?? new EncodedRunCache(),
    requestTimeoutMs: options.requestTimeoutMs ?? requestTimeoutMsDefault,
    accessChecks: options.accessChecks,
    mirrored: options.mirrored,
    oldestIn: options.oldestIn,
    watchMsMax: options.watchMsMax ?? watchMsMaxDefault,
    now,
    selectors: new SharedSelectors(),
  }
  const prefix = group.name === '' ? '/api/v1/' : `/apis/${group.apiVersion}/`
  return {
    name: eventsServiceName(group),
    isOpenToHost: false,
    paths: [],
    resource: { group: group.name, name: 'events' },
    find: eventsBelow(prefix, endpointsOf(api), options.mirrored),
  }
}

/** Finds the handler for targets below a prefix: a verb on events, or otherwise a 404. */
export function eventsBelow(
  prefix: string,
  endpoints: EventEndpoints,
  mirrored?: MirroredClusters,
): Service['find'] {
  const execute = executor(endpoints, mirrored)
  return (target) => {
    if (!target.path.startsWith(prefix)) return undefined
    if (!isOfEvents(target)) return unknownPathHandler
    return (request, caller) => compressed(request, execute(request, target, caller))
  }
}

/** One endpoint per verb, under the verb's name in permissions. */
export interface EventEndpoints {
  readonly get: Endpoint<OneEvent>
  readonly list: Endpoint
  readonly watch: Endpoint
  readonly create: Endpoint<EventCollection>
  readonly update: Endpoint<OneEvent>
  readonly patch: Endpoint<OneEvent>
  readonly delete: Endpoint<OneEvent>
  readonly deletecollection: Endpoint<EventCollection>
}

function endpointsOf(api: EventApi): EventEndpoints {
  return {
    get: inTime(getEvent(api)),
    list: inTime(listEvents(api)),
    watch: watchEvents(api),
    create: inTime(createEvent(api)),
    update: inTime(updateEvent(api)),
    patch: inTime(patchEvent(api)),
    delete: inTime(deleteEvent(api)),
    deletecollection: inTime(deleteEvents(api)),
  }
}

/** Executes the authorised verb on the authorised place. Any other combination is a 405. */
function executor(endpoints: EventEndpoints, mirrored: MirroredClusters | undefined): Endpoint {
  return (request, target, caller) => {
    // HEAD is authorised as a read but not served.
    if (request.method === 'HEAD') throw methodNotAllowed()
    checkCluster(target, mirrored)
    switch (target.verb) {
      case 'list':
        return endpoints.list(request, target, caller)
      case 'watch':
        // On a watch path every method is authorised as a watch; only GET is served.
        if (request.method !== 'GET') throw methodNotAllowed()
        return endpoints.watch(request, target, caller)
      case 'create':
      case 'deletecollection':
        if (!isAt(target, 'collection')) throw methodNotAllowed()
        return endpoints[target.verb](request, target, caller)
      case 'get':
      case 'update':
      case 'patch':
      case 'delete':
        if (!isAt(target, 'object')) throw methodNotAllowed()
        return endpoints[target.verb](request, target, caller)
      default:
        throw methodNotAllowed()
    }
  }
}

/** Throws when the verb is impossible in the cluster of the target. */
function checkCluster(
  { cluster, verb }: EventTarget,
  mirrored: MirroredClusters | undefined,
): void {
  if (CHANGES.has(verb) && mirrored?.isMirrored(cluster) === true) throw isMirrored(cluster)
  // A name may exist in several clusters.
  if (cluster === ALL_CLUSTERS && !READ_ALL.has(verb)) throw methodNotAllowed()
}

/** Verbs that would make a mirrored event differ from its origin. Events can still be deleted. */
const CHANGES: ReadonlySet<string> = new Set(['create', 'update', 'patch'])

/** Verbs on the events of all clusters. */
const READ_ALL: ReadonlySet<string> = new Set(['list', 'watch'])

function isOfEvents(target: Target): target is EventTarget {
  if (!target.isResource || target.resource !== 'events') return false
  return target.place !== undefined && target.place.kind !== 'unnamespaced'
}

function isAt<Kind extends EventPlace['kind']>(
  target: EventTarget,
  kind: Kind,
): target is EventTarget<Extract<EventPlace, { readonly kind: Kind }>> {
  return target.place.kind === kind
}
