/**
 * One replica at a time does what must be done once.
 *
 * There is one key. Whoever manages to put it there, on a lease of its own, leads until the lease is
 * given back or runs out; with the lease goes the key, and those who wait try their luck.
 *
 * A leader counts its time from before it asked for the lease, or for its renewal, by its own clock:
 * etcd begins to count later, so by the time the key can be another's the old leader has stopped
 * believing. That takes clocks that run at the same speed, not clocks that agree. A leader that was
 * stopped in the middle of something (by a signal, by its machine) looks at the clock before it
 * begins anything else. What it had begun cannot be called back, so whatever is done under a term
 * must do no harm when it comes late: a delete names the version it is about, a compaction never
 * goes back.
 *
 * An etcd that is full takes neither lease nor key; see stand-in.ts for what becomes of the work.
 */
import type { EtcdClient, KeyValue } from '../etcd/client.ts'
import { EtcdError } from '../etcd/errors.ts'
import { pause } from '../lib/abort.ts'
import { Backoff } from '../lib/backoff.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { standIn } from './stand-in.ts'

/** After a leader is killed, nobody sweeps for about this long. */
export const leaseTtlSecondsDefault = 5
/** Two clocks may count the same lease this much apart. */
const driftShare = 0.05
/** A third of the term leaves time for two more attempts. */
const renewShare = 3
/** A shutdown waits for it, and the lease runs out anyway. */
const giveBackTimeoutMs = 2_000
const retryFirstMs = 100
const retryMostMs = 2_000

/** The time during which a replica leads. */
export interface Term {
  /** Aborts when it is over, or nearly. */
  readonly signal: AbortSignal
  /** Of the write that put the leader's key there: the key has it for as long as the term lasts. */
  readonly revision: number
  /** Whether it lasts, by the clock. Ask before every step. */
  isHeld(): boolean
  /** Until when it lasts if it is not renewed, by the clock. */
  readonly heldUntil: number
  /**
   * Of a replica that works without having been elected, as others may: by how much later than due
   * it begins. Undefined for the leader.
   */
  readonly lateMs?: number | undefined
}

export interface LeadershipOptions {
  readonly client: Pick<
    EtcdClient,
    'range' | 'txn' | 'watch' | 'grantLease' | 'keepLeaseAlive' | 'revokeLease'
  >
  /** The key that is fought for; its value names the replica, in one word. */
  readonly key: string
  readonly replica: string
  readonly clock: Clock
  readonly log: Log
  readonly leaseTtlSeconds?: number | undefined
  /** What it goes by when it leads. Stands behind its name, for the others to compare with. */
  readonly settings?: string | undefined
  /** Uniform in [0, 1); handed in by tests. */
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
  #isStandingIn = false
  /** Those of a leader that have been warned of. */
  #otherSettings: string | undefined

  constructor(options: LeadershipOptions) {
    this.#options = options
    this.#key = Buffer.from(options.key)
    this.#ttlSeconds = options.leaseTtlSeconds ?? leaseTtlSecondsDefault
  }

  /** The term of this replica, if it leads. */
  get term(): Term | undefined {
    return this.#term?.isHeld() === true ? this.#term : undefined
  }

  /** How often this replica has come to lead. */
  get termCount(): number {
    return this.#termCount
  }

  /** Whether it works without an election, as etcd is full. */
  get isStandingIn(): boolean {
    return this.#isStandingIn
  }

  /**
   * Stands for election until aborted, and does `work` whenever it is this replica's turn, or when
   * there can be no election. `work` must end soon after its term; only then, and once the key is
   * given back, this ends. Rejects with what `work` rejects with.
   */
  async run(work: (term: Term) => Promise<void>, signal: AbortSignal): Promise<void> {
    const backoff = new Backoff({ firstMs: retryFirstMs, mostMs: retryMostMs })
    while (!signal.aborted) {
      const outcome = await this.#await(backoff, signal)
      const lease = outcome === 'full' ? await this.#standIn(work, signal) : outcome
      if (lease === undefined) continue
      await this.#lead(lease, work, signal)
      await pause(retryFirstMs, signal)
    }
  }

