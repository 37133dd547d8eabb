/**
 * What the sweeper knows about ages, kept in etcd for the one that comes after it.
 *
 * A replica that has just been started knows from its own timeline nothing about events that are older
 * than itself. So the sweeper writes its notes into one key every few seconds, not as times, for which
 * there is no clock that all could trust, but as ages: "when this was written, revision 4711 had been
 * there for 90 s". Who reads it later may count those 90 s, and whatever has provably passed since.
 *
 * What has passed since is told by etcd. The sweeper keeps a lease alive for no other purpose, and the
 * time to live that is left of it tells how long ago that was last done. etcd counts that by its own
 * monotonic clock; a restart or a new leader of etcd starts it anew, which makes the answer smaller, never
 * greater. A lease that is gone proves nothing. Time of which nobody has a proof is not counted: after an
 * outage of all replicas and of etcd, events stay longer rather than going early.
 *
 * Wall clocks are compared here too, but only to tell the operator that they disagree.
 */
import type { EtcdClient, KeyValue } from '../etcd/client.ts'
import { EtcdError } from '../etcd/errors.ts'
import { pause } from '../lib/abort.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { markValue } from '../storage/keys.ts'
import { type AgeNotes, decodeAges, encodeAges } from './age-notes.ts'
import { connectionMaxFor, type KnownHistory } from './known-history.ts'
import type { Term } from './leadership.ts'
import type { Timeline } from './timeline.ts'

/** Much longer than replicas are ever all away at once, so that it is still there to be asked. */
const stopwatchTtlSeconds = 30 * 24 * 3600
const callTimeoutMs = 5_000
const retryMs = 500
/** A difference of wall clocks that is not worth a warning. */
const skewToleratedMs = 10_000
const warnEveryMs = 60_000
/** etcd keeps longer histories than this, whoever compacts it. */
const markEveryMsDefault = 30_000

export interface AgeRecordOptions {
  readonly client: Pick<EtcdClient, 'range' | 'txn' | 'grantLease' | 'keepLeaseAlive' | 'leaseTtl'>
  readonly key: string
  /** That of the leader: only under its term the record is written. */
  readonly leaderKey: string
  readonly replica: string
  /** Of the mark by which histories are recognised: it is renewed with the record now and then. */
  readonly markKey?: Buffer | undefined
  readonly markEveryMs?: number | undefined
  /** Without one, every connection leads to the history that the timeline is about. */
  readonly history?: KnownHistory | undefined
  readonly timeline: Pick<Timeline, 'learn' | 'summary'>
  /** The one that the timeline goes by. */
  readonly clock: Clock
  /** Milliseconds since 1970. */
  readonly wallTime: () => number
  readonly log: Log
}

/** The record as this replica last saw it. */
interface Sight {
  readonly modRevision: number
  readonly createRevision: number
  readonly ages: AgeNotes | undefined
  /** By our clock: it was written at this time or earlier, and (if that is known) not much before. */
  readonly writtenBy: number
  readonly writtenAfter: number | undefined
}

/** The lease by which etcd tells how long ago the record was written, kept alive by us. */
interface Stopwatch {
  readonly lease: bigint
  /** By our clock, a moment not later than the last renewal. */
  readonly renewedAt: number
}

export class AgeRecord {
  readonly #options: AgeRecordOptions
  readonly #key: Buffer
  readonly #leaderKey: Buffer
  #sight: Sight | undefined
  /** When the key was last looked at. */
  #lookedAt: number | undefined
  /** The lease to renew, if there is one. */
  #lease: bigint | undefined
  /** Not used by a record that was written: while writing fails it goes on counting from the last. */
  #stopwatch: Stopwatch | undefined
  /** That of this replica, once it knows what its predecessor knew. */
  #term: Term | undefined
  #markedAt = Number.NEGATIVE_INFINITY
  #unprovedMs = 0
  /** How often everything was forgotten. */
  #epoch = 0
  #warnedAt = Number.NEGATIVE_INFINITY

  constructor(options: AgeRecordOptions) {
    this.#options = options
    this.#key = Buffer.from(options.key)
    this.#leaderKey = Buffer.from(options.leaderKey)
  }

  /**
   * How far this replica's wall clock is ahead of the one of the replica that wrote the record, as far
   * as delays cannot explain it; undefined when that is not known.
   */
  get clockSkewMs(): number | undefined {
    const { ages, writtenBy, writtenAfter } = this.#sight ?? {}
    if (ages === undefined || writtenBy === undefined || writtenAfter === undefined) {
      return undefined
    }
    const now = this.#options.clock.now()
    const least = ages.wallTimeMs + now - writtenBy
    const most = ages.wallTimeMs + now - writtenAfter
    const wallTime = this.#options.wallTime()
    return wallTime - Math.min(Math.max(wallTime, least), most)
  }

