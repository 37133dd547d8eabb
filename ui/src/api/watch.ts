/**
 * A watch that survives interruptions: it resumes from the last version it has seen after a
 * response ends, the network fails or the server restarts. It ends only when it is stopped, when
 * the server no longer has the history since that version, or with an error that a retry cannot
 * fix. Changes are read no faster than the page shows them: work is done in slices with a browser
 * frame between them, and unread changes wait at the server.
 */
import { type CoreEvent, type EventRow, eventRow } from '../model/event-row.ts'
import { type Line, LineSplitter } from '../model/line-splitter.ts'
import { isNewer } from '../model/numbers.ts'
import type { Filters } from '../model/query.ts'
import { isFinal, retryDelayMs } from '../model/retries.ts'
import { fieldSelector } from '../model/selector.ts'
import { ApiError, networkError } from './api-error.ts'
import type { ApiClient } from './client.ts'
import { listEvents } from './events.ts'
import { eventsPath } from './paths.ts'

/**
 * The server ends the watch after about this time, so that an abandoned tab does not hold one for
 * ever.
 */
const LIFETIME_SECONDS = 240
/** The server sends a bookmark every minute: a longer silence means that the connection is dead. */
const SILENCE_MS_MAX = 80_000
/** Timeout until the response begins. */
const OPENING_MS_MAX = 30_000
/** An event has at most 128 KiB by default, and its JSON can be longer. */
const LINE_BYTES_MAX = 2 * 1024 * 1024
/** A response that ends by itself sooner counts as a failure. */
const WORKED_MS = 5_000

export type WatchLink =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'live' }
  | { readonly kind: 'waiting'; readonly untilMs: number; readonly error: ApiError }

export interface WatchedChange {
  readonly row: EventRow
  /** Size of the JSON. */
  readonly bytes: number
}

/** The browser's clock and frames; tests provide their own. */
export interface Pace {
  readonly nowMs: () => number
  readonly random: () => number
  /** Rejects when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
  /** Undefined while there is time left in this frame; otherwise resolves in the next frame. */
  readonly rest: () => Promise<void> | undefined
}

export interface WatchOptions {
  readonly client: Pick<ApiClient, 'get' | 'stream'>
  readonly filters: Filters
  /** The resourceVersion of a list. */
  readonly from: string
  readonly pace: Pace
  /** Called when an event is new or has changed, but not when it is deleted. */
  readonly onChange: (change: WatchedChange) => void
  /** Called when a change was too long to be read. */
  readonly onSkipped: () => void
  readonly onLink: (link: WatchLink) => void
}

/** How a response ended. */
type ResponseEnd =
  | { readonly kind: 'expired' }
  | { readonly kind: 'ended'; readonly hasWorked: boolean; readonly error?: ApiError }

interface Frame {
  readonly type?: string
  readonly object?: CoreEvent & {
    readonly code?: number
    readonly reason?: string
    readonly message?: string
    readonly details?: { readonly retryAfterSeconds?: number }
  }
}

export class EventWatch {
  readonly #options: WatchOptions
  #version: string
  #seenMs: number

  constructor(options: WatchOptions) {
    this.#options = options
    this.#version = options.from
    this.#seenMs = options.pace.nowMs()
  }

  /** Whether any change was seen since the list. */
  get hasAdvanced(): boolean {
    return this.#version !== this.#options.from
  }

  /** When the server last sent something. */
  get seenMs(): number {
    return this.#seenMs
  }

  /** Continues where the last run stopped. Rejects with an ApiError if a retry cannot succeed. */
  async run(signal: AbortSignal): Promise<'expired' | 'stopped'> {
    const { onLink, pace } = this.#options
    let failures = 0
    while (!signal.aborted) {
      const end = await this.#respond(signal)
      if (signal.aborted) break
      if (end.kind === 'expired') return 'expired'
      if (end.error === undefined && end.hasWorked) {
        failures = 0
        continue
      }
      failures = end.hasWorked ? 1 : failures + 1
      const error = end.error ?? networkError('the response has ended')
      const { retryAfterSeconds } = error
      const delayMs = retryDelayMs({ count: failures, retryAfterSeconds }, pace.random)
      onLink({ kind: 'waiting', untilMs: pace.nowMs() + delayMs, error })
      await pace.sleep(delayMs, signal).catch(() => {})
    }
    return 'stopped'
  }