  /** One attempt, once the key is free. Undefined when it came to nothing. */
  async #await(backoff: Backoff, signal: AbortSignal): Promise<Lease | 'full' | undefined> {
    try {
      const outcome = await this.#stand(signal, (revision) => this.#untilFree(revision, signal))
      backoff.reset()
      return outcome === 'taken' ? undefined : outcome
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error
      if (signal.aborted) return undefined
      this.#options.log.v(2, 'Cannot stand for election', { err: error })
      await pause(backoff.next(), signal)
      return undefined
    }
  }

  async #stand(
    signal: AbortSignal,
    onTaken?: (revision: number) => Promise<void>,
  ): Promise<Lease | 'taken' | 'full'> {
    const { kvs, revision } = await this.#options.client.range({ key: this.#key }, { signal })
    const [held] = kvs
    if (held !== undefined && !isFree(held)) {
      this.#compare(held)
      await onTaken?.(revision)
      return 'taken'
    }
    try {
      return (await this.#campaign(signal)) ?? 'taken'
    } catch (error) {
      if (error instanceof EtcdError && error.kind === 'no-space') return 'full'
      throw error
    }
  }

  async #standIn(
    work: (term: Term) => Promise<void>,
    signal: AbortSignal,
  ): Promise<Lease | undefined> {
    const { log, random = Math.random } = this.#options
    const ttlMs = this.#ttlSeconds * 1000
    this.#isStandingIn = true
    try {
      const stand = (ending: AbortSignal) => this.#stand(ending)
      return await standIn({ work, stand, ttlMs, random, log, signal })
    } finally {
      this.#isStandingIn = false
    }
  }

  /** Whoever leads next goes by its own: events would be kept now this long, now that. */
  #compare({ value }: KeyValue): void {
    const { settings: here, log } = this.#options
    const [, sweeper, there] = /^(\S*) (.*)$/s.exec(value.toString()) ?? []
    if (here === undefined || there === undefined) return
    if (there === here || there === this.#otherSettings) return
    this.#otherSettings = there
    const fields = { sweeper, there, here }
    log.warn('The replica that sweeps has other settings; give all replicas the same', fields)
  }

  /** Until the key is deleted; not for ever, in case that goes unnoticed. */
  async #untilFree(revision: number, signal: AbortSignal): Promise<void> {
    const ending = new AbortController()
    const end = () => ending.abort()
    const timer = setTimeout(end, this.#ttlSeconds * 1000)
    signal.addEventListener('abort', end)
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
      signal.removeEventListener('abort', end)
    }
  }

  async #campaign(signal: AbortSignal): Promise<Lease | undefined> {
    const { client, clock, replica, settings } = this.#options
    const value = Buffer.from(settings === undefined ? replica : `${replica} ${settings}`)
    const askedAt = clock.now()
    const { id, ttlSeconds } = await client.grantLease(this.#ttlSeconds, {
      signal,
      timeoutMs: this.#ttlSeconds * 1000,
    })
    let lease: Lease | undefined
    try {
      const { succeeded, revision } = await client.txn(
        {
          // Holds when there is no such key, and when somebody has put it there without a lease.
          compare: [{ key: this.#key, target: 'lease', to: 0n }],
          success: [{ type: 'put', key: this.#key, value, lease: id }],
        },
        { timeoutMs: ttlSeconds * 1000 },
      )
      if (succeeded) lease = { id, revision, heldUntil: askedAt + termMs(ttlSeconds) }
    } finally {
      // Also when it is not known whether the key is ours.
      if (lease === undefined) await this.#giveBack(id)
    }
    return lease
  }

  async #lead(
    lease: Lease,
    work: (term: Term) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, log } = this.#options
    const ending = new AbortController()
    const end = () => ending.abort()
    if (signal.aborted) end()
    signal.addEventListener('abort', end)
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
    log.info('This replica sweeps and compacts', { term: lease.revision })
    const renewing = this.#renew(lease, ending)
    try {
      await work(term)
    } finally {
      end()
      signal.removeEventListener('abort', end)
      this.#term = undefined
      await renewing
      await this.#giveBack(lease.id)
      log.info('This replica no longer sweeps and compacts', { term: lease.revision })
    }
  }

  /** Keeps the lease until the term is ended, or ends it when that can no longer be done. */
  async #renew(lease: Lease, ending: AbortController): Promise<void> {
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
        log.warn('The lease of this replica is over')
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
    const askedAt = clock.now()
    const options = { signal, timeoutMs: Math.min(timeoutMs, lease.heldUntil - askedAt) }
    try {
      const [ttlSeconds, { kvs }] = await Promise.all([
        client.keepLeaseAlive(lease.id, options),
        client.range({ key: this.#key }, options),
      ])
      // The key can be gone before the lease: somebody may have deleted it by hand.
      if (ttlSeconds === 0 || kvs[0]?.lease !== lease.id) return 'lost'
      if (clock.now() >= lease.heldUntil) return 'lost'
      lease.heldUntil = Math.max(lease.heldUntil, askedAt + termMs(ttlSeconds))
      return 'renewed'
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error
      if (!signal.aborted) log.v(2, 'The lease was not renewed', { err: error })
      return 'failed'
    }
  }

  /** So that the next one need not wait for it to run out. Nothing depends on it. */
  async #giveBack(id: bigint): Promise<void> {
    try {
      await this.#options.client.revokeLease(id, { timeoutMs: giveBackTimeoutMs })
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
