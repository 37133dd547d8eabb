import type { OriginClient, OriginResponse } from '../../clusters/origin-client.ts'
import { collectBytes } from '../../lib/bytes/collect-bytes.ts'
import { isObject, type Json, type JsonObject, memberOf } from '../../lib/json.ts'
import { truncate } from '../../lib/text/truncate.ts'
import { FairSlots, type Slot } from '../limits/fair-slots.ts'

/** A review has a few KiB; a longer response is not a review. */
const RESPONSE_BYTES_MAX = 1024 * 1024
/** Maximum number of reviews in flight per client. */
export const REVIEWS_MAX = 32
/** Maximum number of waiting reviews. Another one fails at once, since it would only time out. */
const WAITING_MAX = 256
/** No effective limit, since the timeout of a review is shorter. */
const WAIT_MS = 60_000
const HEADERS = { 'content-type': 'application/json', accept: 'application/json' }

/** The message contains nothing of the review. */
export class ReviewError extends Error {
  override readonly name = 'ReviewError'
}

/** Sends a review, and rejects when there is no usable response. */
export interface Reviewer {
  post(body: object, options: PostOptions): Promise<JsonObject>
}

export interface PostOptions {
  /** Covers the wait for a slot and the whole response. */
  readonly timeoutMs: number
  /** The user or network that causes the request. Slots are shared fairly among these. */
  readonly sharer: string
}

export interface ReviewClientOptions {
  /** The path below the URL of the server. */
  readonly path: string
  /** The name of the server in messages, such as `the webhook`. */
  readonly peer: string
}

/** Posts reviews to one path of a server. */
export class ReviewClient implements Reviewer {
  readonly #client: Pick<OriginClient, 'request'>
  readonly #options: ReviewClientOptions
  readonly #slots = new FairSlots({
    limit: REVIEWS_MAX,
    waitingMax: WAITING_MAX,
    waitMs: () => WAIT_MS,
  })

  constructor(client: Pick<OriginClient, 'request'>, options: ReviewClientOptions) {
    this.#client = client
    this.#options = options
  }

  /** Rejects with a ReviewError unless a JSON object with status 2xx arrives in time. */
  async post(body: object, options: PostOptions): Promise<JsonObject> {
    const { timeoutMs, sharer } = options
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(), timeoutMs)
    const { signal } = late
    try {
      using _slot = await this.#enter(sharer, signal)
      const response = await this.#client.request({
        method: 'POST',
        path: this.#options.path,
        headers: HEADERS,
        body: Buffer.from(JSON.stringify(body)),
        signal,
        headersTimeoutMs: timeoutMs,
      })
      return this.#resultOf(response.status, await this.#textOf(response))
    } catch (cause) {
      if (cause instanceof ReviewError) throw cause
      if (signal.aborted) throw new ReviewError(`no response within ${timeoutMs} ms`)
      throw new ReviewError(`the request to ${this.#options.peer} failed`, { cause })
    } finally {
      clearTimeout(timer)
    }
  }

  async #enter(user: string, signal: AbortSignal): Promise<Slot> {
    const wanted = { user, width: 1 }
    const slot = this.#slots.tryEnter(wanted) ?? (await this.#slots.wait(wanted, signal))
    if (typeof slot === 'string') throw new ReviewError('too many requests in flight')
    return slot
  }

  async #textOf({ body }: OriginResponse): Promise<string> {
    const bytes = await collectBytes(body, RESPONSE_BYTES_MAX)
    if (bytes !== 'too-long') return bytes.toString()
    throw new ReviewError(`the response of ${this.#options.peer} is too long`)
  }

  #resultOf(status: number, text: string): JsonObject {
    const { peer } = this.#options
    const result = parsed(text)
    if (status < 200 || status > 299) {
      throw new ReviewError(`${peer} responded with status ${status}${reasonIn(result)}`)
    }
    if (!isObject(result)) throw new ReviewError(`the response of ${peer} is not a JSON object`)
    return result
  }
}

/** The message of a Status, for example that our own credentials may not create reviews. */
function reasonIn(result: Json | undefined): string {
  if (!isObject(result) || memberOf(result, 'kind') !== 'Status') return ''
  const message = memberOf(result, 'message')
  return typeof message === 'string' ? `: ${truncate(message)}` : ''
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    // The caller reports it, since undefined is not an object either.
    return undefined
  }
}
