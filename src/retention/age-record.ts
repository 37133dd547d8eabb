/**
 * The age record: what the sweeper knows about ages, stored in etcd for the next sweeper.
 *
 * The timeline of a replica that has just started proves nothing about events older than the
 * replica. So the sweeper writes its notes into one key every few seconds. It writes ages rather than
 * times, since there is no clock that all replicas can trust: "when this was written, revision 4711
 * was 90 s old". A later reader counts those 90 s plus the time proved since.
 *
 * etcd proves the time since. The sweeper keeps a lease alive for this purpose alone; the remaining
 * time to live of that lease shows how long ago it was last renewed, measured by etcd's monotonic
 * clock. A restart or a new leader of etcd restarts the measurement, which makes the result smaller,
 * never greater. A lease that no longer exists proves nothing. Unproved time is not counted: after an
 * outage of all replicas and of etcd, events expire late rather than early.
 *
 * The record also has the wall time of its writer; see wall-clock-check.ts.
 */

import { connectionMaxFor, type KnownHistory } from '../election/known-history.ts'
import type { Term } from '../election/term.ts'
import type { EtcdClient, KeyValue } from '../etcd/client.ts'
import { EtcdError } from '../etcd/errors.ts'
import { pause } from '../lib/abort.ts'
import { markValue } from '../storage/etcd/keys.ts'
import { type AgeNotes, decodeAges, encodeAges } from './age-notes.ts'
import type { Periodic, Timeline } from './timeline.ts'
import { type DatedAges, WallClockCheck, type WallClockCheckOptions } from './wall-clock-check.ts'

/** Much longer than any outage of all replicas, so that the lease still exists after it. */
const stopwatchTtlSeconds = 30 * 24 * 3600
const callTimeoutMs = 5_000
const retryMs = 500
const warnEveryMs = 60_000
/** Shorter than etcd's history, even if another program compacts it. */
const markEveryMsDefault = 30_000

export interface AgeRecordOptions extends WallClockCheckOptions {
  readonly client: Pick<EtcdClient, 'range' | 'txn' | 'grantLease' | 'keepLeaseAlive' | 'leaseTtl'>
  readonly key: string
  /** The leader's key: only the leader writes the record. */
  readonly leaderKey: string
  /** Key of the mark that identifies a history; rewritten with the record now and then. */
  readonly markKey?: Buffer | undefined
  readonly markEveryMs?: number | undefined
  /** Without it, every connection counts as leading to the timeline's history. */
  readonly history?: KnownHistory | undefined
  readonly timeline: Pick<Timeline, 'learn' | 'summary'>
}

/** The record as this replica last saw it. */
interface SeenRecord extends DatedAges {
  readonly modRevision: number
  readonly createRevision: number
}

/** The lease by which etcd measures how long ago the record was written. */
interface Stopwatch {
  readonly lease: bigint
  /** Time of the last renewal or earlier, by this replica's clock. */
  readonly renewedAt: number
}

export class AgeRecord {
  readonly #options: AgeRecordOptions
  readonly #key: Buffer
  readonly #leaderKey: Buffer
  readonly #wallClocks: WallClockCheck
  #seen: SeenRecord | undefined
  /** When the last read of the key began. */
  #readAt: number | undefined
  /** The lease to renew, if known. */
  #lease: bigint | undefined
  /** Started for the next record; while writes fail, it counts on from the same renewal. */
  #stopwatch: Stopwatch | undefined
  /** The term of this replica, once it has read its predecessor's record. */
  #term: Term | undefined
  #markedAt = Number.NEGATIVE_INFINITY
  /** Counts calls of `forget`. */
  #epoch = 0

  constructor(options: AgeRecordOptions) {
    this.#options = options
    this.#key = Buffer.from(options.key)
    this.#leaderKey = Buffer.from(options.leaderKey)
    this.#wallClocks = new WallClockCheck(options)
  }

  /**
   * How far the wall clock of this replica is ahead of the record writer's, beyond what delays can
   * explain; undefined when unknown.
   */
  get clockSkewMs(): number | undefined {
    return this.#wallClocks.skewMs(this.#seen)
  }

  /**
   * When this replica last began to sweep: the age of the record by the wall clock, minus its
   * proved age.
   */
  get unprovedMs(): number {
    return this.#wallClocks.unprovedMs
  }

  /** Periodically reads the record, or writes it while this replica leads, until aborted. */
  async run(options: Periodic): Promise<void> {
    const { everyMs, signal } = options
    while (!signal.aborted) {
      await pause(everyMs(), signal)
      const term = this.#term
      const isLeader = term?.isHeld() === true
      this.#wallClocks.warnOfSkew(this.#seen)
      await this.#attempt(() => (isLeader ? this.#write(term) : this.#read(signal)), signal)
    }
  }

