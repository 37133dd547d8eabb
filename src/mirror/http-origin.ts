/** An origin that is a Kubernetes API server, or another tidings. */
import {
  type OriginClient,
  OriginClientError,
  type OriginResponse,
} from '../clusters/origin-client.ts'
import { collectBytes } from '../lib/bytes/collect-bytes.ts'
import { type Clock, monotonicClock } from '../lib/clock.ts'
import { isObject, memberOf, parsedJson } from '../lib/json.ts'
import { truncate } from '../lib/text/truncate.ts'
import { yieldToEventLoop } from '../lib/yield.ts'
import {
  type ListPageOptions,
  type Origin,
  type OriginChange,
  OriginError,
  type OriginPage,
  type OriginWatchOptions,
} from './origin.ts'
import {
  decodeChange,
  decodePage,
  decodeStatus,
  type OriginStatus,
  type WireForm,
  wireFormOf,
} from './origin-decoding.ts'
import { LineSplitter, MessageSplitter } from './watch-frames.ts'

const protobuf = 'application/vnd.kubernetes.protobuf'
const headersTimeoutMs = 30_000
const bodyIdleTimeoutMs = 30_000
/**
 * A watch without bytes for this long is restarted, since its connection may be dead. Kubernetes sends
 * no bookmarks for events, so this also happens in a quiet cluster.
 */
