import type { EtcdClient } from '../etcd/client.ts'
import { type Clock, monotonicClock } from '../lib/clock.ts'
import { formatDuration } from '../lib/duration.ts'
import type { Log } from '../lib/log.ts'
import { controlKey, EventKeys, foreignRanges } from '../storage/keys.ts'
import type { EventKey, EventStorage, StoredEvent } from '../storage/storage.ts'
import { AgeRecord } from './age-record.ts'
import { Compactor } from './compactor.ts'
import { dueTime, StorageFeed } from './due-feed.ts'
import type { KnownHistory } from './known-history.ts'
import { Leadership, type Term } from './leadership.ts'
import type { RetentionPolicy } from './policy.ts'
import { readEveryMs, SteadyClock } from './steady-clock.ts'
import { Sweeper } from './sweeper.ts'
import { Timeline } from './timeline.ts'

/** Notes are taken so often that their distance does not matter to what they are used for. */
const notesPerPeriod = 20
const noteEveryMsMin = 250
const noteEveryMsMax = 10_000
/** Ages beyond this many of the longest lifetime are not told apart, so that notes stay few. */
const horizonLifetimes = 2
/** Each time a few kilobytes are written to etcd. */
const recordEveryMsMin = 1_000

export interface RetentionOptions {
  readonly client: EtcdClient
  /** Where events are deleted, and where what is due is learned: best one that reads from memory. */
  readonly storage: EventStorage
  /** What memory believes to be there, where there is a memory: saves some reads. */
  readonly recall?: ((key: EventKey) => StoredEvent | undefined) | undefined
  /** Events that cannot be read: they go as well when their time is up. */
  readonly damaged?: (() => Iterable<StoredEvent>) | undefined
  /** As for events; see `controlKey`. */
  readonly prefix: string
  /** That of memory. Without one, etcd is believed never to be restored from a snapshot. */
  readonly history?:
    | (KnownHistory & {
        /** Whether every connection there is leads to it; finds out if that is not known. */
        isVerified(): boolean
      })
    | undefined
  /** A name that tells this replica from the others to whoever looks into etcd. */
  readonly replica: string
  readonly policy: RetentionPolicy
  /** 0: never. */
  readonly compactionIntervalMs: number
  readonly log: Log
  readonly leaseTtlSeconds?: number | undefined
  readonly clock?: Clock | undefined
  readonly wallTime?: (() => number) | undefined
}

/** How retention is doing, for metrics. Counts are this replica's own, since its start. */
export interface RetentionStatus {
  /** Whether it was elected and knows what has to go: one that cannot read the record does nothing yet. */
  readonly isLeader: boolean
  /** Whether it sweeps without having been elected, as nobody can be; others may do so too. */
  readonly isStandingIn: boolean
  /** How often it has come to lead. */
  readonly termCount: number
  readonly sweptCount: number
  /** For how long the event most overdue should have been gone. Undefined where nobody looks. */
  readonly sweepLagMs: number | undefined
  readonly waitingCount: number
  readonly compactionCount: number
  readonly compactedRevision: number
  /** How far its wall clock is ahead of the sweeper's; undefined when that is not known. */
  readonly clockSkewMs: number | undefined
  /** By how much longer than due it may keep events now, for want of proof that they are due. */
  readonly unprovedMs: number
}

/**
 * What leaves, when, and who sees to it: every replica stands ready, one of them sweeps and
 * compacts. Should nobody be electable for want of space in etcd, all of them do.
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
  /** It is known what has to go when. */
  #hasBegun = false
  /** Ends what is being done when everything is forgotten. */
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
      // A lease is over when it is over, also for a process that was stopped meanwhile.
      clock: processClock,
      log,
      leaseTtlSeconds: options.leaseTtlSeconds,
      settings: settingsOf(options),
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

  /** The term of this replica, if it is the one that sweeps. */
  get term(): Term | undefined {
    return this.#leadership.term
  }

  get isLeader(): boolean {
    return this.term !== undefined
  }

  get status(): RetentionStatus {
    const isLeader = this.isLeader && this.#hasBegun
    const isStandingIn = this.#leadership.isStandingIn && this.#hasBegun
    return {
      isLeader,
      isStandingIn,
      termCount: this.#leadership.termCount,
      sweptCount: this.#sweeper.sweptCount,
      sweepLagMs: isLeader || isStandingIn ? this.#sweeper.lagMs : undefined,
      waitingCount: this.#sweeper.waitingCount,
      compactionCount: this.#compactor.count,
      compactedRevision: this.#compactor.compactedRevision,
      clockSkewMs: this.#record.clockSkewMs,
      unprovedMs: this.#isUnproved ? this.#record.unprovedMs : 0,
    }
  }

  /** After a lifetime, all that was there when sweeping began has gone. */
  get #isUnproved(): boolean {
    return this.#clock.now() < this.#begunAt + this.#options.policy.longestMs
  }

  /**
   * Does its part until aborted, then ends what it is doing and lets another replica take over.
   * Storage and client must stay open until this resolves. An etcd that is down is waited for;
   * rejects on a bug only.
   */
  async run(signal: AbortSignal): Promise<void> {
    const periods = this.#periodsMs()
    // Nothing ever goes: there is nothing to be elected for.
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
   * Memory was read anew, as nothing proved that etcd is still in the history that memory was of. What is
   * known about ages may be about another one, so it is forgotten, and the work begins again with what
   * the record in etcd says.
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
    // First: what is queued to be swept, and when, is decided by what is known now.
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

/** As the flags have them. */
function settingsOf({ policy, compactionIntervalMs }: RetentionOptions): string {
  const { shortestMs } = policy
  const ttl = shortestMs === undefined ? 'never' : formatDuration(shortestMs)
  return `--event-ttl=${ttl} --etcd-compaction-interval=${formatDuration(compactionIntervalMs)}`
}
