import { StatusError } from '../api/status.ts'
import type { AccessCheck } from '../gate/access-checks.ts'
import { type Pull, Pulled } from '../lib/pull.ts'
import { watchFailure } from '../registry/watching.ts'
import type { Version } from '../storage/resource-version.ts'
import type { PulledWatch } from '../storage/storage.ts'
import type { EventApi } from './event-api.ts'
import type { WatchPlan } from './list-query.ts'
import type { Teller } from './teller.ts'

/** How often a watcher who asked for it is told how far it has come. */
const bookmarkEveryMs = 60_000
/** Events read at once of those that are told first: a client that does not read keeps them here. */
const presentItems = 20

export interface FeedOptions {
  readonly plan: WatchPlan
  readonly teller: Teller
  /** Ends with it. */
  readonly request: AbortSignal
  /** Asked from time to time whether it may go on, on behalf of that user. */
  readonly access?: AccessCheck | undefined
  readonly user: string
  /** Called when the beginning is made, and only changes are waited for. */
  readonly settle: () => void
}

/** What came of asking for the next piece of the beginning; its last is the version it ends at. */
type Step = IteratorResult<Buffer, Version> | { readonly error: unknown }

/**
 * All that one watcher is sent: first the beginning, if it asked for one, then every change after
 * it, then why it ends, if it was not asked to. It begins with the first piece that is taken.
 */
export class WatchFeed implements AsyncIterable<Buffer>, Pull<Buffer> {
  readonly #api: EventApi
  readonly #options: FeedOptions
  #end: WatchEnd | undefined
  #access: Disposable | undefined
  /** Why it may not go on. */
  #refusal: StatusError | undefined
  #beginning: AsyncGenerator<Buffer, Version> | undefined
  #step: Step | undefined
  #watch: PulledWatch | undefined
  /** What is left of the batch that is being told, and how far that brings the watcher. */
  #pieces: Iterator<Buffer> | undefined
  #version: Version | undefined
  #bookmarks: NodeJS.Timeout | undefined
  #isBookmarkDue = false
  #isOver = false

  constructor(api: EventApi, options: FeedOptions) {
    this.#api = api
    this.#options = options
  }

  get isOver(): boolean {
    return this.#isOver
  }

  get heldBytes(): number {
    return this.#watch?.heldBytes ?? 0
  }

  [Symbol.asyncIterator](): AsyncIterator<Buffer> {
    return new Pulled(this)
  }

  take(wake: () => void): Buffer | undefined {
    if (this.#isOver) return undefined
    if (this.#refusal !== undefined) {
      this.stop()
      return this.#options.teller.error(this.#refusal)
    }
    try {
      return this.#watch === undefined ? this.#begin(wake) : this.#change(this.#watch, wake)
    } catch (error) {
      this.stop()
      return this.#lastWord(error)
    }
  }

  stop(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#pieces = undefined
    clearInterval(this.#bookmarks)
    this.#access?.[Symbol.dispose]()
    this.#watch?.stop()
    this.#end?.[Symbol.dispose]()
    // What it was still doing concerns nobody any more.
    this.#beginning?.return(0 as Version).catch(() => {})
  }

  /** What there is at first, as it comes. */
  #begin(wake: () => void): Buffer | undefined {
    const { plan, settle } = this.#options
    const { signal } = this.#start()
    this.#beginning ??= this.#present(signal)
    const step = this.#step
    this.#step = undefined
    if (step === undefined) {
      this.#ask(this.#beginning, wake)
      return undefined
    }
    if ('error' in step) throw step.error
    if (step.done !== true) return step.value
    this.#watch = this.#api.storage.watch(plan.scope, { from: step.value, signal })
    if (plan.hasBookmarks) this.#bookmarks = setInterval(this.#wantBookmark, bookmarkEveryMs)
    settle()
    return this.#change(this.#watch, wake)
  }

  #start(): WatchEnd {
    if (this.#end !== undefined) return this.#end
    const { plan, request, access, user } = this.#options
    this.#end = new WatchEnd(request, plan.lifetimeMs)
    if (access !== undefined) this.#access = this.#api.accessChecks?.add(access, this.#refuse, user)
    return this.#end
  }

  #ask(beginning: AsyncGenerator<Buffer, Version>, wake: () => void): void {
    const came = (step: Step): void => {
      this.#step = step
      if (!this.#isOver) wake()
    }
    beginning.next().then(came, (error: unknown) => came({ error }))
  }

  async *#present(signal: AbortSignal): AsyncGenerator<Buffer, Version> {
    const { lister, storage } = this.#api
    const { plan, teller } = this.#options
    if (plan.initial === undefined) return plan.from ?? (await storage.currentVersion({ signal }))
    const listing = await lister.list({ ...plan.initial, pieceItems: presentItems, signal })
    for await (const events of listing.pieces) yield* teller.present(events)
    if (plan.hasInitialBookmark) yield teller.bookmark(listing.version, true)
    return listing.version
  }

  #change(watch: PulledWatch, wake: () => void): Buffer | undefined {
    for (;;) {
      const piece = this.#nextPiece()
      if (piece !== undefined) return piece
      const batch = watch.take(wake)
      if (batch === undefined) {
        if (watch.isOver) this.stop()
        return undefined
      }
      this.#pieces = this.#options.teller.tell(batch)[Symbol.iterator]()
      this.#version = batch.version
    }
  }

  /** Of the batch that is being told, with a bookmark after it if one is due. */
  #nextPiece(): Buffer | undefined {
    const next = this.#pieces?.next()
    if (next === undefined) return undefined
    if (next.done !== true) return next.value
    this.#pieces = undefined
    if (!this.#isBookmarkDue || this.#version === undefined) return undefined
    this.#isBookmarkDue = false
    return this.#options.teller.bookmark(this.#version, false)
  }

  /** Nothing to one who has ended it. */
  #lastWord(error: unknown): Buffer | undefined {
    if (this.#end?.signal.aborted === true) return undefined
    const names = this.#api.registry.names
    const status = error instanceof StatusError ? error : watchFailure(error, names)
    if (status === undefined) throw error
    return this.#options.teller.error(status)
  }

  /** Whatever is taken next is why it ends: nothing more of what it watched. */
  readonly #refuse = (why: StatusError): void => {
    this.#refusal = why
    this.#end?.abort()
  }

  readonly #wantBookmark = (): void => {
    this.#isBookmarkDue = true
    this.#watch?.requestProgress()
  }
}

/** Timers cannot wait longer than this. */
const timerMsMax = 2 ** 31 - 1

/** Aborts with the request, or when the watch's own time is over. */
class WatchEnd implements Disposable {
  readonly #controller = new AbortController()
  readonly #request: AbortSignal
  readonly #timer: NodeJS.Timeout

  constructor(request: AbortSignal, lifetimeMs: number) {
    this.#request = request
    this.#timer = setTimeout(this.#end, Math.min(lifetimeMs, timerMsMax))
    if (request.aborted) this.#end()
    else request.addEventListener('abort', this.#end)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#request.removeEventListener('abort', this.#end)
  }

  abort(): void {
    this.#controller.abort()
  }

  readonly #end = (): void => this.abort()
}
