/**
 * Mirrors one cluster. Every replica takes part in the election; the elected one reads the record,
 * follows the origin and saves the record. All its writes are fenced by the leader's key.
 */
import type { MirrorConfig } from '../clusters/cluster-sections.ts'
import { Leadership, type LeadershipOptions } from '../election/leadership.ts'
import type { Term } from '../election/term.ts'
import { EtcdError } from '../etcd/errors.ts'
import { LinkedAbort, pause } from '../lib/abort.ts'
import { Backoff } from '../lib/backoff.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import type { MirrorWriter } from '../registry/mirrored-event.ts'
import { LaterEpoch } from '../registry/origin-version.ts'
import { StorageError } from '../storage/errors.ts'
import { mirrorLeaderKey } from '../storage/etcd/keys.ts'
import { Follower, OriginRestored } from './follower.ts'
import { MirrorCounters } from './mirror-counters.ts'
import {
  MirrorRecord,
  type MirrorRecordContent,
  type MirrorRecordOptions,
  streamsOf,
} from './mirror-record.ts'
import type { ListedStorage } from './missing-events.ts'
import type { Origin } from './origin.ts'
import { IdentifiedOrigin, type OriginIdentity, OriginReplaced } from './origin-identity.ts'
import { OwnerWatches, type OwnerWatchesOptions } from './owner-watches.ts'
import { RequestPacer } from './request-pacer.ts'
import type { StreamState } from './stream-health.ts'

const leaseTtlSeconds = 10
const requestsPerSecond = 5
const saveEveryMsMin = 2_000
const saveEveryMsMax = 10_000
/** Lists show seconds. */
const behindMsMin = 1_000
const retryFirstMs = 100
const retryMostMs = 2_000
const statesByRank: readonly StreamState[] = ['Stalled', 'Syncing', 'Following']

export interface ClusterMirrorOptions extends MirrorRecordOptions {
  readonly client: LeadershipOptions['client']
  readonly storage: ListedStorage
  readonly writer: MirrorWriter
  readonly mirror: MirrorConfig
  readonly origin: Origin
  /** The configured identity of the origin: when it changes, everything is listed again. */
  readonly identity: () => OriginIdentity
  readonly log: Log
  readonly clock: Clock
  readonly leaseTtlSeconds?: number | undefined
  /** The limit of each stream. */
  readonly windowBytesMax?: (() => number) | undefined
  /** Undefined when only events are read. */
  readonly owners?: Pick<OwnerWatchesOptions, 'origin' | 'known'> | undefined
}

export interface ClusterMirrorStats {
  readonly isLeader: boolean
  /** Undefined while another replica mirrors the cluster. */
  readonly state: StreamState | undefined
  readonly lagMs: number | undefined
  /** Number of writes in progress. */
  readonly pending: number
  readonly counters: MirrorCounters
  /** By resource; empty when owners are not read, or by another replica. */
  readonly ownersFollowing: OwnerWatches['following']
}

/** The state that a term continues from. */
type Start = Pick<MirrorRecordContent, 'epoch' | 'positions'> & {
  /** The cluster that the positions belong to. */
  readonly identity: OriginIdentity
}

/** Everything is listed again under this epoch. Without an identity, the origin is the same. */
interface NewEpoch {
  readonly epoch: number
  readonly identity?: OriginIdentity | undefined
}

export class ClusterMirror {
  readonly #options: ClusterMirrorOptions
  readonly #leadership: Leadership
  readonly #record: MirrorRecord
  readonly #pacer: RequestPacer
  readonly #counters = new MirrorCounters()
  readonly #owners: OwnerWatches | undefined
  #followers: ReadonlyMap<string, Follower> = new Map()
  #origin: IdentifiedOrigin | undefined
  /** Aborts the current work on `forget`. */
  #forgetting = new AbortController()

