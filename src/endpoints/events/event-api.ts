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
import type { EventScope, ListOrder, ReadStorage } from '../../storage/storage.ts'

export interface MirroredClusters {
  isMirrored(cluster: string): boolean
  /** Warnings for readers of this cluster, or of all clusters: a mirror is stalled. */
  warnings(cluster: string): readonly string[]
}

/** The parts that reads need. Read-only objects other than events have only these. */
export interface ReadApi {
  readonly registry: Pick<EventRegistry, 'get' | 'names'>
  readonly lister: EventLister
  readonly storage: Pick<ReadStorage, 'watch' | 'currentVersion'>
  readonly encoders: EventEncoders
  /** Used for lists and watches of all clusters. */
  readonly wildcardEncoders: EventEncoders
  /** The order of tables, which people read. Other lists are sorted by key. */
  readonly tableOrder: ListOrder
  /** Encoded runs of long lists. */
  readonly runCache: EncodedRunCache
  /** Rechecks the access of running watches. Undefined when access is never revoked. */
  readonly accessChecks: Pick<AccessChecks, 'add'> | undefined
  readonly mirrored: MirroredClusters | undefined
  /** Returns when the oldest event of a scope was last seen, for a header of responses. */
  readonly oldestIn?:
    | ((scope: EventScope, lane: Lane) => number | undefined | Promise<number | undefined>)
    | undefined
  /** The longest lifetime of a watch. */
  readonly watchMsMax: number
  /** The wall clock, which durations in selectors are relative to. */
  readonly now: () => number
  readonly selectors: SharedSelectors
}

export interface EventApi extends ReadApi {
  /** The API group of the requests. */
  readonly group: EventGroup
  /** Defines how events are encoded in that group. */
  readonly view: EventView
  readonly registry: EventRegistry
  readonly collectionDelete: CollectionDelete
  /** The timeout of a request that is not cancelled when its client disconnects. */
  readonly requestTimeoutMs: number
}

/** The accounts that the writes of a request are charged to. */
export function writerOf({ user, sender }: Pick<Caller, 'user' | 'sender'>): Writer {
  const account = accountOf(user)
  return { account, payer: sender === undefined ? account : accountOf(sender) }
}

/** The encoders for a list or watch of this cluster, or of all. */
export function encodersFor(api: ReadApi, cluster: string): EventEncoders {
  return cluster === ALL_CLUSTERS ? api.wildcardEncoders : api.encoders
}

export type OneEvent = Extract<Place, { readonly kind: 'object' }>
/** One object that has no namespace. */
export type OneObject = Extract<Place, { readonly kind: 'unnamespaced' }>
/** The events of a namespace. */
export type EventCollection = Extract<Place, { readonly kind: 'collection' }>

/** A place of events, which always have a namespace. */
export type EventPlace = Exclude<Place, { readonly kind: 'unnamespaced' }>

/** A target that addresses events, or other objects that are read in the same way. */
export interface EventTarget<At extends Place = EventPlace> extends ResourceTarget {
  readonly place: At
}

/** Executes one verb on one kind of place. */
export type Endpoint<At extends Place = EventPlace> = (
  request: Request,
  target: EventTarget<At>,
  caller: Caller,
) => Promise<Response>
