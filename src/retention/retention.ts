import type { KnownHistory } from '../election/known-history.ts'
import { Leadership } from '../election/leadership.ts'
import { cutShort, type Term } from '../election/term.ts'
import type { EtcdClient } from '../etcd/client.ts'
import { aborted, LinkedAbort } from '../lib/abort.ts'
import { type Clock, monotonicClock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import { type Lane, RunQueue } from '../lib/run-queue.ts'
import { controlKey, EventKeys, foreignRanges } from '../storage/etcd/keys.ts'
import type { EventKey, EventStorage, StoredEvent } from '../storage/storage.ts'
import type { StoredSizes } from '../storage/stored-sizes.ts'
import { Account } from './account/account.ts'
import type { Totals } from './account/totals.ts'
import { AgeRecord } from './age-record.ts'
import type { ArchiveGate } from './archive-gate.ts'
import { Evictor } from './budgets/evictor.ts'
import { Compactor } from './compactor.ts'
import { dueTime, StorageFeed } from './due-feed.ts'
import type { RetentionPolicy } from './policy.ts'
import { Schedule } from './schedule.ts'
import { readEveryMs, SteadyClock } from './steady-clock.ts'
import { Sweeper } from './sweeper.ts'
import { Timeline } from './timeline.ts'

export interface RetentionOptions {
  readonly client: EtcdClient
  /** Preferably one that reads from memory. */
  readonly storage: Pick<EventStorage, 'get' | 'list' | 'watch' | 'currentVersion'>
  readonly deletes: Pick<EventStorage, 'delete'>
  /** Looks an event up in the cache, if there is one, which saves reads from etcd. */
  readonly recall?: ((key: EventKey) => StoredEvent | undefined) | undefined
  /** Events that cannot be decoded; they expire like all others. */
  readonly damaged?: (() => Iterable<StoredEvent>) | undefined
  /** Maximum number of concurrent deletes; set lower when each has to read from etcd first. */
  readonly deletesAtOnceMax?: number | undefined
  /** About how many entries the expiry queue retains, the earliest due. Default: all. */
  readonly dueEntriesMax?: number | undefined
  /** Whether this replica leads only while no other wants to; see `Leadership`. */
  readonly isStandby?: boolean | undefined
  /** Stored events and bytes. Budgets are not enforced without it. */
  readonly sizes?: StoredSizes | undefined
  /** Undefined: there is no archive, and expired events are deleted at once. */
  readonly archive?: ArchiveGate | undefined
  /** The etcd prefix that events are stored under; see `controlKey`. */
  readonly prefix: string
  /** The history that the cache follows. Without it, etcd is assumed never to be restored. */
  readonly history?:
    | (KnownHistory & {
        /** Whether the newest connection leads to this history. Starts a check if that is unknown. */
        isVerified(): boolean
      })
    | undefined
  /** A name for this replica, written to etcd for operators. */
  readonly replica: string
  /** The initial policy; see `replacePolicy`. */
  readonly policy: RetentionPolicy
  /** 0 disables compaction. */
  readonly compactionIntervalMs: number
  readonly log: Log
  /** Default: a lane of a separate run queue. */
  readonly lane?: Lane | undefined
  readonly leaseTtlSeconds?: number | undefined
  readonly clock?: Clock | undefined
  readonly wallTime?: (() => number) | undefined
}

/** Input of the metrics. Counters cover this process since its start. */
export interface RetentionStatus {
  /** Whether this replica is elected and has read the age record, so that it can sweep. */
  readonly isLeader: boolean
  /** Whether it sweeps although no election is possible; other replicas may do the same. */
  readonly isWorkingWithoutLeader: boolean
  /** Number of terms for which it was elected. */
  readonly termCount: number
  /** Deleted events: expired ones by rule, evicted ones by budget. */
  readonly deleted: Totals
  /** How long the most overdue event has been due. Undefined while this replica does not sweep. */
  readonly sweepLagMs: number | undefined
  readonly waitingCount: number
  readonly compactionCount: number
  readonly compactedRevision: number
  /** How far its wall clock is ahead of the sweeper's; undefined when unknown. */
  readonly clockSkewMs: number | undefined
  /** How late events may currently expire because part of their age is unproved. */
  readonly unprovedMs: number
}

/**
 * Deletes expired events, enforces budgets and compacts etcd. Every replica takes part in the
 * election, and the leader does the work. While no leader can be elected because etcd is full, all
 * replicas expire and compact.
 */
export class Retention {
  readonly #options: RetentionOptions
  readonly #clock: Clock
  readonly #timeline: Timeline
  readonly #leadership: Leadership
  readonly #lane: Lane
  readonly #sweeper: Sweeper
  /** Undefined without `sizes`. */
  readonly #evictor: Evictor | undefined
  readonly #compactor: Compactor
  readonly #record: AgeRecord
  readonly #account: Account
  #schedule: Schedule
  /** Aborts when the policy is replaced. */
  #replacing = new AbortController()
  #begunAt = Number.NEGATIVE_INFINITY
  /** The policy under which this term has deleted everything that was due. */
  #caughtUpWith: RetentionPolicy | undefined
  /** Whether the age record has been read and work has begun. */
  #hasBegun = false
  /** Aborts the current work on `forget`. */
  #forgetting = new AbortController()

  constructor(options: RetentionOptions) {
    const { client, prefix, replica, history, log } = options
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
    this.#account = new Account({
      client,
      key: controlKey(prefix, 'account'),
      leaderKey,
      replica,
      policy: () => this.policy.fingerprint,
      isStored: (cluster, namespace) => options.sizes?.of(cluster, namespace)?.events !== 0,
      clock,
      log,
    })
    this.#leadership = new Leadership({
      client,
      key: leaderKey,
      replica,
      // Not the steady clock: a lease also expires while the process is stopped.
      clock: processClock,
      log,
      leaseTtlSeconds: options.leaseTtlSeconds,
      task: 'sweeps and compacts',
      worksWhenFull: true,
      isStandby: options.isStandby,
      settings: {
        text: [
          this.#schedule.flags,
          ...(options.archive ? [`--history=${options.archive.name}`] : []),
        ].join(' '),
        warning: 'The sweeping replica has different settings; give all replicas the same',
      },
    })
    this.#lane = options.lane ?? new RunQueue().serverLane('retention')
    this.#sweeper = this.#createSweeper()
    this.#evictor = options.sizes && this.#createEvictor(options.sizes)
    this.#compactor = new Compactor({
      client,
      key: controlKey(prefix, 'compaction'),
      markKey: new EventKeys(prefix).mark,
      foreign: foreignRanges(prefix),
      leaderKey,
      replica,
      history,
      intervalMs: options.compactionIntervalMs,
      neededAfter: () => options.archive?.readAfter(),
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
      deleted: this.#account.own,
      sweepLagMs: isLeader || isWorkingWithoutLeader ? this.#sweeper.lagMs : undefined,
      waitingCount: this.#sweeper.waitingCount,
      compactionCount: this.#compactor.count,
      compactedRevision: this.#compactor.compactedRevision,
      clockSkewMs: this.#record.clockSkewMs,
      unprovedMs: this.#isUnproved ? this.#record.unprovedMs : 0,
    }
  }

  /** Deletes by all sweepers ever; a few seconds out of date on other replicas. */
  get totals(): Totals {
    return this.#account.totals
  }

  get policy(): RetentionPolicy {
    return this.#schedule.policy
  }

  /** Applies to stored events immediately: the sweeper refills its queue. */
  replacePolicy(policy: RetentionPolicy): void {
    this.#schedule = new Schedule(policy, this.#options.compactionIntervalMs)
    this.#replacing.abort()
    this.#replacing = new AbortController()
  }

  /** One lifetime after sweeping began, no event with an unproved age is left. */
  get #isUnproved(): boolean {
    return this.#clock.now() < this.#begunAt + this.policy.longestMs
  }

  /**
   * Runs until aborted, then ends the current work and lets another replica take over. Storage and
   * client must stay open until this resolves. Waits while etcd is down; rejects only on a bug.
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
    using ending = new LinkedAbort(signal)
    const end = ending.abort
    const everyMs = () => this.#schedule.noteEveryMs
    const recordEveryMs = () => this.#schedule.recordEveryMs
    const reading = setInterval(() => this.#clock.now(), readEveryMs)
    try {
      await Promise.all([
        this.#timeline.run(this.#options.storage, { everyMs, signal: ending.signal }).finally(end),
        this.#record.run({ everyMs: recordEveryMs, signal: ending.signal }).finally(end),
        this.#account.run(ending.signal).finally(end),
        this.#leadership.run((term) => this.#work(term), ending.signal).finally(end),
        this.#untilUnneeded(ending.signal).finally(end),
      ])
    } finally {
      clearInterval(reading)
    }
  }

  async #untilUnneeded(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !this.#schedule.isIdle) {
      await aborted(AbortSignal.any([signal, this.#replacing.signal]))
    }
  }

  /**
   * Called when the cache was reloaded because nothing proved that etcd is still in the same
   * history. Known ages may belong to another history, so they are discarded and the work starts
   * again from the age record in etcd.
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
    // Must come first: due times of queued events are computed from the ages known at that time.
    if (!(await this.#record.begin(term))) return
    this.#begunAt = this.#clock.now()
    this.#hasBegun = true
    this.#caughtUpWith = undefined
    const isElected = term.lateMs === undefined
    if (isElected) this.#account.begin(term)
    await Promise.all([
      this.#underEachPolicy(term, {
        isNeeded: () => this.policy.shortestMs !== undefined,
        work: (part) => this.#sweeper.run(part),
      }),
      // Without an election several replicas would evict at once. A full etcd does not grow anyway.
      this.#underEachPolicy(term, {
        isNeeded: () => isElected && this.#evictor !== undefined && this.policy.budgets.length > 0,
        work: async (part) => this.#evictor?.run(part),
      }),
      ...(compactionIntervalMs === 0 ? [] : [this.#compactor.run(term)]),
    ]).finally(() => {
      this.#hasBegun = false
    })
    await this.#account.end(term)
  }

  /** Restarts the work whenever the policy is replaced. */
  async #underEachPolicy(
    term: Term,
    { isNeeded, work }: { isNeeded: () => boolean; work: (part: Term) => Promise<void> },
  ): Promise<void> {
    while (term.isHeld()) {
      const part = cutShort(term, this.#replacing.signal)
      if (isNeeded()) await work(part)
      else await aborted(part.signal)
    }
  }

  #createSweeper(): Sweeper {
    const { storage, deletes, recall, damaged, log } = this.#options
    const due = dueTime(() => this.policy, this.#timeline)
    const isUniform = () => this.policy.isUniform
    return new Sweeper({
      storage: {
        get: (key, reading) => storage.get(key, reading),
        delete: (key, guard) => deletes.delete(key, guard),
      },
      recall,
      damaged,
      batchMax: this.#options.deletesAtOnceMax,
      isVerified: () => this.#isVerified,
      archive: this.#options.archive,
      feed: new StorageFeed({
        storage,
        dueTime: due,
        isUniform,
        lane: this.#lane,
        log,
        entriesMax: this.#options.dueEntriesMax,
      }),
      dueTime: due,
      onCaughtUp: () => {
        this.#caughtUpWith = this.policy
      },
      onDue: (event) => {
        const { name } = this.policy.ruleOf(event)
        return () => this.#account.expired(name)
      },
      clock: this.#clock,
      log,
    })
  }

  #createEvictor(sizes: StoredSizes): Evictor {
    const { storage, deletes, log } = this.#options
    return new Evictor({
      storage: {
        list: (scope, options) => storage.list(scope, options),
        delete: (key, guard) => deletes.delete(key, guard),
      },
      sizes,
      policy: () => this.policy,
      isReady: () => this.policy.shortestMs === undefined || this.#caughtUpWith === this.policy,
      isVerified: () => this.#isVerified,
      onEvicted: ({ key, version }, { name }) => {
        this.#account.evicted(name, key)
        this.#options.archive?.onDeleted(version, 'evicted')
      },
      clock: this.#clock,
      wallTime: this.#options.wallTime ?? Date.now,
      lane: this.#lane,
      log,
    })
  }

  get #isVerified(): boolean {
    const { history } = this.#options
    return history === undefined || history.isVerified()
  }
}