  /**
   * Reads the predecessor's record; must be called before anything is swept or written under this
   * term. Resolves to false when the term ended first.
   */
  async begin(term: Term): Promise<boolean> {
    const { clock, log, key: etcdKey } = this.#options
    let warnedAt = Number.NEGATIVE_INFINITY
    // The stopwatch belongs to an earlier term; another replica may have renewed the lease since.
    this.#stopwatch = undefined
    for (;;) {
      if (await this.#attempt(() => this.#takeOver(term.signal), term.signal)) break
      await pause(retryMs, term.signal)
      if (!term.isHeld()) return false
      if (clock.now() < warnedAt + warnEveryMs) continue
      warnedAt = clock.now()
      log.warn('Cannot read the age record; sweeping waits for it', { etcdKey })
    }
    // A replica that works without an election cannot write: etcd is full.
    if (term.lateMs === undefined) {
      await this.#attempt(() => this.#write(term), term.signal)
      this.#term = term
    }
    return term.isHeld()
  }

  /** Discards everything known, which may belong to another history than etcd's current one. */
  forget(): void {
    this.#epoch++
    this.#seen = undefined
    this.#readAt = undefined
    this.#lease = undefined
    this.#stopwatch = undefined
    this.#term = undefined
  }

  async #attempt(work: () => Promise<void>, signal: AbortSignal): Promise<boolean> {
    try {
      await work()
      return true
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error
      if (error.kind === 'outdated') this.#options.history?.verify()
      if (!signal.aborted) {
        this.#options.log.v(2, 'Could not read or write the age record; will retry', { err: error })
      }
      return false
    }
  }

  async #read(signal: AbortSignal): Promise<void> {
    const { client, clock, timeline } = this.#options
    const requestedAt = clock.now()
    const epoch = this.#epoch
    const { kvs } = await client.range({ key: this.#key }, { signal, timeoutMs: callTimeoutMs })
    this.#check(epoch)
    const before = this.#readAt
    this.#readAt = requestedAt
    const [kv] = kvs
    if (kv === undefined) {
      this.#seen = undefined
      return
    }
    if (kv.modRevision === this.#seen?.modRevision) return
    const { createRevision, modRevision } = kv
    const ages = this.#decode(kv)
    const writtenBy = clock.now()
    // The read before did not find this version, so it was written after that.
    const writtenAfter = before === undefined ? undefined : before - callTimeoutMs
    this.#seen = { createRevision, modRevision, ages, writtenBy, writtenAfter }
    if (ages !== undefined) timeline.learn(notesAt(ages, writtenBy))
  }

  #decode(kv: KeyValue): AgeNotes | undefined {
    const ages = decodeAges(kv)
    if (ages === undefined && kv.version > 1) {
      const { log, key: etcdKey } = this.#options
      log.warn('The age record in etcd is invalid; events expire late', { etcdKey })
    }
    return ages
  }

  async #takeOver(signal: AbortSignal): Promise<void> {
    const { client, clock, timeline } = this.#options
    await this.#read(signal)
    const seen = this.#seen
    if (seen?.ages === undefined) return
    const { ages } = seen
    const epoch = this.#epoch
    const lease = await client.leaseTtl(ages.lease, { signal, timeoutMs: callTimeoutMs })
    this.#check(epoch)
    const now = clock.now()
    const sinceRenewalMs = lease.ttlSeconds < 0 ? 0 : elapsedMs(lease)
    const writtenBy = Math.min(seen.writtenBy, now - (sinceRenewalMs - ages.renewedMsAgo))
    this.#seen = { ...seen, writtenBy }
    this.#lease = lease.ttlSeconds < 0 ? undefined : ages.lease
    timeline.learn(notesAt(ages, writtenBy))
    this.#wallClocks.compare(ages, now - writtenBy, seen.writtenAfter === undefined)
  }

  /** Discards the response to a request that was sent before `forget`. */
  #check(epoch: number): void {
    if (epoch === this.#epoch) return
    throw new EtcdError({ kind: 'outdated', message: 'the age record was reset in the meantime' })
  }

  async #write(term: Term): Promise<void> {
    const { client, clock, history, replica, timeline, wallTime } = this.#options
    const { markKey, markEveryMs = markEveryMsDefault } = this.#options
    const epoch = this.#epoch
    const stopwatch = this.#stopwatch ?? (await this.#startStopwatch())
    this.#check(epoch)
    this.#stopwatch = stopwatch
    // Read at the same time as the notes.
    const connectionMax = connectionMaxFor(history)
    const createRevision = this.#seen?.createRevision
    const now = clock.now()
    // Must precede the write, which replaces the wall time that is compared.
    this.#wallClocks.warnOfSkew(this.#seen)
    const isMarked = markKey === undefined || now < this.#markedAt + markEveryMs
    const ages: AgeNotes = {
      replica,
      createRevision,
      lease: stopwatch.lease,
      renewedMsAgo: now - stopwatch.renewedAt,
      wallTimeMs: wallTime(),
      // The lease counts from its renewal. It proves nothing about later notes: this replica's
      // clock may have stopped since, with the process or its machine.
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
    // The term is over, or another client has created or deleted the key: read it again.
    if (!succeeded) return this.#read(term.signal)
    this.#stopwatch = undefined
    if (!isMarked) this.#markedAt = now
    this.#readAt = now
    this.#seen = {
      modRevision: revision,
      createRevision: createRevision ?? revision,
      ages,
      writtenBy: now,
      writtenAfter: now,
    }
    // The record contains its own create revision, which is known only after the first write.
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
}

function notesAt(ages: AgeNotes, writtenBy: number) {
  return ages.notes.map(({ version, ageMs }) => ({ version, at: writtenBy - ageMs }))
}

/** A lower bound: etcd truncates the remaining time to whole seconds. */
function elapsedMs(lease: { readonly ttlSeconds: number; readonly grantedTtlSeconds: number }) {
  return Math.max(0, lease.grantedTtlSeconds - lease.ttlSeconds - 1) * 1000
}
