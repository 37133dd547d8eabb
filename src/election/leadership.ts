/**
 * Leader election through an etcd lease: one replica at a time does the work.
 *
 * There is one key. The replica that creates it, on a lease of its own, leads until the lease is
 * revoked or expires; the key is deleted with the lease, and the waiting replicas try to create it
 * again.
 *
 * A leader counts its term from before it requested the lease, or its renewal, by its own clock.
 * etcd begins to count later, so the old leader has ended its term by the time another replica can
 * create the key. That requires clocks that run at the same speed, not clocks that agree. A leader
 * that was paused (by a signal, by its machine) checks the clock before it begins another step. The
 * step it was in cannot be undone, so everything done under a term must be harmless when it arrives
 * late: a delete compares the version, a compaction never goes back, a mirror's writes compare the
 * leader's key.
 *
 * A full etcd rejects both lease and key, so no leader can be elected; it still accepts deletes and
 * compactions, which it needs most. Work that does not depend on a single leader (`worksWhenFull`) is
 * then done by every replica that cannot campaign, until a leader is elected again. Several replicas
 * may work at once, which is wasteful but harmless. Each delays its deletes by its own random time, so
 * that most find the work of the first one already done. Other work waits.
 */
import type { EtcdClient, KeyValue } from '../etcd/client.ts'
import { EtcdError } from '../etcd/errors.ts'
import { LinkedAbort, pause } from '../lib/abort.ts'
import { Backoff } from '../lib/backoff.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import type { Term } from './term.ts'

/** About how long no replica leads after a leader is killed. */
const leaseTtlSecondsDefault = 5
/** By how much two clocks may differ when they measure the same lease. */
const driftShare = 0.05
/** A renewal after a third of the term leaves time for two retries. */
const renewShare = 3
/** Short, since a shutdown waits for it, and the lease expires anyway. */
const revokeTimeoutMs = 2_000
/** A standby replica campaigns once the key has been free for this many lease times. */
const standbyLeases = 3
/** Longest term of a standby, so that a replica that has started since can take over. */
const standbyTermMsMax = 5 * 60_000
/** Upper bound, in lease times, of the random delay of work without a leader. */
const delayLeases = 2
const retryFirstMs = 100
const retryMostMs = 2_000

export interface LeadershipOptions {
  readonly client: Pick<
    EtcdClient,
    'range' | 'txn' | 'watch' | 'grantLease' | 'keepLeaseAlive' | 'revokeLease'
  >
  /** The leader's key. Its value is the replica's name, without spaces, and its settings. */
  readonly key: string
  readonly replica: string
  readonly clock: Clock
  readonly log: Log
  readonly leaseTtlSeconds?: number | undefined
  /** The leader's work as a predicate for log messages, such as `sweeps and compacts`. */
  readonly task: string
  /** Whether all replicas may work at once while etcd is full. Default false: the work waits. */
  readonly worksWhenFull?: boolean | undefined
  /** Whether it leads only while no other replica wants to, since it cannot do all of the work. */
  readonly isStandby?: boolean | undefined
  /** This replica's settings for the work, and the warning for when the leader's differ. */
  readonly settings?: { readonly text: string; readonly warning: string } | undefined
  /** Uniform in [0, 1); tests pass their own. */
  readonly random?: (() => number) | undefined
}

interface Lease {
  readonly id: bigint
  readonly revision: number
  heldUntil: number
}

export class Leadership {
  readonly #options: LeadershipOptions
  readonly #key: Buffer
  readonly #ttlSeconds: number
  #term: Term | undefined
  #termCount = 0
  #isWorkingWithoutLeader = false
  /** The leader's settings that this replica last warned about. */
  #warnedSettings: string | undefined

  constructor(options: LeadershipOptions) {
    this.#options = options
    this.#key = Buffer.from(options.key)
    this.#ttlSeconds = options.leaseTtlSeconds ?? leaseTtlSecondsDefault
  }

  /** The term of this replica, if it leads. */
  get term(): Term | undefined {
    return this.#term?.isHeld() === true ? this.#term : undefined
  }

  /** How often this replica has been elected. */
  get termCount(): number {
    return this.#termCount
  }

  /** Whether it works without an election because etcd is full. */
  get isWorkingWithoutLeader(): boolean {
    return this.#isWorkingWithoutLeader
  }