  /** Handles one response from its request to its end. */
  async #respond(signal: AbortSignal): Promise<ResponseEnd> {
    const { onLink, pace } = this.#options
    const response = new AbortController()
    const startedMs = pace.nowMs()
    const hasWorked = (): boolean => pace.nowMs() - startedMs >= WORKED_MS
    onLink({ kind: 'connecting' })
    try {
      const stop = AbortSignal.any([signal, response.signal])
      const stream = await this.#within(this.#open(stop), OPENING_MS_MAX)
      onLink({ kind: 'live' })
      const end = await this.#read(stream.getReader())
      return end ?? { kind: 'ended', hasWorked: hasWorked() }
    } catch (error) {
      if (signal.aborted) return { kind: 'ended', hasWorked: false }
      return await this.#endOf(error, hasWorked(), signal)
    } finally {
      response.abort()
    }
  }

  #open(signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const { client, filters, pace } = this.#options
    const selector = fieldSelector(filters)
    const lifetime = LIFETIME_SECONDS + Math.round((pace.random() * LIFETIME_SECONDS) / 4)
    const parameters = {
      watch: 'true',
      allowWatchBookmarks: 'true',
      timeoutSeconds: String(lifetime),
      resourceVersion: this.#version,
      ...(selector === '' ? {} : { fieldSelector: selector }),
    }
    return client.stream(eventsPath(filters), { parameters, signal })
  }

  /** Returns undefined if the response ends without an error. */
  async #read(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<ResponseEnd | undefined> {
    const splitter = new LineSplitter(LINE_BYTES_MAX)
    let skipped = 0
    for (;;) {
      const { done, value } = await this.#within(reader.read(), SILENCE_MS_MAX)
      if (done) return undefined
      for (const line of splitter.split(value)) {
        const end = this.#take(line)
        if (end !== undefined) return end
        const rest = this.#options.pace.rest()
        if (rest !== undefined) await rest
      }
      for (; skipped < splitter.skippedCount; skipped++) this.#options.onSkipped()
    }
  }

  /** Rejects with `silence` if the promise is still pending after this time. */
  async #within<Result>(promise: Promise<Result>, limitMs: number): Promise<Result> {
    const over = new AbortController()
    const limit = this.#options.pace.sleep(limitMs, over.signal).then(
      () => {
        throw silence()
      },
      // The promise settled first.
      () => promise,
    )
    try {
      return await Promise.race([promise, limit])
    } finally {
      over.abort()
    }
  }

  #take({ text, bytes }: Line): ResponseEnd | undefined {
    const { type, object = {} } = JSON.parse(text) as Frame
    if (type === 'ERROR') return errorEnd(object)
    const version = object.metadata?.resourceVersion ?? ''
    // The version went back: the store was restored, and later changes are lost.
    if (isNewer(this.#version, version)) return expired
    this.#version = version
    this.#seenMs = this.#options.pace.nowMs()
    if (type === 'ADDED' || type === 'MODIFIED') {
      this.#options.onChange({ row: eventRow(object, this.#options.filters), bytes })
    }
    return undefined
  }

  async #endOf(error: unknown, hasWorked: boolean, signal: AbortSignal): Promise<ResponseEnd> {
    const failure = error instanceof ApiError ? error : networkError(error)
    if (failure.code === 410) return expired
    if (isFinal(failure.code)) throw failure
    if (failure.reason === SILENCE) return await this.#afterSilence(failure, signal)
    return { kind: 'ended', hasWorked, error: failure }
  }

  /**
   * A server is also silent if the version is in its future because its store was restored. Only a
   * list can distinguish the two.
   */
  async #afterSilence(failure: ApiError, signal: AbortSignal): Promise<ResponseEnd> {
    const { client, filters } = this.#options
    try {
      const list = await listEvents(client, { filters, order: 'newest', limit: 1, signal })
      // A replica's memory may be older than what another replica has sent.
      const isCertain = !list.basis.isFromMemory
      if (isCertain && isNewer(this.#version, list.resourceVersion)) return expired
      return { kind: 'ended', hasWorked: true, error: failure }
    } catch (error) {
      const why = error instanceof ApiError ? error : networkError(error)
      if (isFinal(why.code)) throw why
      return { kind: 'ended', hasWorked: false, error: why }
    }
  }
}

const expired: ResponseEnd = { kind: 'expired' }

/**
 * After a permission error, the next request fails with the reason, and ends the session if
 * necessary.
 */
function errorEnd(status: NonNullable<Frame['object']>): ResponseEnd {
  const { code = 500, reason = '', message = '', details } = status
  if (code === 410) return expired
  const { retryAfterSeconds } = details ?? {}
  const error = new ApiError({ code, reason, message, retryAfterSeconds })
  return { kind: 'ended', hasWorked: false, error }
}

const SILENCE = 'Silence'

function silence(): ApiError {
  return new ApiError({
    code: 0,
    reason: SILENCE,
    message: 'The server has not sent anything for a while.',
  })
}
