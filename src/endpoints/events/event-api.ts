import type { EventGroup } from '../../api/event-groups.ts'
import type { EncodedRunCache } from '../../codec/encoders/encoded-run-cache.ts'
import type { EventEncoders } from '../../codec/encoders/event-encoders.ts'
import type { EventView } from '../../codec/encoders/event-shapes.ts'
import type { AccessChecks } from '../../gate/access-checks.ts'
import { ALL_CLUSTERS } from '../../gate/attributes.ts'
import type { Caller } from '../../gate/gate.ts'
import type { Place, ResourceTarget } from '../../gate/target.ts'
import { accountOf } from '../../gate/user.ts'
import type { Request, Response } from '../../http/exchange.ts'
import type { Lane } from '../../lib/run-queue.ts'
import type { Writer } from '../../registry/admission/write-admission.ts'
import type { CollectionDelete } from '../../registry/collection-delete.ts'
import type { SharedSelectors } from '../../registry/read/event-selector.ts'
import type { EventLister } from '../../registry/read/listing.ts'
import type { EventRegistry } from '../../registry/registry.ts'
import type { EventScope, ListOrder, WatchedStorage } from '../../storage/storage.ts'

/** What requests need to know of mirrored clusters. */
export interface MirroredClusters {
  isMirrored(cluster: string): boolean
  /** What a reader of this cluster, or of all clusters, must know: a mirror is stalled. */
  warnings(cluster: string): readonly string[]
}

/** The parts that reads need. Objects other than events that can only be read have these alone. */
export interface ReadApi {
  readonly registry: Pick<EventRegistry, 'get' | 'names'>
  readonly lister: EventLister
  readonly storage: Pick<WatchedStorage, 'watch' | 'currentVersion'>
  readonly encoders: EventEncoders
  /** For lists and watches of all clusters. */
  readonly wildcardEncoders: EventEncoders
  /** Of tables, which are for people. Other lists are sorted by key. */
  readonly tableOrder: ListOrder
  /** Encoded runs of long lists. */
  readonly runCache: EncodedRunCache
  /** Rechecks the access of running watches; undefined when access is never revoked. */
  readonly accessChecks: Pick<AccessChecks, 'add'> | undefined
  readonly mirrored: MirroredClusters | undefined
  /** When the oldest event of a scope was last seen, which responses tell. */
  readonly oldestIn?:
    | ((scope: EventScope, lane: Lane) => number | undefined | Promise<number | undefined>)
    | undefined
  /** The longest lifetime of a watch. */
  readonly watchMsMax: number
  /** The wall clock: durations in selectors are before it. */
  readonly now: () => number
  /** The selectors of watches. */
  readonly selectors: SharedSelectors
}

/** The parts that the endpoints of all verbs share. */
export interface EventApi extends ReadApi {
  /** The API group of the requests. */
  readonly group: EventGroup
  /** How events are encoded in that group. */
  readonly view: EventView
  readonly registry: EventRegistry
  readonly collectionDelete: CollectionDelete
  /** The timeout of a request that is not cancelled when its client disconnects. */
  readonly requestTimeoutMs: number
}

/** Whom the writes of one request are charged to. */
export function writerOf({ user, sender }: Pick<Caller, 'user' | 'sender'>): Writer {
  const account = accountOf(user)
  return { account, payer: sender === undefined ? account : accountOf(sender) }
}

/** The encoders for a list or watch of this cluster, or of all. */
export function encodersFor(api: ReadApi, cluster: string): EventEncoders {
  return cluster === ALL_CLUSTERS ? api.wildcardEncoders : api.encoders
}

/** One event. */
export type OneEvent = Extract<Place, { readonly kind: 'object' }>
/** One object that has no namespace. */
export type OneObject = Extract<Place, { readonly kind: 'unnamespaced' }>
/** The events of a namespace. */
export type EventCollection = Extract<Place, { readonly kind: 'collection' }>

/** Where events are: always in namespaces. */
export type EventPlace = Exclude<Place, { readonly kind: 'unnamespaced' }>

/** A target whose path addresses events, or other objects that are read in the same way. */
export interface EventTarget<At extends Place = EventPlace> extends ResourceTarget {
  readonly place: At
}

/** Executes one verb on one kind of place. */
export type Endpoint<At extends Place = EventPlace> = (
  request: Request,
  target: EventTarget<At>,
  caller: Caller,
) => Promise<Response>
