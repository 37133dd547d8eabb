import type { Event } from '../../api/event.ts'
import type { EventGroup } from '../../api/event-groups.ts'
import type { EncodedRunCache } from '../../codec/encoders/encoded-run-cache.ts'
import type { EventEncoders } from '../../codec/encoders/event-encoders.ts'
import type { EventView } from '../../codec/encoders/event-shapes.ts'
import type { AccessChecks } from '../../gate/access-checks.ts'
import type { Caller } from '../../gate/gate.ts'
import type { EventLimits } from '../../gate/limits/event-limits.ts'
import type { Place, ResourceTarget } from '../../gate/target.ts'
import type { Request, Response } from '../../http/exchange.ts'
import type { CollectionDelete } from '../../registry/collection-delete.ts'
import type { SharedSelectors } from '../../registry/read/event-selector.ts'
import type { EventLister } from '../../registry/read/listing.ts'
import type { EventRegistry } from '../../registry/registry.ts'
import type { WatchedStorage } from '../../storage/storage.ts'

/** The parts that the endpoints of all verbs share. */
export interface EventApi {
  /** The API group of the requests. */
  readonly group: EventGroup
  /** How events are encoded in that group. */
  readonly view: EventView
  readonly registry: EventRegistry
  readonly lister: EventLister
  readonly collectionDelete: CollectionDelete
  readonly storage: Pick<WatchedStorage, 'watch' | 'currentVersion'>
  readonly encoders: EventEncoders
  /** Encoded runs of long lists. */
  readonly runCache: EncodedRunCache
  readonly eventLimits: Pick<EventLimits, 'take'> | undefined
  /** Rechecks the access of running watches; undefined when access is never revoked. */
  readonly accessChecks: Pick<AccessChecks, 'add'> | undefined
  /** The longest lifetime of a watch. */
  readonly watchMsMax: number
  /** The selectors of watches. */
  readonly selectors: SharedSelectors
  /** The timeout of a request that is not cancelled when its client disconnects. */
  readonly requestTimeoutMs: number
}

/** Counts a write against the caller's rate limits, once per request, also if it is retried. */
export function admitOnce(
  { eventLimits }: Pick<EventApi, 'eventLimits'>,
  { user, sender }: Caller,
): (event: Event, bytes: number) => void {
  let isCounted = false
  return (event, bytes) => {
    if (!isCounted) eventLimits?.take({ user, sender, event, bytes })
    isCounted = true
  }
}

/** One event. */
export type OneEvent = Extract<Place, { readonly kind: 'object' }>
/** The events of a namespace. */
export type EventCollection = Extract<Place, { readonly kind: 'collection' }>

/** A target whose path addresses events. */
export interface EventTarget<At extends Place = Place> extends ResourceTarget {
  readonly place: At
}

/** Executes one verb on one kind of place. */
export type Endpoint<At extends Place = Place> = (
  request: Request,
  target: EventTarget<At>,
  caller: Caller,
) => Promise<Response>