  /**
   * When this replica last began to sweep: how much more time than is proved had passed since the
   * record was written, by its wall clock.
   */
  get unprovedMs(): number {
    return this.#unprovedMs
  }

  /** Reads the record, or writes it while this replica leads, again and again until aborted. */
  async run(options: { readonly everyMs: number; readonly signal: AbortSignal }): Promise<void> {
    const { everyMs, signal } = options
    while (!signal.aborted) {
      await pause(everyMs, signal)
      const term = this.#term
      const isLeader = term?.isHeld() === true
      this.#warnOfSkew()
      await this.#tried(() => (isLeader ? this.#write(term) : this.#look(signal)), signal)
    }
  }

  /**
   * Learns what there is to know before anything is swept or written under this term. False when the
   * term ended before that.
   */
  async begin(term: Term): Promise<boolean> {
    const { clock, log, key: etcdKey } = this.#options
    let warnedAt = Number.NEGATIVE_INFINITY
    // One of an earlier term: somebody else may have used the lease since.
    this.#stopwatch = undefined
    for (;;) {
      if (await this.#tried(() => this.#takeOver(term.signal), term.signal)) break
      await pause(retryMs, term.signal)
      if (!term.isHeld()) return false
      if (clock.now() < warnedAt + warnEveryMs) continue
      warnedAt = clock.now()
      log.warn('Cannot sweep yet: the record of ages cannot be read', { etcdKey })
    }
    // A replica that was not elected could not write: etcd is full.
    if (term.lateMs === undefined) {
      await this.#tried(() => this.#write(term), term.signal)
      this.#term = term
    }
    return term.isHeld()
  }

  /** What is known may be about another history than the one that etcd is in. */
  forget(): void {
    this.#epoch++
    this.#sight = undefined
    this.#lookedAt = undefined
    this.#lease = undefined
    this.#stopwatch = undefined
    this.#term = undefined
  }

  async #tried(attempt: () => Promise<void>, signal: AbortSignal): Promise<boolean> {
    try {
      await attempt()
      return true
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error
      if (error.kind === 'outdated') this.#options.history?.verify()
      if (!signal.aborted) {
        this.#options.log.v(2, 'The record of ages was not read or written', { err: error })
      }
      return false
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { client, clock, timeline } = this.#options
    const askedAt = clock.now()
    const epoch = this.#epoch
    const { kvs } = await client.range({ key: this.#key }, { signal, timeoutMs: callTimeoutMs })
    this.#check(epoch)
    const before = this.#lookedAt
    this.#lookedAt = askedAt
    const [kv] = kvs
    if (kv === undefined) {
      this.#sight = undefined
      return
    }
    if (kv.modRevision === this.#sight?.modRevision) return
    const { createRevision, modRevision } = kv
    const ages = this.#decode(kv)
    const writtenBy = clock.now()
    // It was not there at the look before, so it was written since.
    const writtenAfter = before === undefined ? undefined : before - callTimeoutMs
    this.#sight = { createRevision, modRevision, ages, writtenBy, writtenAfter }
    if (ages !== undefined) timeline.learn(notesAt(ages, writtenBy))
  }

  #decode(kv: KeyValue): AgeNotes | undefined {
    const ages = decodeAges(kv)
    if (ages === undefined && kv.version > 1) {
      const { log, key: etcdKey } = this.#options
      log.warn('The record of ages in etcd is of no use: events are kept longer', { etcdKey })
    }
    return ages
  }

  async #takeOver(signal: AbortSignal): Promise<void> {
    const { client, clock, timeline } = this.#options
    await this.#look(signal)
    const sight = this.#sight
    if (sight?.ages === undefined) return
    const { ages } = sight
    const epoch = this.#epoch
    const lease = await client.leaseTtl(ages.lease, { signal, timeoutMs: callTimeoutMs })
    this.#check(epoch)
    const now = clock.now()
    const sinceRenewalMs = lease.ttlSeconds < 0 ? 0 : elapsedMs(lease)
    const writtenBy = Math.min(sight.writtenBy, now - (sinceRenewalMs - ages.renewedMsAgo))
    this.#sight = { ...sight, writtenBy }
    this.#lease = lease.ttlSeconds < 0 ? undefined : ages.lease
    timeline.learn(notesAt(ages, writtenBy))
    this.#compareClocks(ages, now - writtenBy, sight.writtenAfter === undefined)
  }

  /** What was asked for before everything was forgotten is not learned after it. */
  #check(epoch: number): void {
    if (epoch === this.#epoch) return
    throw new EtcdError({ kind: 'outdated', message: 'everything was forgotten meanwhile' })
  }

  /** Says why events stay, when the wall clock would have them go. */
  #compareClocks(ages: AgeNotes, provedMs: number, isFirstSight: boolean): void {
    const { wallTime, log } = this.#options
    const claimedMs = wallTime() - ages.wallTimeMs
    const unprovedMs = claimedMs - provedMs
    this.#unprovedMs = isFirstSight && unprovedMs > skewToleratedMs ? unprovedMs : 0
    if (!isFirstSight || Math.abs(unprovedMs) <= skewToleratedMs) return
    this.#warnedAt = this.#options.clock.now()
    log.warn(
      unprovedMs > 0
        ? 'By its wall clock more time has passed since the last sweep than can be proved; that time is not counted, events are kept longer. Check the clock, unless all replicas and etcd were down'
        : 'By its wall clock less time has passed since the last sweep than is proved; what is proved counts. Check the clock',
      {
        claimedSeconds: Math.round(claimedMs / 1000),
        provedSeconds: Math.round(provedMs / 1000),
        writer: ages.replica,
      },
    )
  }

  async #write(term: Term): Promise<void> {
    const { client, clock, history, replica, timeline, wallTime } = this.#options
    const { markKey, markEveryMs = markEveryMsDefault } = this.#options
    const epoch = this.#epoch
    const stopwatch = this.#stopwatch ?? (await this.#startStopwatch())
    this.#check(epoch)
    this.#stopwatch = stopwatch
    // Of the same moment as the notes.
    const connectionMax = connectionMaxFor(history)
    const createRevision = this.#sight?.createRevision
    const now = clock.now()
    // Now, as what the next record is compared with is the wall time of this one.
    this.#warnOfSkew()
    const isMarked = markKey === undefined || now < this.#markedAt + markEveryMs
    const ages: AgeNotes = {
      replica,
      createRevision,
      lease: stopwatch.lease,
      renewedMsAgo: now - stopwatch.renewedAt,
      wallTimeMs: wallTime(),
      // The lease counts from its renewal. It proves nothing about what was noted after it: our clock may
      // have stood still since, with the process or its machine.
      notes: timeline
        .summary()
        .filter(({ at }) => at <= stopwatch.renewedAt)
        .map(({ version, at }) => ({ version, ageMs: now - at })),
    }
    const { succeeded, revision } = await client.txn(
      {
        compare: [
          { key: this.#leaderKey, target: 'modRevision', to: term.revision },
          { key: this.#key, target: 'createRevision', to: createRevision ?? 0 },
        ],
        success: [
          { type: 'put', key: this.#key, value: encodeAges(ages) },
          ...(isMarked ? [] : [{ type: 'put' as const, key: markKey, value: markValue() }]),
        ],
      },
      { timeoutMs: callTimeoutMs, connectionMax },
    )
    this.#check(epoch)
    // Somebody has deleted or made the key: see what is there before the next attempt.
    if (!succeeded) return this.#look(term.signal)
    this.#stopwatch = undefined
    if (!isMarked) this.#markedAt = now
    this.#lookedAt = now
    this.#sight = {
      modRevision: revision,
      createRevision: createRevision ?? revision,
      ages,
      writtenBy: now,
      writtenAfter: now,
    }
    // Which creation it belongs to is part of the record, and known from the second time on.
    if (createRevision === undefined) await this.#write(term)
  }

  async #startStopwatch(): Promise<Stopwatch> {
    const { client, clock } = this.#options
    const options = { timeoutMs: callTimeoutMs }
    const renewedAt = clock.now()
    const lease = this.#lease
    if (lease !== undefined && (await client.keepLeaseAlive(lease, options)) > 0) {
      return { lease, renewedAt }
    }
    const epoch = this.#epoch
    const { id } = await client.grantLease(stopwatchTtlSeconds, options)
    this.#check(epoch)
    this.#lease = id
    return { lease: id, renewedAt }
  }

  #warnOfSkew(): void {
    const { clock, log, replica } = this.#options
    const skewMs = this.clockSkewMs ?? 0
    if (Math.abs(skewMs) <= skewToleratedMs) return
    if (clock.now() < this.#warnedAt + warnEveryMs) return
    this.#warnedAt = clock.now()
    const sweeper = this.#sight?.ages?.replica
    const fields = { aheadSeconds: Math.round(skewMs / 1000), sweeper }
    log.warn(
      sweeper === replica
        ? 'The wall clock of this replica has jumped; events expire in time all the same. Check the clock'
        : 'The wall clock of this replica is not that of the replica that sweeps; events expire in time all the same. Check both clocks',
      fields,
    )
  }
}

function notesAt(ages: AgeNotes, writtenBy: number) {
  return ages.notes.map(({ version, ageMs }) => ({ version, at: writtenBy - ageMs }))
}

/** Since it was last renewed, at least: what is left is cut down to whole seconds. */
function elapsedMs(lease: { readonly ttlSeconds: number; readonly grantedTtlSeconds: number }) {
  return Math.max(0, lease.grantedTtlSeconds - lease.ttlSeconds - 1) * 1000
}
