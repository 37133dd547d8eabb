/**
 * A watch that goes on: it resumes from the last version that it has seen after the end of a
 * response, a failure of the network, and a restart of the server. It ends only when it is stopped,
 * when the server no longer has the history since that version, or with an error that time does not
 * mend.
 *
 * Changes are read no faster than the page shows them: work is done in slices with a frame of the
 * browser in between, and what is not read waits at the server.
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

/** The server ends the watch after about this time, so that no tab has one without an end. */
const LIFETIME_SECONDS = 240
/** The server sends a bookmark once a minute: longer silence means that nobody is there. */
const SILENCE_MS_MAX = 80_000
/** Until the response begins. */
const OPENING_MS_MAX = 30_000
/** An event has at most 128 KiB unless the server was told otherwise; in JSON it may be longer. */
const LINE_BYTES_MAX = 2 * 1024 * 1024
/** A response that ends by itself before this time has not worked. */
const WORKED_MS = 5_000

export type WatchLink =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'live' }
  | { readonly kind: 'waiting'; readonly untilMs: number; readonly error: ApiError }

export interface WatchedChange {
  readonly row: EventRow
  /** Of its JSON. */
  readonly bytes: number
}

/** The clock and the frames of the browser; tests have their own. */
export interface Pace {
  readonly nowMs: () => number
  readonly random: () => number
  /** Rejects when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
  /** Undefined while there is time left in this frame; else resolves in the next one. */
  readonly rest: () => Promise<void> | undefined
}

export interface WatchOptions {
  readonly client: Pick<ApiClient, 'get' | 'stream'>
  readonly filters: Filters
  /** The version of a list. */
  readonly from: string
  readonly pace: Pace
  /** An event is new or has changed. Deletions are not told. */
  readonly onChange: (change: WatchedChange) => void
  /** A change was too long to be read. */
  readonly onSkipped: () => void
  readonly onLink: (link: WatchLink) => void
}

/** How a response has ended. */
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

  /** Whether anything was seen since the list. */
  get hasAdvanced(): boolean {
    return this.#version !== this.#options.from
  }

  /** When the server last said what there is. */
  get seenMs(): number {
    return this.#seenMs
  }

  /** Goes on where the last run has stopped. Rejects with an ApiError that a retry does not mend. */
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

  /** One response, from its request to its end. */
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

  /** Undefined when the response ends without an error. */
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
      // The promise was first.
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
    // An older version than before: the store was restored, and what came after is lost.
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
   * A server also has nothing to say when the version is in its future, since its store was
   * restored. Only a list tells.
   */
  async #afterSilence(failure: ApiError, signal: AbortSignal): Promise<ResponseEnd> {
    const { client, filters } = this.#options
    try {
      const list = await listEvents(client, { filters, order: 'newest', limit: 1, signal })
      // What a replica has in memory may be older than what another one has sent.
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

/** After an error about access, the next request has the reason, and ends the session if need be. */
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
