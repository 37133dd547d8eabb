import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2'
import { connect, constants } from 'node:http2'
import { isObject, type Json } from '../../src/lib/json.ts'
import type { WatchFrame, WireEvent, WireList } from './wire-event.ts'

/**
 * A client of the Event API: one HTTP/2 connection over TLS, with any number of concurrent requests
 * and watches. Responses are read completely; only `watch` returns frames as they arrive.
 */

/** Server address and credentials. */
export interface EventClientOptions {
  readonly port: number
  readonly ca: string
  /** Undefined for an unauthenticated client. */
  readonly token?: string | undefined
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

/** `Query` values are escaped into the URL. */
export type Query = Readonly<Record<string, string | number | boolean>>

export type PatchType = 'json-patch' | 'merge-patch' | 'strategic-merge-patch'

/** A response that is not a success, with the Status that the server sent. */
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

/** The stream ended before or within the response. */
export class CutError extends Error {
  /**
   * The HTTP/2 error code; with REFUSED_STREAM the server reports that the request was not
   * processed.
   */
  readonly code: number | undefined

  constructor({ rstCode }: ClientHttp2Stream, options?: ErrorOptions) {
    super(`the stream was cut, code ${rstCode}`, options)
    this.code = rstCode
  }
}

/** Large enough that a reader who keeps up never applies backpressure to the server. */
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
    session.on('error', reject) // Later errors show in the streams they cut.
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

  /** The path of the events of a namespace, of all namespaces, or of one event. */
  path(namespace: string | undefined, name?: string): string {
    if (namespace === undefined) return `${BASE}/events`
    const collection = `${BASE}/namespaces/${namespace}/events`
    return name === undefined ? collection : `${collection}/${name}`
  }

  /** Any request; resolves with the response, whatever its status. */
  request(call: ApiCall): Promise<ApiAnswer> {
    return answerOf(this.send(call))
  }

  /** Starts a request; the caller reads the response. */
  send({ method = 'GET', path, headers, body }: ApiCall): ClientHttp2Stream {
    const stream = this.session.request(
      { ':method': method, ':path': path, ...this.#headers, ...headers },
      { endStream: body === undefined },
    )
    stream.on('error', () => {}) // The reader of the stream gets the error.
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

  /** Resolves when the response begins; a status other than 200 is an ApiError. */
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
 * One running watch. Iterating yields its frames; the iteration ends when the server ends the
 * stream normally, and throws when the stream was cut.
 */
export class EventWatch implements AsyncIterable<WatchFrame>, Disposable {
  /** The stream, for readers of the raw bytes. */
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

  /** Cancels the watch. */
  [Symbol.dispose](): void {
    this.stream.close(constants.NGHTTP2_CANCEL)
  }
}

const BASE = '/apis/events.k8s.io/v1'
const JSON_BODY = { 'content-type': 'application/json' } as const

function queryText(query: Query): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) params.append(name, String(value))
  return params.size === 0 ? '' : `?${params}`
}

/** Listens from the start: a stream that has closed before it is read has no data left to read. */
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
