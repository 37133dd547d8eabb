/**
 * Feeds a live view: the newest events first, then every change.
 *
 * | link         | meaning                                                | next                     |
 * | ------------ | ------------------------------------------------------ | ------------------------ |
 * | `connecting` | a list or a watch was requested                        | `live`, `waiting`, `failed` |
 * | `live`       | changes come in                                        | `waiting`, `asleep`      |
 * | `waiting`    | a request has failed and is repeated later             | `connecting`             |
 * | `asleep`     | the tab was hidden for long: nothing is open           | `connecting`             |
 * | `failed`     | the user has to change something: permissions, filters | `connecting`, if the user asks |
 *
 * When the server no longer has the history since the last change, the events since then are listed,
 * above a gap that says from when to when.
 */

import { ApiError, asApiError } from '../api/api-error.ts'
import type { ApiClient } from '../api/client.ts'
import { type EventPage, type ListOptions, listEvents } from '../api/events.ts'
import { EventWatch, type Pace, type WatchedChange, type WatchLink } from '../api/watch.ts'
import type { Filters } from '../model/query.ts'
import { isFinal, retryDelayMs } from '../model/retries.ts'
import { type Arrived, TailBuffer } from '../model/tail-buffer.ts'
import { RateMeter, ReadingPace } from '../model/tail-rate.ts'

/** Limits of a tab's rows. The overview has more. */
const BOUNDS = { rowsMax: 500, bytesMax: 4 * 1024 * 1024 }
const FIRST_ROWS = 100
/** The server's maximum page length. */
const GAP_ROWS = 500
/** Nobody reads faster. A burst may fill the view. */
const READING = { perSecond: 200, burst: BOUNDS.rowsMax, forWarnings: 100 }
/** Tolerance for the clocks of event sources. */
const CLOCKS_MS = 60_000

export type TailLink =
  | WatchLink
  | { readonly kind: 'asleep' }
  | { readonly kind: 'failed'; readonly error: ApiError }

export interface FeedOptions {
  readonly client: ApiClient
  readonly filters: Filters
  readonly pace: Pace
  /** Called often, after every change. */
  readonly onUpdate: () => void
}

export class TailFeed {
  readonly buffer: TailBuffer = new TailBuffer(BOUNDS)
  readonly rate: RateMeter = new RateMeter()
  readonly reading: ReadingPace = new ReadingPace(READING)
  /** When following began. */
  readonly startedMs: number
  /** The rows of the initial list, which are not new. Undefined until it is loaded. */
  first: Arrived | undefined
  #watch: EventWatch | undefined
  /** Consecutive times that the server had no history since a list that it had just sent. */
  #expirations = 0
  #link: TailLink = { kind: 'connecting' }
  readonly #options: FeedOptions
  readonly #closed = new AbortController()
  /** Aborted when the tab goes to sleep, or to end a wait. */
  #interruption = new AbortController()
  #isAsleep = false
  #onWake: (() => void) | undefined

  constructor(options: FeedOptions) {
    this.#options = options
    this.startedMs = options.pace.nowMs()
  }

  get link(): TailLink {
    return this.#link
  }