const watchIdleTimeoutMs = 60_000
const watchSecondsMin = 300
const watchSecondsMax = 600
/** Limits a page with a single event, which cannot be made smaller. */
const itemBytesMaxDefault = 16 * 1024 * 1024
const limitShrinks = 8
/** Caps the Retry-After of an origin. */
const retryAfterMsMax = 300_000
/** Frames processed before other work gets a turn. */
const framesPerTurn = 64
/** Consecutive unreadable responses before the watch is given up. */
const unreadableMax = 1_000
const errorBytesMax = 64 * 1024
const uidTimeoutMs = 10_000
const namespaceBytesMax = 1024 * 1024
/** A UUID, except of version 8: Kubernetes uses version 4, and used version 1 before 1.16. */
const clusterUid = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-79a-f][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export interface HttpOriginOptions {
  readonly client: Pick<OriginClient, 'request' | 'close'>
  readonly clock?: Clock | undefined
  /** Uniform in [0, 1). */
  readonly random?: (() => number) | undefined
  /** A larger page is requested again with fewer items. */
  readonly pageBytesMax?: (() => number) | undefined
  /** A larger event cannot be listed. */
  readonly itemBytesMax?: number | undefined
}

export class HttpOrigin implements Origin {
  readonly #client: HttpOriginOptions['client']
  readonly #clock: Clock
  readonly #random: () => number
  readonly #itemBytesMax: number
  readonly #pageBytesMax: () => number

  constructor(options: HttpOriginOptions) {
    this.#client = options.client
    this.#clock = options.clock ?? monotonicClock
    this.#random = options.random ?? Math.random
    this.#itemBytesMax = options.itemBytesMax ?? itemBytesMaxDefault
    this.#pageBytesMax = options.pageBytesMax ?? (() => this.#itemBytesMax)
  }

  async listPage(options: ListPageOptions): Promise<OriginPage> {
    const { namespace, continueToken, signal } = options
    for (let { limit } = options; ; limit = Math.max(1, Math.floor(limit / limitShrinks))) {
      const query = new URLSearchParams({ limit: String(limit) })
      if (continueToken !== undefined) query.set('continue', continueToken)
      const response = await this.#get(namespace, query, {
        accept: `${protobuf}, application/json`,
        idleTimeoutMs: bodyIdleTimeoutMs,
        signal,
      })
      const bytesMax = limit > 1 ? this.#pageBytesMax() : this.#itemBytesMax
      const body = await collected(response, bytesMax, signal)
      if (body === 'too-long' && limit > 1) continue
      if (body === 'too-long') throw new OriginError('unavailable', 'a single event is too large')
      return await decodedPage(body, wireFormOf(response.headers['content-type']))
    }
  }

  async *watch(options: OriginWatchOptions): AsyncGenerator<OriginChange, void, undefined> {
    const { namespace, from, signal } = options
    const seconds = watchSecondsMin + this.#random() * (watchSecondsMax - watchSecondsMin)
    const query = new URLSearchParams({
      watch: '1',
      allowWatchBookmarks: 'true',
      resourceVersion: from,
      timeoutSeconds: String(Math.round(seconds)),
    })
    const response = await this.#get(namespace, query, {
      accept: `${protobuf};stream=watch, application/json`,
      idleTimeoutMs: watchIdleTimeoutMs,
      signal,
    })
    options.onOpen?.()
    const form = wireFormOf(response.headers['content-type'])
    let bytesAt = this.#clock.now()
    try {
      const onBytes = (): void => {
        bytesAt = this.#clock.now()
      }
      yield* changesIn(response.body, form, onBytes)
    } catch (error) {
      if (!(error instanceof OriginClientError)) throw error
      // Idle rather than broken: the caller starts a new watch.
      if (this.#clock.now() - bytesAt >= watchIdleTimeoutMs) return
      throw unavailable(error)
    } finally {
      response.dispose()
    }
  }

  async clusterUid(signal: AbortSignal): Promise<string | undefined> {
    try {
      const response = await this.#read('/api/v1/namespaces/kube-system', {
        accept: 'application/json',
        timeoutMs: uidTimeoutMs,
        idleTimeoutMs: uidTimeoutMs,
        signal,
      })
      const body = await collected(response, namespaceBytesMax, signal)
      return body === 'too-long' ? undefined : uidIn(body)
    } catch (error) {
      if (error instanceof OriginError && error.kind === 'refused') return undefined
      throw error
    }
  }

  close(): void {
    this.#client.close()
  }

  #get(
    namespace: string | undefined,
    query: URLSearchParams,
    options: Omit<ReadOptions, 'timeoutMs'>,
  ): Promise<OriginResponse> {
    const scope = namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`
    const path = `/api/v1${scope}/events?${query}`
    return this.#read(path, { ...options, timeoutMs: headersTimeoutMs })
  }

  /** Rejects with an OriginError unless the status is 200. */
  async #read(
    path: string,
    { accept, timeoutMs, idleTimeoutMs, signal }: ReadOptions,
  ): Promise<OriginResponse> {
    const response = await this.#request({
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

  async #request(request: Parameters<OriginClient['request']>[0]): Promise<OriginResponse> {
    try {
      return await this.#client.request(request)
    } catch (error) {
      throw error instanceof OriginClientError ? unavailable(error) : error
    }
  }
}

interface ReadOptions {
  readonly accept: string
  /** Limits the time from the start of the request to the response headers. */
  readonly timeoutMs: number
  readonly idleTimeoutMs: number
  readonly signal: AbortSignal
}

/**
 * Undefined for a uid of version 8: tidings derives those of its namespaces from their names, so they
 * are equal in all installations. Also undefined for anything but JSON, such as the page of a proxy.
 */
function uidIn(namespace: Buffer): string | undefined {
  const object = parsedJson(namespace)
  const metadata = isObject(object) ? memberOf(object, 'metadata') : undefined
  const uid = isObject(metadata) ? memberOf(metadata, 'uid') : undefined
  return typeof uid === 'string' && clusterUid.test(uid) ? uid : undefined
}

async function decodedPage(body: Buffer, form: WireForm): Promise<OriginPage> {
  try {
    return await decodePage(body, form)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new OriginError('unavailable', `the response is not a list of events: ${truncate(why)}`, {
      cause,
    })
  }
}

async function* changesIn(
  body: AsyncIterable<Buffer>,
  form: WireForm,
  onBytes: () => void,
): AsyncGenerator<OriginChange, void, undefined> {
  const frames = form === 'json' ? new LineSplitter() : new MessageSplitter()
  let count = 0
  let unreadable = 0
  for await (const chunk of body) {
    onBytes()
    for (const frame of frames.push(chunk)) {
      // A consumer that takes frames without waiting must not block the event loop.
      if (++count % framesPerTurn === 0) await yieldToEventLoop()
      const change = changeIn(frame, form)
      unreadable = change.type === 'unreadable' ? unreadable + 1 : 0
      if (unreadable > unreadableMax) {
        throw new OriginError('unavailable', 'the origin sends a watch that cannot be decoded')
      }
      yield change
    }
  }
}

function changeIn(frame: Buffer | 'too-long', form: WireForm): OriginChange {
  if (frame === 'too-long') return { type: 'unreadable' }
  const change = decodeChange(frame, form)
  if (change.type !== 'error') return change
  throw refusal({ status: change.status.code, ...change.status }, undefined)
}

async function collected(
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
