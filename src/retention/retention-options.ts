import type { KnownHistory } from '../election/known-history.ts'
import type { EtcdClient } from '../etcd/client.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import type { Lane } from '../lib/run-queue.ts'
import type { EventKey, EventStorage, StoredEvent } from '../storage/storage.ts'
import type { StoredSizes } from '../storage/stored-sizes.ts'
import type { Totals } from './account/totals.ts'
import type { RetentionPolicy } from './policy.ts'

export interface RetentionOptions {
  readonly client: EtcdClient
  /** Where events are listed, watched and deleted: preferably one that reads from memory. */
  readonly storage: EventStorage
  /** Where all deletes go to, which are counted there; default: `storage`. */
  readonly deletes?: Pick<EventStorage, 'delete'> | undefined
  /** The event as memory has it, if there is a cache: saves some reads. */
  readonly recall?: ((key: EventKey) => StoredEvent | undefined) | undefined
  /** Events that cannot be read: they expire as well. */
  readonly damaged?: (() => Iterable<StoredEvent>) | undefined
  /** The most expired events that are deleted at once; fewer when each has to be read from etcd. */
  readonly deletesAtOnceMax?: number | undefined
  /** About how many events that expire are kept in mind, the earliest; default: all. */
  readonly dueEntriesMax?: number | undefined
  /** Whether it leads only while no other replica wants to; see `Leadership`. */
  readonly isStandby?: boolean | undefined
  /** How much is stored, for budgets; without it they are not enforced. */
  readonly sizes?: StoredSizes | undefined
  /** The etcd prefix, as for events; see `controlKey`. */
  readonly prefix: string
  /** The history of the cache. Undefined: etcd is assumed never to be restored from a snapshot. */
  readonly history?:
    | (KnownHistory & {
        /** Whether the newest connection leads to it; if not known, starts to verify it. */
        isVerified(): boolean
      })
    | undefined
  /** A name for this replica, written to etcd for operators. */
  readonly replica: string
  /** The first one; see `replacePolicy`. */
  readonly policy: RetentionPolicy
  /** 0: never. */
  readonly compactionIntervalMs: number
  readonly log: Log
  /** Default: in a queue of its own. */
  readonly lane?: Lane | undefined
  readonly leaseTtlSeconds?: number | undefined
  readonly clock?: Clock | undefined
  readonly wallTime?: (() => number) | undefined
}

/** For metrics. Counters are this replica's own, since its start. */
export interface RetentionStatus {
  /** Whether it was elected and has read the age record; before that it does not sweep. */
  readonly isLeader: boolean
  /** Whether it sweeps without an election because none is possible; others may do so too. */
  readonly isWorkingWithoutLeader: boolean
  /** How often it has been elected. */
  readonly termCount: number
  /** What it has deleted: expired events by rule, evicted events by budget. */
  readonly deleted: Totals
  /** How long the most overdue event has been due. Undefined while this replica does not sweep. */
  readonly sweepLagMs: number | undefined
  readonly waitingCount: number
  readonly compactionCount: number
  readonly compactedRevision: number
  /** How far its wall clock is ahead of the sweeper's; undefined when not known. */
  readonly clockSkewMs: number | undefined
  /** How much longer than due events may be kept now because their age is not proved. */
  readonly unprovedMs: number
}
