/**
 * Decides whether memory is fresh enough for a read, and waits until it is.
 *
 * A consistent read first reads the newest version of the store, with one coalesced request for all
 * waiting reads, and waits until memory has reached it. The response counts only if its connection
 * leads to the history that memory belongs to.
 */
import type { Clock } from '../lib/clock.ts'
import { recorded } from '../lib/tracing/span.ts'
import { throwIfAborted } from '../storage/aborted-read.ts'
import { StorageError } from '../storage/errors.ts'
import { beginning, formatVersion, isAfter, type Version } from '../storage/resource-version.ts'
import type { ConnectionNumber, Newest, ReadOptions } from '../storage/storage.ts'
import { CoalescedRevisionRead } from './coalesced-revision-read.ts'
import type { FollowedStorage } from './followed-storage.ts'
import type { EventMemory } from './memory/memory.ts'
import { wentBack } from './memory-loader.ts'
import type { Reflector } from './reflector.ts'

/** A read that memory cannot serve within this time goes to the store. */
const freshnessWaitMsMax = 3_000

export interface FreshnessOptions {
  readonly source: Pick<FollowedStorage, 'newest'>
  readonly memory: EventMemory
  readonly reflector: Reflector
  readonly clock: Clock
  /** Called with how long each consistent read waited for memory, and whether memory served it. */
  readonly onConsistentRead?: ((waitedMs: number, isServed: boolean) => void) | undefined
  /** The store is at an earlier version than memory: it was restored. */
  readonly onWentBack: (error: Error) => void
}

export class Freshness {
  readonly #options: FreshnessOptions
  readonly #revisionRead: CoalescedRevisionRead<Newest>

  constructor(options: FreshnessOptions) {
    this.#options = options
    const { source, memory } = options
    this.#revisionRead = new CoalescedRevisionRead(async (span) => {
      const known = memory.version
      // Shared by many callers, so no caller's signal may end it; the store's own deadline does.
      const { signal } = new AbortController()
      const newest = await source.newest({ signal, span })
      if (isAfter(known, newest.version)) options.onWentBack(wentBack(known, newest.version))
      return newest
    })
  }

  /** Requests for the newest version that were sent to the store. */
  get revisionReads(): number {
    return this.#revisionRead.begun
  }

  async currentVersion(signal: AbortSignal): Promise<Version> {
    return (await this.#revisionRead.read(signal)).version
  }

  /**
   * Resolves to whether the present state is fresh enough for the read, after waiting if needed.
   */
  async isFresh(options: ReadOptions): Promise<boolean> {
    throwIfAborted(options.signal)
    const { clock, reflector } = this.#options
    const beganAtMs = clock.now()
    const isFresh =
      reflector.isCurrent && (await this.#becomesFresh(options)) && reflector.isCurrent
    if (options.notOlderThan === undefined) {
      this.#options.onConsistentRead?.(clock.now() - beganAtMs, isFresh)
    }
    return isFresh
  }

  /** See `CachedStorage.isVerifiedFor`. */
  isVerifiedFor(connection: ConnectionNumber): boolean {
    const { reflector } = this.#options
    const { verified } = reflector
    if (verified > 0 && connection <= verified) return true
    reflector.verify(connection)
    return false
  }

  /** See `CachedStorage.isOfHistory`. */
  isOfHistory(
    connection: ConnectionNumber,
    options: { readonly signal: AbortSignal; readonly waitMsMax?: number },
  ): Promise<boolean> {
    if (this.isVerifiedFor(connection)) return Promise.resolve(true)
    const { signal, waitMsMax = freshnessWaitMsMax } = options
    const { progress } = this.#options.reflector
    return progress.waitFor({ version: beginning, connection }, { signal, waitMsMax })
  }

  /**
   * While memory is current but not verified, reads the newest version of the store. A restored
   * store may be at an earlier version than memory, and might never reach one that proves or
   * disproves that the history is the same; this read notices it.
   */
  checkUnverified(signal: AbortSignal): void {
    const { reflector } = this.#options
    if (!reflector.isCurrent || reflector.verified > 0) return
    this.#revisionRead.read(signal).catch(() => {})
  }

  async #becomesFresh(options: ReadOptions): Promise<boolean> {
    const { notOlderThan, signal, span } = options
    if (notOlderThan !== undefined && this.#has(notOlderThan)) return true
    const { version: newest, connection } = await recorded(span, 'newest version', (child) =>
      this.#revisionRead.read(signal, child),
    )
    if (notOlderThan !== undefined && isAfter(notOlderThan, newest)) {
      throw new StorageError({
        kind: 'future',
        message: `version ${formatVersion(notOlderThan)} does not exist yet`,
        version: newest,
      })
    }
    const version = notOlderThan ?? newest
    if (this.isVerifiedFor(connection) && this.#has(version)) return true
    const { progress } = this.#options.reflector
    return await recorded(span, 'wait for the cache', () =>
      progress.waitFor({ version, connection }, { signal, waitMsMax: freshnessWaitMsMax }),
    )
  }

  #has(version: Version): boolean {
    const { memory, reflector } = this.#options
    return reflector.isCurrent && !isAfter(version, memory.version)
  }
}
