/**
 * Lists and watches one resource of an origin over HTTP. What arrives is bounded: pages and frames by
 * bytes, and a response that does not arrive by time.
 */
import {
  type OriginClient,
  OriginClientError,
  type OriginResponse,
} from '../clusters/origin-client.ts'
import { collectBytes } from '../lib/bytes/collect-bytes.ts'
import { type Clock, monotonicClock } from '../lib/clock.ts'
import { truncate } from '../lib/text/truncate.ts'
import { yieldToEventLoop } from '../lib/yield.ts'
import {
  type ChangeOf,
  type ListPageOptions,
  OriginError,
  type OriginWatchOptions,
  type PageOf,
} from './origin.ts'
import {
  decodePage,
  decodeStatus,
  type ItemDecoder,
  type OriginStatus,
  type WireForm,
  wireFormOf,
} from './origin-decoding.ts'
import { type Frame, LineSplitter, MessageSplitter } from './watch-frames.ts'

const headersTimeoutMs = 30_000
const bodyIdleTimeoutMs = 30_000
/**
 * A watch without bytes for this long is restarted, since its connection may be dead. Kubernetes sends
 * no bookmarks for events, so this also happens in a quiet cluster.
 */
const watchIdleTimeoutMs = 60_000
const watchSecondsMin = 300
const watchSecondsMax = 600
/** Limits a page with a single item, which cannot be made smaller. */
const itemBytesMaxDefault = 16 * 1024 * 1024
const limitShrinks = 8
/** Caps the Retry-After of an origin. */
const retryAfterMsMax = 300_000
/** Frames processed before other work gets a turn. */
const framesPerTurn = 64
/** Consecutive unreadable responses before the watch is given up. */
const unreadableMax = 1_000
const errorBytesMax = 64 * 1024

export type HttpClient = Pick<OriginClient, 'request' | 'close'>

export interface HttpResourceOptions<Item> {
  readonly client: HttpClient
  /** The path of the API group, such as `/apis/apps/v1`. */
  readonly group: string
  /** Such as `pods`. */
  readonly resource: string
  readonly accept: { readonly list: string; readonly watch: string }
  readonly decode: ItemDecoder<Item>
  readonly clock?: Clock | undefined
  /** Uniform in [0, 1). */
  readonly random?: (() => number) | undefined
  /** A larger page is requested again with fewer items. */
  readonly pageBytesMax?: (() => number) | undefined
  /** A larger item cannot be listed. */
  readonly itemBytesMax?: number | undefined
  /** A larger change of a watch is unreadable. */
  readonly frameBytesMax?: number | undefined
}

export class HttpResource<Item> {
  readonly #options: HttpResourceOptions<Item>
  readonly #clock: Clock
  readonly #random: () => number
  readonly #itemBytesMax: number
  readonly #pageBytesMax: () => number

  constructor(options: HttpResourceOptions<Item>) {
    this.#options = options
    this.#clock = options.clock ?? monotonicClock
    this.#random = options.random ?? Math.random
    this.#itemBytesMax = options.itemBytesMax ?? itemBytesMaxDefault
    this.#pageBytesMax = options.pageBytesMax ?? (() => this.#itemBytesMax)
  }