  /** Resolves when the feed is closed or has failed for good; after that it may run again. */
  async run(): Promise<void> {
    try {
      this.#watch ??= this.#watchFrom(await this.#firstList())
      while (!this.#closed.signal.aborted) {
        await this.#awake()
        const end = await this.#watch.run(this.#signal())
        if (end === 'expired') this.#watch = await this.#watchAfterGap(this.#watch)
      }
    } catch (error) {
      if (this.#closed.signal.aborted) return
      this.#setLink({ kind: 'failed', error: asApiError(error) })
    }
  }

  close(): void {
    this.#closed.abort()
    this.#onWake?.()
  }

  /** Closes the connection until `wake`. */
  sleep(): void {
    if (this.#isAsleep || this.#link.kind === 'failed') return
    this.#isAsleep = true
    this.#setLink({ kind: 'asleep' })
    this.#interrupt()
  }

  wake(): void {
    this.#isAsleep = false
    this.#onWake?.()
  }

  /** Ends the wait after a failure; after a final failure, starts again. */
  retryNow(): void {
    if (this.#link.kind === 'waiting') this.#interrupt()
    if (this.#link.kind !== 'failed') return
    this.#setLink({ kind: 'connecting' })
    void this.run()
  }

  forgetUnshown(): void {
    this.reading.forget()
    this.#options.onUpdate()
  }

  #interrupt(): void {
    this.#interruption.abort()
    this.#interruption = new AbortController()
  }

  #signal(): AbortSignal {
    return AbortSignal.any([this.#closed.signal, this.#interruption.signal])
  }

  async #awake(): Promise<void> {
    while (this.#isAsleep && !this.#closed.signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#onWake = resolve
      })
    }
  }

  #watchFrom({ resourceVersion }: EventPage): EventWatch {
    const { client, filters, pace } = this.#options
    return new EventWatch({
      client,
      filters,
      from: resourceVersion,
      pace,
      onChange: (change) => this.#take(change),
      onSkipped: () => this.reading.countTooLong(pace.nowMs()),
      onLink: (link) => {
        if (!this.#isAsleep) this.#setLink(link)
      },
    })
  }

  #take({ row, bytes }: WatchedChange): void {
    const nowMs = this.#options.pace.nowMs()
    this.rate.count(nowMs)
    if (this.reading.isShown(row.isWarning, nowMs)) this.buffer.take({ row, bytes, nowMs })
    this.#options.onUpdate()
  }

  async #firstList(): Promise<EventPage> {
    const page = await this.#requestList({ limit: FIRST_ROWS })
    this.#show(page)
    this.first = this.buffer.arrived
    return page
  }

  async #watchAfterGap({ seenMs: fromMs, hasAdvanced }: EventWatch): Promise<EventWatch> {
    this.#expirations = hasAdvanced ? 1 : this.#expirations + 1
    if (this.#expirations > 1) await this.#wait({ count: this.#expirations - 1, error: expired() })
    const span = { fromMs: fromMs - CLOCKS_MS }
    const page = await this.#requestList({ limit: GAP_ROWS, span })
    const toMs = this.#options.pace.nowMs()
    this.buffer.addGap({ fromMs, toMs, isListed: page.next === '' })
    this.#show(page)
    return this.#watchFrom(page)
  }

  #show(page: EventPage): void {
    this.buffer.addListed(page.rows, this.#options.pace.nowMs())
    this.#options.onUpdate()
  }

  /** Repeats the request until it succeeds with the newest state, or fails for good. */
  async #requestList(what: Pick<ListOptions, 'limit' | 'span'>): Promise<EventPage> {
    const { client, filters } = this.#options
    for (let count = 1; ; count++) {
      await this.#awake()
      this.#closed.signal.throwIfAborted()
      this.#setLink({ kind: 'connecting' })
      const signal = this.#signal()
      try {
        const page = await listEvents(client, { ...what, filters, order: 'newest', signal })
        if (!page.basis.isFromMemory) return page
        // Rows from memory are better than none.
        if (this.first === undefined) this.#show(page)
        await this.#wait({ count, error: fromMemory() })
      } catch (error) {
        if (signal.aborted) continue
        if (!(error instanceof ApiError) || isFinal(error.code)) throw error
        await this.#wait({ count, error })
      }
    }
  }

  async #wait({
    count,
    error,
  }: {
    readonly count: number
    readonly error: ApiError
  }): Promise<void> {
    const { pace } = this.#options
    const { retryAfterSeconds } = error
    const delayMs = retryDelayMs({ count, retryAfterSeconds }, pace.random)
    this.#setLink({ kind: 'waiting', untilMs: pace.nowMs() + delayMs, error })
    await pace.sleep(delayMs, this.#signal()).catch(() => {})
  }

  #setLink(link: TailLink): void {
    this.#link = link
    this.#options.onUpdate()
  }
}

function expired(): ApiError {
  return new ApiError({
    code: 410,
    reason: 'Expired',
    message: 'The server repeatedly lost the changes since its last list.',
  })
}

function fromMemory(): ApiError {
  return new ApiError({
    code: 503,
    reason: 'ServiceUnavailable',
    message: 'etcd does not respond: these are the events that the replica knew last.',
  })
}
