import type { KnownHistory } from '../election/known-history.ts'
import { Leadership } from '../election/leadership.ts'
import type { Term } from '../election/term.ts'
import type { EtcdClient } from '../etcd/client.ts'
import { aborted } from '../lib/abort.ts'
import { type Clock, monotonicClock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import { controlKey, EventKeys, foreignRanges } from '../storage/etcd/keys.ts'
import type { EventKey, EventStorage, StoredEvent } from '../storage/storage.ts'
import { AgeRecord } from './age-record.ts'
import { Compactor } from './compactor.ts'
import { dueTime, StorageFeed } from './due-feed.ts'
import type { RetentionPolicy } from './policy.ts'
import { Schedule } from './schedule.ts'
import { readEveryMs, SteadyClock } from './steady-clock.ts'
import { Sweeper } from './sweeper.ts'
import { Timeline } from './timeline.ts'

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
  readonly sweptCount: number
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

/**
 * Deletes expired events and compacts etcd. Every replica takes part in the election, and the
 * leader does the work. While no leader can be elected because etcd is full, all replicas do it.
 */
export class Retention {
  readonly #options: RetentionOptions
  readonly #clock: Clock
  readonly #timeline: Timeline
  readonly #leadership: Leadership
  readonly #sweeper: Sweeper
  readonly #compactor: Compactor
  readonly #record: AgeRecord
  #schedule: Schedule
  /** Aborts when the policy is replaced. */
  #replacing = new AbortController()
  #begunAt = Number.NEGATIVE_INFINITY
  /** The age record has been read, and work has begun. */
  #hasBegun = false
  /** Aborts the current work on `forget`. */
  #forgetting = new AbortController()

  constructor(options: RetentionOptions) {
    const { client, storage, deletes = storage, prefix, replica, history, log } = options
    this.#options = options
    this.#schedule = new Schedule(options.policy, options.compactionIntervalMs)
    const processClock = options.clock ?? monotonicClock
    this.#clock = new SteadyClock(processClock)
    const clock = this.#clock
    const leaderKey = controlKey(prefix, 'sweeper')
    this.#timeline = new Timeline(clock, () => this.#schedule.horizonMs)
    this.#record = new AgeRecord({
      client,
      key: controlKey(prefix, 'ages'),
      leaderKey,
      replica,
      markKey: new EventKeys(prefix).mark,
      history,
      timeline: this.#timeline,
      clock,
      wallTime: options.wallTime ?? Date.now,
      log,
    })
    const due = dueTime(() => this.policy, this.#timeline)
    this.#leadership = new Leadership({
      client,
      key: leaderKey,
      replica,
      // Not the steady clock: a lease expires also while the process is stopped.
      clock: processClock,
      log,
      leaseTtlSeconds: options.leaseTtlSeconds,
      task: 'sweeps and compacts',
      worksWhenFull: true,
      settings: {
        text: this.#schedule.flags,
        warning: 'The sweeping replica has different settings; give all replicas the same',
      },
    })
    this.#sweeper = new Sweeper({
      storage: {
        get: (key, reading) => storage.get(key, reading),
        delete: (key, guard) => deletes.delete(key, guard),
      },
      recall: options.recall,
      damaged: options.damaged,
      isVerified: () => history === undefined || history.isVerified(),
      feed: new StorageFeed({
        storage,
        dueTime: due,
        isUniform: () => this.policy.isUniform,
        log,
      }),
      dueTime: due,
      clock,
      log,
    })
    this.#compactor = new Compactor({
      client,
      key: controlKey(prefix, 'compaction'),
      markKey: new EventKeys(prefix).mark,
      foreign: foreignRanges(prefix),
      leaderKey,
      replica,
      history,
      intervalMs: options.compactionIntervalMs,
      timeline: this.#timeline,
      clock,
      log,
    })
  }

  /** The term of this replica, if it is the leader. */
  get term(): Term | undefined {
    return this.#leadership.term
  }

  get isLeader(): boolean {
    return this.term !== undefined
  }

  get status(): RetentionStatus {
    const isLeader = this.isLeader && this.#hasBegun
    const isWorkingWithoutLeader = this.#leadership.isWorkingWithoutLeader && this.#hasBegun
    return {
      isLeader,
      isWorkingWithoutLeader,
      termCount: this.#leadership.termCount,
      sweptCount: this.#sweeper.sweptCount,
      sweepLagMs: isLeader || isWorkingWithoutLeader ? this.#sweeper.lagMs : undefined,
      waitingCount: this.#sweeper.waitingCount,
      compactionCount: this.#compactor.count,
      compactedRevision: this.#compactor.compactedRevision,
      clockSkewMs: this.#record.clockSkewMs,
      unprovedMs: this.#isUnproved ? this.#record.unprovedMs : 0,
    }
  }

  get policy(): RetentionPolicy {
    return this.#schedule.policy
  }

  /** Applies to stored events at once: the queue of the sweeper is filled again. */
  replacePolicy(policy: RetentionPolicy): void {
    this.#schedule = new Schedule(policy, this.#options.compactionIntervalMs)
    this.#replacing.abort()
    this.#replacing = new AbortController()
  }

  /** One lifetime after sweeping began, all events with unproved age are gone. */
  get #isUnproved(): boolean {
    return this.#clock.now() < this.#begunAt + this.policy.longestMs
  }

  /**
   * Runs until aborted, then ends the current work and lets another replica take over. Storage and
   * client must stay open until this resolves. Waits while etcd is down; rejects on a bug only.
   */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const until = AbortSignal.any([signal, this.#replacing.signal])
      if (this.#schedule.isIdle) await aborted(until)
      else await this.#runWhileNeeded(signal)
    }
  }

  /** Runs until aborted, or until the policy is replaced by one that leaves nothing to do. */
  async #runWhileNeeded(signal: AbortSignal): Promise<void> {
    const ending = new AbortController()
    const end = () => ending.abort()
    signal.addEventListener('abort', end)
    if (signal.aborted) end()
    const everyMs = () => this.#schedule.noteEveryMs
    const recordEveryMs = () => this.#schedule.recordEveryMs
    const reading = setInterval(() => this.#clock.now(), readEveryMs)
    try {
      await Promise.all([
        this.#timeline.run(this.#options.storage, { everyMs, signal: ending.signal }).finally(end),
        this.#record.run({ everyMs: recordEveryMs, signal: ending.signal }).finally(end),
        this.#leadership.run((term) => this.#work(term), ending.signal).finally(end),
        this.#untilUnneeded(ending.signal).finally(end),
      ])
    } finally {
      clearInterval(reading)
      signal.removeEventListener('abort', end)
    }
  }

  async #untilUnneeded(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !this.#schedule.isIdle) {
      await aborted(AbortSignal.any([signal, this.#replacing.signal]))
    }
  }

  /**
   * Called when the cache was reloaded because nothing proved that etcd is still in the same
   * history. What is known about ages may belong to another history: it is reset, and the work
   * begins again from the age record in etcd.
   */
  forget(): void {
    this.#timeline.forget()
    this.#record.forget()
    this.#compactor.forget()
    this.#forgetting.abort()
    this.#forgetting = new AbortController()
  }

  async #work(term: Term): Promise<void> {
    while (term.isHeld()) {
      await this.#workUntilForgotten(cutShort(term, this.#forgetting.signal))
    }
  }

  async #workUntilForgotten(term: Term): Promise<void> {
    const { compactionIntervalMs } = this.#options
    // First: the due times of all queued events are computed from what is known now.
    if (!(await this.#record.begin(term))) return
    this.#begunAt = this.#clock.now()
    this.#hasBegun = true
    await Promise.all([
      this.#sweep(term),
      ...(compactionIntervalMs === 0 ? [] : [this.#compactor.run(term)]),
    ]).finally(() => {
      this.#hasBegun = false
    })
  }

  /** Begins again, with an empty queue, whenever the policy is replaced. */
  async #sweep(term: Term): Promise<void> {
    while (term.isHeld()) {
      const underPolicy = cutShort(term, this.#replacing.signal)
      if (this.policy.shortestMs === undefined) await aborted(underPolicy.signal)
      else await this.#sweeper.run(underPolicy)
    }
  }
}

/** The same term, which also ends when the signal aborts. */
function cutShort(term: Term, by: AbortSignal): Term {
  const signal = AbortSignal.any([term.signal, by])
  return {
    signal,
    revision: term.revision,
    lateMs: term.lateMs,
    isHeld: () => !signal.aborted && term.isHeld(),
    get heldUntil() {
      return term.heldUntil
    },
  }
}
