import { coreGroup, type EventGroup } from '../api/event-groups.ts'
import { methodNotAllowed, unknownPath } from '../api/status.ts'
import { EventForms } from '../codec/event-forms.ts'
import { viewOf } from '../codec/event-view.ts'
import { KeptEntries } from '../codec/kept-entries.ts'
import type { AccessChecks } from '../gate/access-checks.ts'
import type { EventLimits } from '../gate/limits/event-limits.ts'
import type { Request } from '../http/exchange.ts'
import { EventRemover, removalTurns } from '../registry/event-remover.ts'
import { SharedSelectors } from '../registry/event-selector.ts'
import { EventLister } from '../registry/listing.ts'
import { EventRegistry } from '../registry/registry.ts'
import type { Turns } from '../registry/turns.ts'
import type { WatchedStorage } from '../storage/storage.ts'
import { compressed } from './compress.ts'
import { createEvent } from './create.ts'
import { deleteEvent } from './delete.ts'
import { deleteEvents } from './delete-collection.ts'
import type { Endpoint, EventApi, EventCollection, OneEvent } from './event-api.ts'
import { type EventPath, parseEventPath } from './event-routes.ts'
import { getEvent } from './get.ts'
import { listEvents } from './list.ts'
import { wantsWatch } from './list-options.ts'
import { patchEvent } from './patch.ts'
import type { Service, ServiceHandler } from './services.ts'
import { inTime } from './timeout.ts'
import { updateEvent } from './update.ts'
import { watchEvents } from './watch.ts'

export interface EventsServiceOptions {
  readonly storage: WatchedStorage
  /** Under which they are served. */
  readonly group: EventGroup
  /** All in which they are; besides this one core/v1 unless told. */
  readonly servedVersions?: readonly string[] | undefined
  /** How fast events may come; undefined when nobody minds. */
  readonly eventLimits?: Pick<EventLimits, 'take'> | undefined
  readonly eventBytesMax?: number | undefined
  /** For those who delete collections, whatever the group. */
  readonly removalTurns?: Turns | undefined
  /** Likewise, for those who list: it is one memory, whatever the group. */
  readonly kept?: KeptEntries | undefined
  readonly requestTimeoutMs?: number | undefined
  readonly accessChecks?: Pick<AccessChecks, 'add'> | undefined
  readonly watchMsMax?: number | undefined
}

const requestTimeoutMsDefault = 60_000
const watchMsMaxDefault = 3_600_000

type Methods<Path extends EventPath> = Readonly<Record<string, Endpoint<Path>>>

/** As it is told in the probes while it is missing. */
export function eventsServiceName(group: EventGroup): string {
  return `v1.${group.name}`
}

/** Everything under `/apis/<group>/v1/`, or under `/api/v1/` for the group without a name. */
export function eventsService(options: EventsServiceOptions): Service {
  const { storage, group, eventLimits } = options
  const view = viewOf(group)
  const registry = new EventRegistry({
    storage,
    group,
    eventBytesMax: options.eventBytesMax,
    servedVersions: options.servedVersions ?? [coreGroup.apiVersion],
  })
  const api: EventApi = {
    group,
    view,
    storage,
    registry,
    lister: new EventLister(storage, registry.names),
    remover: new EventRemover(registry, options.removalTurns ?? removalTurns()),
    forms: new EventForms(view, Date.now),
    kept: options.kept ?? new KeptEntries(),
    eventLimits,
    requestTimeoutMs: options.requestTimeoutMs ?? requestTimeoutMsDefault,
    accessChecks: options.accessChecks,
    watchMsMax: options.watchMsMax ?? watchMsMaxDefault,
    selectors: new SharedSelectors(),
  }
  const prefix = group.name === '' ? '/api/v1/' : `/apis/${group.apiVersion}/`
  const endpoints = endpointsOf(api)
  return {
    name: eventsServiceName(group),
    isOpenToHost: false,
    find: (path) => {
      if (!path.startsWith(prefix)) return undefined
      const target = parseEventPath(path.slice(prefix.length))
      if (target === undefined) return nowhere
      return async (request, caller) =>
        compressed(request, await endpoints(request, target, caller))
    },
  }
}

/** Which verb is meant by a method on a path. */
function endpointsOf(api: EventApi): Endpoint {
  const watch = watchEvents(api)
  const list = inTime(listEvents(api))
  const listOrWatch: Endpoint = (request, path, caller) => {
    return wantsWatch(request.query) ? watch(request, path, caller) : list(request, path, caller)
  }
  const everything: Methods<EventPath> = { GET: listOrWatch }
  const watchPaths: Methods<EventPath> = { GET: watch }
  const collection: Methods<EventCollection> = {
    GET: listOrWatch,
    POST: inTime(createEvent(api)),
    DELETE: inTime(deleteEvents(api)),
  }
  const event: Methods<OneEvent> = {
    GET: inTime(getEvent(api)),
    PUT: inTime(updateEvent(api)),
    PATCH: inTime(patchEvent(api)),
    DELETE: inTime(deleteEvent(api)),
  }
  return (request, path, caller) => {
    if (path.isWatchPath) return methodOf(watchPaths, request)(request, path, caller)
    switch (path.kind) {
      case 'everything':
        return methodOf(everything, request)(request, path, caller)
      case 'collection':
        return methodOf(collection, request)(request, path, caller)
      case 'event':
        return methodOf(event, request)(request, path, caller)
    }
  }
}

function methodOf<Path extends EventPath>(
  methods: Methods<Path>,
  { method }: Request,
): Endpoint<Path> {
  const endpoint = Object.hasOwn(methods, method) ? methods[method] : undefined
  if (endpoint === undefined) throw methodNotAllowed()
  return endpoint
}

const nowhere: ServiceHandler = async () => {
  throw unknownPath()
}