  /**
   * Campaigns until aborted, and runs `work` whenever this replica is elected, or (with
   * `worksWhenFull`) when no replica can be. `work` must end soon after its term. Resolves once the
   * work has ended and the lease is revoked. Rejects with the rejection of `work`.
   */
  async run(work: (term: Term) => Promise<void>, signal: AbortSignal): Promise<void> {
    const backoff = new Backoff({ firstMs: retryFirstMs, mostMs: retryMostMs })
    while (!signal.aborted) {
      const outcome = await this.#awaitElection(backoff, signal)
      const lease = outcome === 'full' ? await this.#workWithoutLeader(work, signal) : outcome
      if (lease === undefined) continue
      await this.#lead(lease, work, signal)
      await pause(retryFirstMs, signal)
    }
  }

  /**
   * Attempts an election once. Undefined when not elected; if another replica leads, waits until the
   * key is free.
   */
  async #awaitElection(backoff: Backoff, signal: AbortSignal): Promise<Lease | 'full' | undefined> {
    try {
      const outcome = await this.#tryElection(signal, (revision) =>
        this.#untilFree(revision, signal),
      )
      backoff.reset()
      return outcome === 'taken' ? undefined : outcome
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error
      if (signal.aborted) return undefined
      this.#options.log.v(2, 'Election attempt failed; will retry', { err: error })
      await pause(backoff.next(), signal)
      return undefined
    }
  }

  async #tryElection(
    signal: AbortSignal,
    onTaken?: (revision: number) => Promise<void>,
  ): Promise<Lease | 'taken' | 'full'> {
    if (await this.#isTaken(signal, onTaken)) return 'taken'
    if (this.#options.isStandby === true) {
      await pause(standbyLeases * this.#ttlSeconds * 1000, signal)
      if (signal.aborted || (await this.#isTaken(signal, onTaken))) return 'taken'
    }
    try {
      return (await this.#campaign(signal)) ?? 'taken'
    } catch (error) {
      const isFull = error instanceof EtcdError && error.kind === 'no-space'
      if (isFull && this.#options.worksWhenFull === true) return 'full'
      throw error
    }
  }

  async #isTaken(
    signal: AbortSignal,
    onTaken?: (revision: number) => Promise<void>,
  ): Promise<boolean> {
    const { kvs, revision } = await this.#options.client.range({ key: this.#key }, { signal })
    const [held] = kvs
    if (held === undefined || isFree(held)) return false
    this.#compareSettings(held)
    await onTaken?.(revision)
    return true
  }

  /** Works until aborted or until a leader is elected. Returns the lease if it is this replica. */
  async #workWithoutLeader(
    work: (term: Term) => Promise<void>,
    signal: AbortSignal,
  ): Promise<Lease | undefined> {
    const { task, log, random = Math.random } = this.#options
    using ending = new LinkedAbort(signal)
    const term: Term = {
      signal: ending.signal,
      // The mod revision of a key that does not exist.
      revision: 0,
      isHeld: () => !ending.signal.aborted,
      heldUntil: Number.POSITIVE_INFINITY,
      lateMs: Math.round(this.#ttlSeconds * 1000 * delayLeases * random()),
    }
    log.warn(`etcd is full, no leader can be elected: this replica ${task} without one`)
    this.#isWorkingWithoutLeader = true
    try {
      const [lease] = await Promise.all([
        this.#untilElection(ending.signal).finally(ending.abort),
        work(term).finally(ending.abort),
      ])
      return lease
    } finally {
      this.#isWorkingWithoutLeader = false
      log.info(`This replica no longer ${task} without an election`)
    }
  }

  async #untilElection(signal: AbortSignal): Promise<Lease | undefined> {
    const { log, random = Math.random } = this.#options
    while (!signal.aborted) {
      await pause(this.#ttlSeconds * 1000 * (0.5 + random() / 2), signal)
      if (signal.aborted) return undefined
      try {
        const outcome = await this.#tryElection(signal)
        if (outcome === 'taken') return undefined
        if (outcome !== 'full') return outcome
      } catch (error) {
        if (!(error instanceof EtcdError)) throw error
        // Another replica may lead by now; the work is still harmless.
        if (!signal.aborted) log.v(2, 'Election attempt failed; will retry', { err: error })
      }
    }
    return undefined
  }

  /** Each leader uses its own settings, so if they differ the work changes with the leader. */
  #compareSettings({ value }: KeyValue): void {
    const { settings, log } = this.#options
    const [, leader, there] = /^(\S*) (.*)$/s.exec(value.toString()) ?? []
    if (settings === undefined || there === undefined) return
    if (there === settings.text || there === this.#warnedSettings) return
    this.#warnedSettings = there
    log.warn(settings.warning, { leader, there, here: settings.text })
  }

  /** Waits until the key is deleted, but at most a lease time, in case the watch misses it. */
  async #untilFree(revision: number, signal: AbortSignal): Promise<void> {
    using ending = new LinkedAbort(signal)
    const timer = setTimeout(ending.abort, this.#ttlSeconds * 1000)
    try {
      const watch = this.#options.client.watch({
        key: this.#key,
        startRevision: revision + 1,
        signal: ending.signal,
      })
      for await (const { events } of watch) {
        if (events.some((event) => event.type === 'delete')) return
      }
    } finally {
      clearTimeout(timer)
    }
  }

  async #campaign(signal: AbortSignal): Promise<Lease | undefined> {
    const { client, clock, replica, settings } = this.#options
    const value = Buffer.from(settings === undefined ? replica : `${replica} ${settings.text}`)
    const requestedAt = clock.now()
    const { id, ttlSeconds } = await client.grantLease(this.#ttlSeconds, {
      signal,
      timeoutMs: this.#ttlSeconds * 1000,
    })
    let lease: Lease | undefined
    try {
      const { succeeded, revision } = await client.txn(
        {
          // True when the key does not exist, and when it was written by hand without a lease.
          compare: [{ key: this.#key, target: 'lease', to: 0n }],
          success: [{ type: 'put', key: this.#key, value, lease: id }],
        },
        { timeoutMs: ttlSeconds * 1000 },
      )
      if (succeeded) lease = { id, revision, heldUntil: requestedAt + termMs(ttlSeconds) }
    } finally {
      // Also when the outcome of the transaction is unknown.
      if (lease === undefined) await this.#revoke(id)
    }
    return lease
  }

  async #lead(
    lease: Lease,
    work: (term: Term) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, log, task } = this.#options
    using ending = new LinkedAbort(signal)
    const term: Term = {
      signal: ending.signal,
      revision: lease.revision,
      isHeld: () => !ending.signal.aborted && clock.now() < lease.heldUntil,
      get heldUntil() {
        return lease.heldUntil
      },
    }
    this.#term = term
    this.#termCount++
    log.info(`This replica ${task}`, { term: lease.revision })
    const renewing = this.#renew(lease, ending)
    const timer = this.#options.isStandby ? setTimeout(ending.abort, standbyTermMsMax) : undefined
    try {
      await work(term)
    } finally {
      clearTimeout(timer)
      ending.abort()
      this.#term = undefined
      await renewing
      await this.#revoke(lease.id)
      log.info(`This replica no longer ${task}`, { term: lease.revision })
    }
  }

  /** Renews the lease until the term is ended; ends the term when the lease is lost. */
  async #renew(lease: Lease, ending: LinkedAbort): Promise<void> {
    const { clock, log } = this.#options
    const { signal } = ending
    const termLeft = () => lease.heldUntil - clock.now()
    const everyMs = Math.max(0, termLeft()) / renewShare
    let waitMs = everyMs
    while (!signal.aborted) {
      await pause(Math.min(waitMs, Math.max(0, termLeft())), signal)
      if (signal.aborted) return
      const outcome = termLeft() > 0 ? await this.#renewOnce(lease, everyMs, signal) : 'lost'
      if (outcome === 'lost') {
        log.warn('This replica has lost its leader lease')
        ending.abort()
      }
      waitMs = outcome === 'renewed' ? everyMs : retryFirstMs
    }
  }

  async #renewOnce(
    lease: Lease,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<'renewed' | 'lost' | 'failed'> {
    const { client, clock, log } = this.#options
    const requestedAt = clock.now()
    const options = { signal, timeoutMs: Math.min(timeoutMs, lease.heldUntil - requestedAt) }
    try {
      const [ttlSeconds, { kvs }] = await Promise.all([
        client.keepLeaseAlive(lease.id, options),
        client.range({ key: this.#key }, options),
      ])
      // The key can be gone before the lease: an operator may have deleted it.
      if (ttlSeconds === 0 || kvs[0]?.lease !== lease.id) return 'lost'
      if (clock.now() >= lease.heldUntil) return 'lost'
      lease.heldUntil = Math.max(lease.heldUntil, requestedAt + termMs(ttlSeconds))
      return 'renewed'
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error
      if (!signal.aborted) log.v(2, 'Could not renew the leader lease; will retry', { err: error })
      return 'failed'
    }
  }

  /** Best effort; saves the next leader from waiting until the lease expires. */
  async #revoke(id: bigint): Promise<void> {
    try {
      await this.#options.client.revokeLease(id, { timeoutMs: revokeTimeoutMs })
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error
    }
  }
}

function isFree(kv: KeyValue): boolean {
  return kv.lease === 0n
}

function termMs(ttlSeconds: number): number {
  return ttlSeconds * 1000 * (1 - driftShare)
}
