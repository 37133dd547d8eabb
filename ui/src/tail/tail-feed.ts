/**
 * Feeds a live view: the newest events first, then every change.
 *
 * | link         | meaning                                                | next                     |
 * | ------------ | ------------------------------------------------------ | ------------------------ |
 * | `connecting` | a list or a watch was requested                        | `live`, `waiting`, `failed` |
 * | `live`       | changes come in                                        | `waiting`, `asleep`      |
 * | `waiting`    | a request has failed and is repeated later             | `connecting`             |
 * | `asleep`     | the tab was hidden for long: nothing is open           | `connecting`             |
 * | `failed`     | the user has to change something: permissions, filters |                          |
 *
 * When the server no longer has the history since the last change, the newest events are listed
 * again, above a gap that says from when to when.
 */
import { ApiError, asApiError } from '../api/api-error.ts'
import type { ApiClient } from '../api/client.ts'
import { type EventPage, listEvents } from '../api/events.ts'
import { EventWatch, type Pace, type WatchedChange, type WatchLink } from '../api/watch.ts'
import type { Filters } from '../model/query.ts'
import { isFinal, retryDelayMs } from '../model/retries.ts'
import { TailBuffer } from '../model/tail-buffer.ts'
import { RateMeter, ReadingPace } from '../model/tail-rate.ts'

/** What a tab keeps. More rows are in the overview. */
const BOUNDS = { rowsMax: 500, bytesMax: 4 * 1024 * 1024 }
const FIRST_ROWS = 100
/** The most that the server lists at once. */
const GAP_ROWS = 500
/** Nobody reads more. A burst may fill the view. */
const READING = { perSecond: 200, burst: BOUNDS.rowsMax, forWarnings: 100 }
/** Clocks of those who report may be wrong by as much. */
const CLOCKS_MS = 60_000

export type TailLink =
  | WatchLink
  | { readonly kind: 'asleep' }
  | { readonly kind: 'failed'; readonly error: ApiError }

export interface FeedOptions {
  readonly client: ApiClient
  readonly filters: Filters
  readonly pace: Pace
  /** Something changed; called often. */
  readonly onUpdate: () => void
}

export class TailFeed {
  readonly buffer: TailBuffer = new TailBuffer(BOUNDS)
  readonly rate: RateMeter = new RateMeter()
  readonly reading: ReadingPace = new ReadingPace(READING)
  /** Since when changes are followed. */
  readonly startedMs: number
  warningCount = 0
  #link: TailLink = { kind: 'connecting' }
  readonly #options: FeedOptions
  readonly #closed = new AbortController()
  /** Aborted when the tab goes to sleep, or when a wait is to end. */
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

  /** Resolves when the feed is closed, or has failed for good. */
  async run(): Promise<void> {
    try {
      let watch = this.#watchFrom(await this.#list(FIRST_ROWS))
      while (!this.#closed.signal.aborted) {
        await this.#awake()
        if ((await watch.run(this.#signal())) === 'expired') {
          watch = this.#watchFrom(await this.#listAfterGap(watch.seenMs))
        }
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

  /** Ends the wait after a failure. */
  retryNow(): void {
    if (this.#link.kind === 'waiting') this.#interrupt()
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
      onLink: (link) => {
        if (!this.#isAsleep) this.#setLink(link)
      },
    })
  }

  #take({ row, bytes }: WatchedChange): void {
    const nowMs = this.#options.pace.nowMs()
    this.rate.count(nowMs)
    if (row.isWarning) this.warningCount++
    if (this.reading.isShown(row.isWarning, nowMs)) this.buffer.take({ row, bytes, nowMs })
    this.#options.onUpdate()
  }

  async #listAfterGap(fromMs: number): Promise<EventPage> {
    const page = await this.#requestList(GAP_ROWS)
    const oldestMs = page.rows.at(-1)?.lastMs ?? Number.POSITIVE_INFINITY
    const isListed = page.next === '' || oldestMs < fromMs - CLOCKS_MS
    this.buffer.addGap({ fromMs, toMs: this.#options.pace.nowMs(), isListed })
    this.#show(page)
    return page
  }

  async #list(limit: number): Promise<EventPage> {
    const page = await this.#requestList(limit)
    this.#show(page)
    return page
  }

  #show(page: EventPage): void {
    this.buffer.addListed(page.rows, this.#options.pace.nowMs())
    this.#options.onUpdate()
  }

  /** Repeats the request until it succeeds, or fails for good. */
  async #requestList(limit: number): Promise<EventPage> {
    const { client, filters, pace } = this.#options
    for (let count = 1; ; count++) {
      await this.#awake()
      this.#closed.signal.throwIfAborted()
      this.#setLink({ kind: 'connecting' })
      const signal = this.#signal()
      try {
        return await listEvents(client, { filters, order: 'newest', limit, signal })
      } catch (error) {
        if (signal.aborted) continue
        if (!(error instanceof ApiError) || isFinal(error.code)) throw error
        const { retryAfterSeconds } = error
        const delayMs = retryDelayMs({ count, retryAfterSeconds }, pace.random)
        this.#setLink({ kind: 'waiting', untilMs: pace.nowMs() + delayMs, error })
        await pace.sleep(delayMs, this.#signal()).catch(() => {})
      }
    }
  }

  #setLink(link: TailLink): void {
    this.#link = link
    this.#options.onUpdate()
  }
}
