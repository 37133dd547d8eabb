import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2'
import { connect, constants } from 'node:http2'
import { isObject, type Json } from '../../src/lib/json.ts'

/**
 * The Event API as a program would call it: one TLS connection, HTTP/2, any number of requests and
 * watches side by side. Answers are read whole; only `watch` hands out what it gets as it comes.
 */

/** Where to, and as whom. */
export interface EventClientOptions {
  readonly port: number
  readonly ca: string
  /** Undefined asks as nobody. */
  readonly token?: string | undefined
}

/** An event as it goes over the wire; only what tests look at is named. */
export interface WireEvent {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly resourceVersion?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly reason?: string
  readonly note?: string
  readonly [field: string]: unknown
}

export interface WireList {
  readonly metadata: {
    readonly resourceVersion: string
    readonly continue?: string
    readonly remainingItemCount?: number
  }
  readonly items: readonly WireEvent[]
}

/** One line of a watch. `object` is a Status in an ERROR. */
export interface WatchFrame {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly object: WireEvent & { readonly code?: number; readonly message?: string }
}

export interface ApiCall {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
}

export interface ApiAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** `Query` values go into the URL as they are, escaped. */
export type Query = Readonly<Record<string, string | number | boolean>>

export type PatchType = 'json-patch' | 'merge-patch' | 'strategic-merge-patch'

/** An answer that is not a success, with the Status the server gave as its reason. */
export class ApiError extends Error {
  readonly status: number
  readonly reason: string
  readonly body: string

  constructor(call: ApiCall, { status, body }: ApiAnswer) {
    const text = body.toString('utf8')
    super(`${call.method ?? 'GET'} ${call.path}: ${status} ${text.slice(0, 500)}`)
    this.status = status
    this.reason = reasonOf(text)
    this.body = text
  }
}

/** The stream ended without an answer, or within one. */
export class CutError extends Error {
  /** Of HTTP/2; REFUSED_STREAM is the server's word that it did nothing for this request. */
  readonly code: number | undefined

  constructor({ rstCode }: ClientHttp2Stream, options?: ErrorOptions) {
    super(`the stream was cut, code ${rstCode}`, options)
    this.code = rstCode
  }
}

/** Large enough that a reader who keeps up never holds the server back. */
const STREAM_WINDOW_BYTES = 1024 * 1024
const SESSION_WINDOW_BYTES = 32 * 1024 * 1024

/** One connection to one replica, closed at the end of the scope. */
export class EventClient implements Disposable {
  readonly session: ClientHttp2Session
  readonly #headers: Readonly<Record<string, string>>

  /** Resolves when connected. */
  static open(options: EventClientOptions): Promise<EventClient> {
    const { promise, resolve, reject } = Promise.withResolvers<EventClient>()
    const session = connect(`https://127.0.0.1:${options.port}`, {
      ca: options.ca,
      settings: { initialWindowSize: STREAM_WINDOW_BYTES, enablePush: false },
    })
    session.on('error', reject) // Later ones show in the streams they cut.
    session.once('connect', () => {
      session.setLocalWindowSize(SESSION_WINDOW_BYTES)
      resolve(new EventClient(session, options))
    })
    return promise
  }

  private constructor(session: ClientHttp2Session, options: EventClientOptions) {
    this.session = session
    this.#headers = options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }
  }

  /** The path of the events of a namespace, of all of them, or of one event. */
  path(namespace: string | undefined, name?: string): string {
    if (namespace === undefined) return `${BASE}/events`
    const collection = `${BASE}/namespaces/${namespace}/events`
    return name === undefined ? collection : `${collection}/${name}`
  }

  /** Any call, with the answer as it is, whatever its status. */
  request(call: ApiCall): Promise<ApiAnswer> {
    return answerOf(this.send(call))
  }

