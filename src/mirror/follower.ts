/**
 * Follows one stream of an origin: all its events, or those of one namespace. Lists page by page, then
 * watches; never resumes beyond what is stored. Failures of the origin and of etcd are normal: this
 * ends only when its signal aborts, when a write is fenced, or when the origin was restored.
 */
import { AbortListener, pause } from '../lib/abort.ts'
import { Backoff } from '../lib/backoff.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import { yieldToEventLoop } from '../lib/yield.ts'
import { MirrorThrottled } from '../registry/admission/write-admission.ts'
import type { MirrorTarget, MirrorWriter } from '../registry/mirrored-event.ts'
import { compareResourceVersions, type OriginEvent } from '../registry/origin-version.ts'
import { StorageError } from '../storage/errors.ts'
import type { MirrorCounters } from './mirror-counters.ts'
import { type ListedStorage, MissingEvents, type Place } from './missing-events.ts'
import { type Origin, type OriginChange, OriginError, type OriginPage } from './origin.ts'
import type { RequestPacer } from './request-pacer.ts'
import { StreamHealth, type StreamState } from './stream-health.ts'
import { type Write, WriteWindow } from './write-window.ts'

const pageItemsMax = 500
/** Preparing this many writes takes a few milliseconds; then other work gets a turn. */
const itemsPerTurn = 32
const pageAttempts = 5
const retryFirstMs = 500
const retryMostMs = 30_000
/**
 * A watch that has lasted this long after its response began counts as working, and one that has
 * delivered nothing for this long has delivered what there was.
 */
const liveAfterMs = 2_000
/** Used for an origin that does not report `onOpen`; longer than any request may wait. */
const openedAfterMsMax = 35_000
const logEveryMs = 60_000

/** The origin's versions are lower than the position: it was restored from a backup. */
export class OriginRestored extends Error {
  override readonly name = 'OriginRestored'
}

export interface FollowerOptions {
  readonly origin: Origin
  /** Undefined for all namespaces. */
  readonly namespace: string | undefined
  readonly position: string | undefined
  readonly target: MirrorTarget
  readonly writer: MirrorWriter
  readonly storage: ListedStorage
  /** Undefined when deletes at the origin are ignored. */
  readonly deletes: { readonly originTtlMs: number } | undefined
  readonly pacer: RequestPacer
  readonly counters: MirrorCounters
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
  readonly windowBytesMax?: (() => number) | undefined
}

export class Follower {
  readonly #options: FollowerOptions
  readonly #window: WriteWindow
  readonly #backoff = new Backoff({ firstMs: retryFirstMs, mostMs: retryMostMs })
  /** The position has expired, but is still a lower bound of the origin's version. */
  #hasExpired = false
  readonly #health: StreamHealth
  /** The failure that ends this follower. */
  #fatal: { readonly error: unknown } | undefined
  readonly #ending = new AbortController()
  #loggedAt = Number.NEGATIVE_INFINITY