  async listPage(options: ListPageOptions): Promise<PageOf<Item>> {
    const { accept, resource } = this.#options
    const { namespace, continueToken, signal } = options
    for (let { limit } = options; ; limit = Math.max(1, Math.floor(limit / limitShrinks))) {
      const query = new URLSearchParams({ limit: String(limit) })
      if (continueToken !== undefined) query.set('continue', continueToken)
      const response = await this.#get(namespace, query, {
        accept: accept.list,
        idleTimeoutMs: bodyIdleTimeoutMs,
        signal,
      })
      const bytesMax = limit > 1 ? this.#pageBytesMax() : this.#itemBytesMax
      const body = await collected(response, bytesMax, signal)
      if (body === 'too-long' && limit > 1) continue
      if (body === 'too-long') {
        throw new OriginError('unavailable', `one of the ${resource} is too large`)
      }
      const form = wireFormOf(response.headers['content-type'])
      return await decodedPage(body, form, this.#options)
    }
  }

  async *watch(options: OriginWatchOptions): AsyncGenerator<ChangeOf<Item>, void, undefined> {
    const { namespace, from, signal } = options
    const seconds = watchSecondsMin + this.#random() * (watchSecondsMax - watchSecondsMin)
    const query = new URLSearchParams({
      watch: '1',
      allowWatchBookmarks: 'true',
      resourceVersion: from,
      timeoutSeconds: String(Math.round(seconds)),
    })
    const response = await this.#get(namespace, query, {
      accept: this.#options.accept.watch,
      idleTimeoutMs: watchIdleTimeoutMs,
      signal,
    })
    options.onOpen?.()
    let bytesAt = this.#clock.now()
    try {
      const onBytes = (): void => {
        bytesAt = this.#clock.now()
      }
      yield* this.#changesIn(response, onBytes)
    } catch (error) {
      if (!(error instanceof OriginClientError)) throw error
      // Idle rather than broken: the caller starts a new watch.
      if (this.#clock.now() - bytesAt >= watchIdleTimeoutMs) return
      throw unavailable(error)
    } finally {
      response.dispose()
    }
  }

  async *#changesIn(
    response: OriginResponse,
    onBytes: () => void,
  ): AsyncGenerator<ChangeOf<Item>, void, undefined> {
    const form = wireFormOf(response.headers['content-type'])
    const { frameBytesMax } = this.#options
    const frames =
      form === 'json' ? new LineSplitter(frameBytesMax) : new MessageSplitter(frameBytesMax)
    let count = 0
    let unreadable = 0
    for await (const chunk of response.body) {
      onBytes()
      for (const frame of frames.push(chunk)) {
        // A consumer that takes frames without waiting must not block the event loop.
        if (++count % framesPerTurn === 0) await yieldToEventLoop()
        const change = this.#changeIn(frame, form)
        unreadable = change.type === 'unreadable' ? unreadable + 1 : 0
        if (unreadable > unreadableMax) {
          throw new OriginError('unavailable', 'the origin sends a watch that cannot be decoded')
        }
        yield change
      }
    }
  }

  #changeIn(frame: Frame, form: WireForm): ChangeOf<Item> {
    if (frame === 'too-long') return { type: 'unreadable' }
    const change = this.#options.decode.change(frame, form)
    if (change.type !== 'error') return change
    throw refusal({ status: change.status.code, ...change.status }, undefined)
  }

  #get(
    namespace: string | undefined,
    query: URLSearchParams,
    options: Omit<ReadOptions, 'timeoutMs'>,
  ): Promise<OriginResponse> {
    const { client, group, resource } = this.#options
    const scope = namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`
    const path = `${group}${scope}/${resource}?${query}`
    return readFrom(client, path, { ...options, timeoutMs: headersTimeoutMs })
  }
}

export interface ReadOptions {
  readonly accept: string
  /** Limits the time from the start of the request to the response headers. */
  readonly timeoutMs: number
  readonly idleTimeoutMs: number
  readonly signal: AbortSignal
}

/** Rejects with an OriginError unless the status is 200. */
export async function readFrom(
  client: HttpClient,
  path: string,
  { accept, timeoutMs, idleTimeoutMs, signal }: ReadOptions,
): Promise<OriginResponse> {
  const response = await requested(client, {
    method: 'GET',
    path,
    headers: { accept },
    headersTimeoutMs: timeoutMs,
    idleTimeoutMs,
    signal,
  })
  if (response.status === 200) return response
  const body = await collected(response, errorBytesMax, signal)
  const form = wireFormOf(response.headers['content-type'])
  const status = body === 'too-long' ? undefined : decodeStatus(body, form)
  throw refusal({ ...response, ...status }, response.headers['retry-after'])
}

async function requested(
  client: HttpClient,
  request: Parameters<OriginClient['request']>[0],
): Promise<OriginResponse> {
  try {
    return await client.request(request)
  } catch (error) {
    throw error instanceof OriginClientError ? unavailable(error) : error
  }
}

async function decodedPage<Item>(
  body: Buffer,
  form: WireForm,
  { decode, resource }: HttpResourceOptions<Item>,
): Promise<PageOf<Item>> {
  try {
    return await decodePage(body, form, decode.item)
  } catch (cause) {
    const why = truncate(cause instanceof Error ? cause.message : String(cause))
    const message = `the response is not a list of ${resource}: ${why}`
    throw new OriginError('unavailable', message, { cause })
  }
}

/** Rejects with an OriginError when the body breaks off. */
export async function collected(
  response: OriginResponse,
  bytesMax: number,
  signal: AbortSignal,
): Promise<Buffer | 'too-long'> {
  try {
    return await collectBytes(response.body, bytesMax)
  } catch (error) {
    signal.throwIfAborted()
    throw error instanceof OriginClientError ? unavailable(error) : error
  } finally {
    response.dispose()
  }
}

function unavailable(error: OriginClientError): OriginError {
  return new OriginError('unavailable', truncate(error.message), { cause: error })
}

function refusal(
  { status, reason, message, retryAfterMs }: { readonly status: number } & Partial<OriginStatus>,
  retryAfter: string | undefined,
): OriginError {
  const text = `the origin responded ${status}${message ? `: ${truncate(message)}` : ''}`
  if (status === 410 || reason === 'Expired' || reason === 'Gone') {
    return new OriginError('expired', text)
  }
  const seconds = Number(retryAfter)
  const headerMs = seconds > 0 ? seconds * 1000 : undefined
  const isTransient = status === 429 || status === 408 || status >= 500 || status < 300
  const kind = isTransient ? 'unavailable' : 'refused'
  const waitMs = headerMs ?? retryAfterMs
  const options = { retryAfterMs: waitMs && Math.min(waitMs, retryAfterMsMax) }
  return new OriginError(kind, text, options)
}