  /** Starts a call and leaves its answer to the caller. */
  send({ method = 'GET', path, headers, body }: ApiCall): ClientHttp2Stream {
    const stream = this.session.request(
      { ':method': method, ':path': path, ...this.#headers, ...headers },
      { endStream: body === undefined },
    )
    stream.on('error', () => {}) // Whoever reads it gets to know.
    if (body !== undefined) stream.end(body)
    return stream
  }

  create(event: WireEvent): Promise<WireEvent> {
    return this.#answer({
      method: 'POST',
      path: this.path(event.metadata.namespace),
      headers: JSON_BODY,
      body: JSON.stringify(event),
    })
  }

  get(namespace: string, name: string, query: Query = {}): Promise<WireEvent> {
    return this.#answer({ path: this.path(namespace, name) + queryText(query) })
  }

  list(namespace: string | undefined, query: Query = {}): Promise<WireList> {
    return this.#answer({ path: this.path(namespace) + queryText(query) })
  }

  update(event: WireEvent): Promise<WireEvent> {
    return this.#answer({
      method: 'PUT',
      path: this.path(event.metadata.namespace, event.metadata.name),
      headers: JSON_BODY,
      body: JSON.stringify(event),
    })
  }

  patch(
    namespace: string,
    name: string,
    { type, patch }: { readonly type: PatchType; readonly patch: unknown },
  ): Promise<WireEvent> {
    return this.#answer({
      method: 'PATCH',
      path: this.path(namespace, name),
      headers: { 'content-type': `application/${type}+json` },
      body: JSON.stringify(patch),
    })
  }

  async delete(namespace: string, name: string): Promise<void> {
    await this.#answer({ method: 'DELETE', path: this.path(namespace, name) })
  }

  /** Resolves when the server has begun to answer; an answer other than 200 is an ApiError. */
  watch(namespace: string | undefined, query: Query = {}): Promise<EventWatch> {
    const call = { path: this.path(namespace) + queryText({ ...query, watch: true }) }
    const stream = this.send(call)
    const { promise, resolve, reject } = Promise.withResolvers<EventWatch>()
    stream.once('response', (headers) => {
      const status = Number(headers[':status'])
      if (status === 200) resolve(new EventWatch(stream))
      else answerOf(stream, headers).then((answer) => reject(new ApiError(call, answer)), reject)
    })
    stream.once('close', () => reject(new CutError(stream)))
    return promise
  }

  async #answer<T>(call: ApiCall): Promise<T> {
    const answer = await this.request(call)
    if (answer.status >= 300) throw new ApiError(call, answer)
    return JSON.parse(answer.body.toString('utf8'))
  }

  [Symbol.dispose](): void {
    this.session.destroy()
  }
}

/**
 * One watch under way. Walking over it gives frame after frame; the walk is over when the server
 * ends the stream in order, and throws when the stream was cut.
 */
export class EventWatch implements AsyncIterable<WatchFrame>, Disposable {
  /** For readers who take the bytes themselves. */
  readonly stream: ClientHttp2Stream

  constructor(stream: ClientHttp2Stream) {
    this.stream = stream
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchFrame> {
    let rest = ''
    this.stream.setEncoding('utf8')
    try {
      for await (const chunk of this.stream) {
        const lines = (rest + chunk).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) yield JSON.parse(line)
      }
    } catch (cause) {
      throw new CutError(this.stream, { cause })
    }
    // Node ends the readable side of a stream also when it was reset.
    const { rstCode } = this.stream
    if (rstCode !== undefined && rstCode !== constants.NGHTTP2_NO_ERROR) {
      throw new CutError(this.stream)
    }
    if (rest !== '') throw new Error(`the watch ended within a frame: ${rest.slice(0, 200)}`)
  }

  /** Walks away. */
  [Symbol.dispose](): void {
    this.stream.close(constants.NGHTTP2_CANCEL)
  }
}

interface EventFields {
  readonly labels?: Readonly<Record<string, string>>
  readonly [field: string]: unknown
}

/** A complete event; `fields` go over what it has, `labels` into its metadata. */
export function makeEvent(
  namespace: string,
  name: string,
  { labels, ...fields }: EventFields = {},
): WireEvent {
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name, namespace, ...(labels === undefined ? {} : { labels }) },
    eventTime: '2026-01-02T03:04:05.000006Z',
    reportingController: 'example.com/tester',
    reportingInstance: 'tester-0',
    action: 'Testing',
    reason: 'Tested',
    regarding: { apiVersion: 'v1', kind: 'Pod', namespace, name: 'pod-0' },
    note: 'one of many',
    type: 'Normal',
    ...fields,
  }
}

const BASE = '/apis/events.k8s.io/v1'
const JSON_BODY = { 'content-type': 'application/json' } as const

function queryText(query: Query): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) params.append(name, String(value))
  return params.size === 0 ? '' : `?${params}`
}

/**
 * Listens from the first moment: a stream that has closed before somebody reads it has nothing
 * left to read.
 */
function answerOf(stream: ClientHttp2Stream, known?: IncomingHttpHeaders): Promise<ApiAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<ApiAnswer>()
  let head = known
  let isEnded = false
  const chunks: Buffer[] = []
  stream.on('response', (headers) => {
    head = headers
  })
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  stream.on('end', () => {
    isEnded = true
  })
  stream.on('close', () => {
    if (head === undefined || !isEnded || stream.rstCode !== constants.NGHTTP2_NO_ERROR) {
      reject(new CutError(stream))
    } else {
      const body = chunks.length === 1 ? (chunks[0] ?? nothing) : Buffer.concat(chunks)
      resolve({ status: Number(head[':status']), headers: head, body })
    }
  })
  return promise
}

const nothing = Buffer.alloc(0)

function reasonOf(text: string): string {
  try {
    const status: Json = JSON.parse(text)
    return isObject(status) ? String(status['reason']) : ''
  } catch {
    return ''
  }
}