  constructor(options: FollowerOptions) {
    const { position, clock, counters } = options
    this.#options = options
    this.#health = new StreamHealth(clock)
    this.#window = new WriteWindow({
      position,
      signal: this.#ending.signal,
      clock,
      bytesMax: options.windowBytesMax,
      onResult: (result) => {
        this.#health.storageFailure = undefined
        counters.count(result)
      },
      onRetry: (error) => {
        this.#health.storageFailure = error
        counters.retries++
        if (error instanceof MirrorThrottled) counters.throttled++
      },
      onFailure: (error) => {
        if (error instanceof StorageError && error.kind === 'fenced') counters.fenced++
        this.#fatal ??= { error }
        this.#ending.abort()
      },
    })
  }

  /** Everything at the origin up to this version is stored. */
  get position(): string | undefined {
    return this.#window.position
  }

  get pending(): number {
    return this.#window.pending
  }

  get state(): StreamState {
    return this.#health.state(this.#window.oldestAt, this.#isListing)
  }

  get message(): string {
    return this.#health.message
  }

  get lagMs(): number {
    return this.#health.lagMs(this.#window.oldestAt)
  }

  get #isListing(): boolean {
    return this.position === undefined || this.#hasExpired
  }

  /** Resolves when aborted. Rejects with OriginRestored, and when a write is fenced. */
  async run(): Promise<void> {
    const { signal } = this.#options
    using _ending = new AbortListener(signal, () => this.#ending.abort())
    try {
      while (!this.#ending.signal.aborted) await this.#follow()
    } finally {
      this.#ending.abort()
    }
    if (this.#fatal !== undefined) throw this.#fatal.error
  }

  async #follow(): Promise<void> {
    const { signal } = this.#ending
    try {
      const current = this.#isListing ? await this.#list() : await this.#checkVersion()
      if (!signal.aborted) await this.#watch(current)
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof OriginError) this.#noteFailure(error)
      // Reading the stored events failed.
      else if (error instanceof StorageError) this.#health.storageFailure = error
      else throw error
      await pause(Math.max(error.retryAfterMs ?? 0, this.#backoff.next()), signal)
    }
  }

  #noteFailure(error: OriginError): void {
    const { clock, counters, log, namespace } = this.#options
    counters.countFailure(error.kind)
    this.#health.failed(error)
    if (error.kind === 'expired') this.#hasExpired = true
    const now = clock.now()
    if (now < this.#loggedAt + logEveryMs || error.kind === 'expired') return
    this.#loggedAt = now
    log.warn('Following the origin failed; will retry', { namespace, err: error })
  }

  /**
   * Returns the origin's version. Throws OriginRestored when it is older than what was read from it
   * before.
   */
  async #checkVersion(): Promise<string> {
    const { resourceVersion } = await this.#page(1, undefined)
    this.#checkNotOlder(resourceVersion)
    return resourceVersion
  }

  #checkNotOlder(resourceVersion: string): void {
    const { position } = this
    if (position === undefined || compareResourceVersions(resourceVersion, position) >= 0) return
    throw new OriginRestored(`its version is ${resourceVersion}, but was ${position} before`)
  }

  async #page(limit: number, continueToken: string | undefined): Promise<OriginPage> {
    const { origin, namespace, pacer, counters } = this.#options
    const { signal } = this.#ending
    await pacer.turn(signal)
    signal.throwIfAborted()
    const page = await origin.listPage({ namespace, limit, continueToken, signal })
    counters.listedPages++
    return page
  }

  /** Returns the origin's version afterwards; undefined when aborted. */
  async #list(): Promise<string | undefined> {
    const { counters, deletes, storage, namespace, target, clock } = this.#options
    const { signal } = this.#ending
    const startedAt = clock.now()
    counters.lists++
    // Writes of the previous watch are repeated until they succeed; the list's writes come later.
    await this.#window.drained()
    const scope = { cluster: target.cluster, namespace }
    let missing = deletes && new MissingEvents(storage, scope, signal)
    let page = await this.#page(pageItemsMax, undefined)
    const { resourceVersion: listed } = page
    this.#checkNotOlder(listed)
    for (;;) {
      // Neither pages of another version nor undecodable events show what is missing.
      if (page.resourceVersion !== listed || (page.unreadable ?? 0) > 0) missing = undefined
      await this.#takePage(page, missing, listed)
      if (page.continueToken === undefined || signal.aborted) break
      page = await this.#nextPage(page.continueToken)
    }
    if (signal.aborted) return undefined
    await this.#deleteMissing(missing, 'end', listed)
    await this.#window.drained()
    if (signal.aborted) return undefined
    this.#window.restart(listed)
    this.#hasExpired = false
    // Much may have happened during a long list.
    return clock.now() < startedAt + liveAfterMs ? listed : this.#checkVersion()
  }

  /** Repeats the request a few times, since restarting the list costs the origin more. */
  async #nextPage(continueToken: string): Promise<OriginPage> {
    for (let attempt = 1; ; attempt++) {
      try {
        const page = await this.#page(pageItemsMax, continueToken)
        this.#backoff.reset()
        return page
      } catch (error) {
        const isTransient = error instanceof OriginError && error.kind === 'unavailable'
        if (!isTransient || attempt === pageAttempts) throw error
        this.#noteFailure(error)
        await pause(Math.max(error.retryAfterMs ?? 0, this.#backoff.next()), this.#ending.signal)
      }
    }
  }

  async #takePage(
    page: OriginPage,
    missing: MissingEvents | undefined,
    listed: string,
  ): Promise<void> {
    const { counters } = this.#options
    for (let count = page.unreadable ?? 0; count > 0; count--) counters.count('unreadable')
    missing?.check(page.items.map(placeOf))
    for (const [index, item] of page.items.entries()) {
      // Otherwise, writes that the window accepts at once would all be prepared in one turn.
      if (index % itemsPerTurn === itemsPerTurn - 1) await yieldToEventLoop()
      await this.#deleteMissing(missing, placeOf(item), listed)
      await this.#put(item, true)
      if (this.#ending.signal.aborted) return
    }
  }

  async #deleteMissing(
    missing: MissingEvents | undefined,
    before: Place | 'end',
    listed: string,
  ): Promise<void> {
    const { deletes, target, writer } = this.#options
    if (deletes === undefined || missing === undefined) return
    for await (const stored of missing.before(before)) {
      await this.#add(stored.key, {
        version: undefined,
        bytes: stored.body.length,
        apply: () => writer.deleteMissing(target, stored, { listed, ...deletes }),
      })
    }
  }

  /** `current`: the origin's version, at which the stream has caught up. */
  async #watch(current: string | undefined): Promise<void> {
    const { origin, namespace, pacer, counters, clock } = this.#options
    const { signal } = this.#ending
    const { position: from } = this
    if (from === undefined) return
    await pacer.turn(signal)
    if (signal.aborted) return
    counters.watches++
    const startedAt = clock.now()
    let isEmpty = true
    let quiet: ReturnType<typeof setTimeout>
    const onQuiet = (): void => {
      this.#startLive()
      if (this.pending === 0) this.#health.caughtUp()
      else waitForQuiet()
    }
    const waitForQuiet = (): void => {
      clearTimeout(quiet)
      quiet = setTimeout(onQuiet, liveAfterMs)
    }
    quiet = setTimeout(onQuiet, openedAfterMsMax)
    try {
      for await (const change of origin.watch({ namespace, from, signal, onOpen: waitForQuiet })) {
        isEmpty = false
        this.#startLive()
        await this.#take(change, from)
        if (signal.aborted) return
        if (this.#health.isCaughtUp) continue
        if (current !== undefined && this.#hasReached(current)) this.#health.caughtUp()
        else waitForQuiet()
      }
    } finally {
      clearTimeout(quiet)
      this.#health.ended()
    }
    if (isEmpty && clock.now() - startedAt < liveAfterMs && !signal.aborted) {
      throw new OriginError('unavailable', 'the origin ended the watch immediately')
    }
  }

  async #take(change: OriginChange, from: string): Promise<void> {
    const { counters, deletes, target, writer } = this.#options
    switch (change.type) {
      case 'unreadable':
        counters.count('unreadable')
        return
      case 'bookmark':
        // A restored server reports its own progress before any change arrives.
        if (compareResourceVersions(change.resourceVersion, from) < 0) {
          throw new OriginError('unavailable', 'the origin reports progress before the position')
        }
        this.#window.mark(change.resourceVersion)
        return
      case 'put':
        await this.#put(change, false)
        return
      case 'delete':
        if (deletes === undefined || !this.#isOfStream(change))
          this.#window.mark(change.resourceVersion)
        else {
          await this.#add(placeOf(change), {
            version: change.resourceVersion,
            bytes: change.bytes,
            apply: () => writer.delete(target, change, deletes),
          })
        }
    }
  }

  async #put(item: OriginEvent, isListed: boolean): Promise<void> {
    const { target, writer, counters } = this.#options
    if (!this.#isOfStream(item)) {
      counters.count('invalid')
      return
    }
    await this.#add(placeOf(item), {
      version: isListed ? undefined : item.resourceVersion,
      bytes: item.bytes,
      apply: () => writer.put(target, item, { isListed }),
    })
  }

  /** An origin may send events that were not requested. */
  #isOfStream({ event }: OriginEvent): boolean {
    const { namespace } = this.#options
    return namespace === undefined || event.metadata.namespace === namespace
  }

  #add({ namespace, name }: Place, write: Omit<Write, 'key'>): Promise<void> {
    return this.#window.add({ key: `${namespace}/${name}`, ...write })
  }

  #hasReached(version: string): boolean {
    const { position } = this
    return position !== undefined && compareResourceVersions(position, version) >= 0
  }

  #startLive(): void {
    if (this.#health.isLive) return
    const { log, namespace } = this.#options
    if (this.#health.isNews) log.info('Following the origin', { namespace })
    this.#health.started()
    this.#backoff.reset()
  }
}

function placeOf({ event }: OriginEvent): Place {
  const { namespace = '', name = '' } = event.metadata
  return { namespace, name }
}
