import type { KnownHistory } from '../election/known-history.ts'
import { Leadership } from '../election/leadership.ts'
import type { Term } from '../election/term.ts'
import type { EtcdClient } from '../etcd/client.ts'
import { type Clock, monotonicClock } from '../lib/clock.ts'
import { formatDuration } from '../lib/go/duration.ts'
import type { Log } from '../lib/log/log.ts'
import { controlKey, EventKeys, foreignRanges } from '../storage/etcd/keys.ts'
import type { EventKey, EventStorage, StoredEvent } from '../storage/storage.ts'
import { AgeRecord } from './age-record.ts'
import { Compactor } from './compactor.ts'
import { dueTime, StorageFeed } from './due-feed.ts'
import type { RetentionPolicy } from './policy.ts'
import { readEveryMs, SteadyClock } from './steady-clock.ts'
import { Sweeper } from './sweeper.ts'
import { Timeline } from './timeline.ts'

/** The timeline takes this many notes per lifetime or interval, so that gaps hardly matter. */
const notesPerPeriod = 20
const noteEveryMsMin = 250
const noteEveryMsMax = 10_000
/** Ages beyond this many times the longest lifetime are not distinguished, to limit the notes. */
const horizonLifetimes = 2
/** Each record writes a few kilobytes to etcd. */
const recordEveryMsMin = 1_000

export interface RetentionOptions {
  readonly client: EtcdClient
  /** Where events are listed, watched and deleted: preferably one that reads from memory. */
  readonly storage: EventStorage
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
  #begunAt = Number.NEGATIVE_INFINITY
  /** The age record has been read, and work has begun. */
  #hasBegun = false
  /** Aborts the current work on `forget`. */
  #forgetting = new AbortController()

  constructor(options: RetentionOptions) {
    const { client, storage, prefix, replica, policy, history, log } = options
    this.#options = options
    const processClock = options.clock ?? monotonicClock
    this.#clock = new SteadyClock(processClock)
    const clock = this.#clock
    const leaderKey = controlKey(prefix, 'sweeper')
    const longestMs = Math.max(policy.longestMs, options.compactionIntervalMs)
    this.#timeline = new Timeline(clock, longestMs * horizonLifetimes)
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
    const due = dueTime(policy, this.#timeline)
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
        text: settingsOf(options),
        warning: 'The sweeping replica has different settings; give all replicas the same',
      },
    })
    this.#sweeper = new Sweeper({
      storage,
      recall: options.recall,
      damaged: options.damaged,
      isVerified: () => history === undefined || history.isVerified(),
      feed: new StorageFeed({ storage, dueTime: due, isUniform: policy.isUniform, log }),
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

  /** One lifetime after sweeping began, all events with unproved age are gone. */
  get #isUnproved(): boolean {
    return this.#clock.now() < this.#begunAt + this.#options.policy.longestMs
  }

  /**
   * Runs until aborted, then ends the current work and lets another replica take over. Storage and
   * client must stay open until this resolves. Waits while etcd is down; rejects on a bug only.
   */
  async run(signal: AbortSignal): Promise<void> {
    const periods = this.#periodsMs()
    // Nothing expires and nothing is compacted: no leader is needed.
    if (periods.length === 0) return
    const everyMs = Math.min(
      noteEveryMsMax,
      Math.max(noteEveryMsMin, Math.min(...periods) / notesPerPeriod),
    )
    const ending = new AbortController()
    const end = () => ending.abort()
    signal.addEventListener('abort', end)
    if (signal.aborted) end()
    const reading = setInterval(() => this.#clock.now(), readEveryMs)
    try {
      await Promise.all([
        this.#timeline.run(this.#options.storage, { everyMs, signal: ending.signal }).finally(end),
        this.#record
          .run({ everyMs: Math.max(everyMs, recordEveryMsMin), signal: ending.signal })
          .finally(end),
        this.#leadership.run((term) => this.#work(term), ending.signal).finally(end),
      ])
    } finally {
      clearInterval(reading)
      signal.removeEventListener('abort', end)
    }
  }

  #periodsMs(): readonly number[] {
    const { policy, compactionIntervalMs } = this.#options
    const { shortestMs } = policy
    return [
      ...(shortestMs === undefined ? [] : [shortestMs]),
      ...(compactionIntervalMs === 0 ? [] : [compactionIntervalMs]),
    ]
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
      const signal = AbortSignal.any([term.signal, this.#forgetting.signal])
      await this.#workUntilForgotten({
        signal,
        revision: term.revision,
        lateMs: term.lateMs,
        isHeld: () => !signal.aborted && term.isHeld(),
        get heldUntil() {
          return term.heldUntil
        },
      })
    }
  }

  async #workUntilForgotten(term: Term): Promise<void> {
    const { policy, compactionIntervalMs } = this.#options
    // First: the due times of all queued events are computed from what is known now.
    if (!(await this.#record.begin(term))) return
    this.#begunAt = this.#clock.now()
    this.#hasBegun = true
    await Promise.all([
      ...(policy.shortestMs === undefined ? [] : [this.#sweeper.run(term)]),
      ...(compactionIntervalMs === 0 ? [] : [this.#compactor.run(term)]),
    ]).finally(() => {
      this.#hasBegun = false
    })
  }
}

/** In the form of the flags. */
function settingsOf({ policy, compactionIntervalMs }: RetentionOptions): string {
  const { shortestMs } = policy
  const ttl = shortestMs === undefined ? 'never' : formatDuration(shortestMs)
  return `--event-ttl=${ttl} --etcd-compaction-interval=${formatDuration(compactionIntervalMs)}`
}