  constructor(options: ClusterMirrorOptions) {
    const { client, prefix, cluster, replica, clock, log } = options
    this.#options = options
    this.#record = new MirrorRecord(options)
    this.#pacer = new RequestPacer(clock, requestsPerSecond)
    const { namespaces } = options.mirror
    this.#owners =
      options.owners && new OwnerWatches({ ...options.owners, cluster, namespaces, clock, log })
    this.#leadership = new Leadership({
      client,
      key: mirrorLeaderKey(prefix, cluster),
      replica,
      task: 'mirrors the cluster',
      clock,
      log,
      leaseTtlSeconds: options.leaseTtlSeconds ?? leaseTtlSeconds,
    })
  }

  /** Runs until aborted. Rejects only on a bug. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#leadership.run((term) => this.#work(term), signal)
  }

  stats(): ClusterMirrorStats {
    const followers = [...this.#followers.values()]
    return {
      isLeader: this.#leadership.term !== undefined,
      state: followers.length === 0 ? undefined : worstState(followers),
      lagMs: followers.length === 0 ? undefined : greatestLag(followers),
      pending: followers.reduce((sum, { pending }) => sum + pending, 0),
      counters: this.#counters,
      ownersFollowing: this.#owners?.following ?? new Map(),
    }
  }

  /**
   * Called when etcd may have another history than the one written to, so that positions in memory
   * may be ahead of the stored events. The work starts again from the record in etcd.
   */
  forget(): void {
    this.#forgetting.abort()
    this.#forgetting = new AbortController()
  }

  async #work(term: Term): Promise<void> {
    while (term.isHeld()) {
      const signal = AbortSignal.any([term.signal, this.#forgetting.signal])
      if (!(await this.#workUntilForgotten(term, signal))) return
    }
  }

  /** Returns false when the term is over, even if the clock does not show it yet. */
  async #workUntilForgotten(term: Term, signal: AbortSignal): Promise<boolean> {
    let start = await this.#begin(signal)
    while (start !== undefined && !signal.aborted) {
      const ended = await this.#follow(term, start, signal)
      if (ended === 'lost') return false
      start = ended === 'aborted' ? undefined : await this.#startOver(term, ended, signal)
    }
    return signal.aborted
  }

  async #begin(signal: AbortSignal): Promise<Start | undefined> {
    const read = await this.#repeated(() => this.#record.read(signal), signal)
    if (read === 'aborted') return undefined
    if (read === undefined) return { epoch: 0, positions: {}, identity: this.#options.identity() }
    const { epoch, positions, origin, originServer, originName, originUid } = read
    return { epoch, positions, identity: { origin, originServer, originName, originUid } }
  }

  /** Saves the epoch before anything is written with it. Undefined when the term is over. */
  async #startOver(
    term: Term,
    { epoch, identity = this.#identity() }: NewEpoch,
    signal: AbortSignal,
  ): Promise<Start | undefined> {
    const { log } = this.#options
    this.#counters.restores++
    log.warn('The origin was replaced or restored; listing its events again', { epoch })
    const start = { epoch, positions: {}, identity }
    const content = { ...this.#content(epoch, identity), positions: {} }
    const saved = await this.#repeated(() => this.#record.save(term, content), signal)
    return saved === 'saved' ? start : undefined
  }

  /** Repeats a call until etcd responds. */
  async #repeated<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T | 'aborted'> {
    const backoff = new Backoff({ firstMs: retryFirstMs, mostMs: retryMostMs })
    while (!signal.aborted) {
      try {
        return await call()
      } catch (error) {
        if (!(error instanceof EtcdError)) throw error
        this.#noteEtcdFailure(error, signal)
        await pause(backoff.next(), signal)
      }
    }
    return 'aborted'
  }

  /** Follows all streams until one of them ends. */
  async #follow(
    term: Term,
    start: Start,
    signal: AbortSignal,
  ): Promise<'aborted' | 'lost' | NewEpoch> {
    const { epoch } = start
    using ending = new LinkedAbort(signal)
    const failures: unknown[] = []
    const forgotten = this.#forgetting.signal
    const followers = this.#start(term, start, ending.signal)
    this.#followers = followers
    try {
      const saving = this.#saveOften(term, { epoch, forgotten }, ending.signal).finally(
        ending.abort,
      )
      const running = [...followers.values()].map((follower) =>
        follower
          .run()
          .catch((error) => failures.push(error))
          .finally(ending.abort),
      )
      await Promise.all([...running, this.#owners?.run(ending.signal)])
      if ((await saving) === 'lost') return 'lost'
      const [failure] = failures
      if (failure === undefined) return 'aborted'
      return this.#outcomeOf(failure, epoch)
    } finally {
      this.#followers = new Map()
    }
  }

  #outcomeOf(failure: unknown, epoch: number): 'lost' | NewEpoch {
    if (failure instanceof OriginReplaced) return { epoch: epoch + 1, identity: failure.identity }
    if (failure instanceof OriginRestored) return { epoch: epoch + 1 }
    if (failure instanceof LaterEpoch) return { epoch: failure.epoch + 1 }
    if (failure instanceof StorageError && failure.kind === 'fenced') return 'lost'
    throw failure
  }

  #start(
    term: Term,
    { epoch, positions, identity: recorded }: Start,
    signal: AbortSignal,
  ): Map<string, Follower> {
    const { cluster, prefix, mirror, writer, storage, clock, log, windowBytesMax } = this.#options
    const origin = new IdentifiedOrigin({
      origin: this.#options.origin,
      recorded,
      configured: this.#options.identity,
      pacer: this.#pacer,
      clock,
      signal,
    })
    this.#origin = origin
    const fence = { key: mirrorLeaderKey(prefix, cluster), revision: term.revision }
    const { deletes, originTtlMs } = mirror
    return new Map(
      streamsOf(mirror).map((stream) => [
        stream,
        new Follower({
          origin,
          namespace: stream === '' ? undefined : stream,
          position: Object.hasOwn(positions, stream) ? positions[stream] : undefined,
          target: { cluster, epoch, fence },
          writer,
          storage,
          deletes: deletes === 'explicit' ? { originTtlMs } : undefined,
          pacer: this.#pacer,
          counters: this.#counters,
          clock,
          log,
          signal,
          windowBytesMax,
        }),
      ]),
    )
  }

  /** Saves when there is something new, regularly as a heartbeat, and once at the end. */
  async #saveOften(
    term: Term,
    { epoch, forgotten }: { readonly epoch: number; readonly forgotten: AbortSignal },
    signal: AbortSignal,
  ): Promise<'saved' | 'lost'> {
    const { clock } = this.#options
    let saved = ''
    let savedAt = Number.NEGATIVE_INFINITY
    for (;;) {
      // A restored etcd may lack events up to the positions in memory.
      if (forgotten.aborted) return 'saved'
      const isLast = signal.aborted
      const content = this.#content(epoch, this.#identity())
      const { lagMs, lastEventAtMs, dropped, ...lasting } = content
      // Other replicas show the lag of the last record.
      const news = JSON.stringify({ ...lasting, isBehind: lagMs >= behindMsMin })
      if (news !== saved || clock.now() >= savedAt + saveEveryMsMax - saveEveryMsMin) {
        const outcome = await this.#saveOnce(term, content, signal)
        if (outcome === 'lost') return 'lost'
        if (outcome === 'saved') {
          saved = news
          savedAt = clock.now()
        }
      }
      if (isLast || !term.isHeld()) return 'saved'
      await pause(saveEveryMsMin, signal)
    }
  }

  async #saveOnce(
    term: Term,
    content: MirrorRecordContent,
    signal: AbortSignal,
  ): Promise<'saved' | 'lost' | 'failed'> {
    try {
      return await this.#record.save(term, content)
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error
      this.#noteEtcdFailure(error, signal)
      return 'failed'
    }
  }

  #noteEtcdFailure(error: EtcdError, signal: AbortSignal): void {
    const { history, log } = this.#options
    if (error.kind === 'outdated') history?.verify()
    if (signal.aborted) return
    log.v(2, 'Could not read or write the mirror record; will retry', { err: error })
  }

  #identity(): OriginIdentity {
    return this.#origin?.identity ?? this.#options.identity()
  }

  /** What an operator should know while events are followed; may be empty. */
  get #notice(): string {
    return this.#owners?.message || this.#counters.notice
  }

  #content(epoch: number, identity: OriginIdentity): MirrorRecordContent {
    const followers = [...this.#followers.values()]
    const positions: Record<string, string> = {}
    for (const [stream, { position }] of this.#followers) {
      if (position !== undefined) positions[stream] = position
    }
    return {
      ...identity,
      epoch,
      positions,
      state: worstState(followers),
      message: followers.find(({ message }) => message !== '')?.message ?? this.#notice,
      lagMs: Math.round(greatestLag(followers)),
      lastEventAtMs: this.#counters.lastEventAtMs,
      dropped: this.#counters.dropped,
    }
  }
}

function worstState(followers: readonly Follower[]): StreamState {
  const states = followers.map(({ state }) => state)
  return statesByRank.find((state) => states.includes(state)) ?? 'Syncing'
}

function greatestLag(followers: readonly Follower[]): number {
  return Math.max(0, ...followers.map(({ lagMs }) => lagMs))
}
