import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'

export interface RollingClientOptions {
  readonly port: number
  readonly ca: string
  readonly token: string
}

/** How a request ended: with a status, or how it was lost. */
export type Outcome = number | 'refused-stream' | 'not-sent' | 'lost'

export interface RollingCall {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: string | undefined
  /** Default JSON. */
  readonly contentType?: string
}

export interface RollingAnswer {
  readonly outcome: Outcome
  /** Where the response was cut, and with which code. */
  readonly body: string
}

const ATTEMPTS_MAX = 5
const RECONNECT_MS = 100

/**
 * Retries a request that was not processed, as clients should; `onOutcome` gets the outcome of
 * every attempt.
 */
export async function retried(
  send: () => Promise<RollingAnswer>,
  onOutcome: (outcome: Outcome) => void,
): Promise<RollingAnswer> {
  for (let attempt = 1; ; attempt++) {
    const answer = await send()
    const { outcome } = answer
    onOutcome(outcome)
    const mayRepeat = outcome === 'refused-stream' || outcome === 'not-sent'
    if (!mayRepeat || attempt === ATTEMPTS_MAX) return answer
    if (outcome === 'not-sent') await sleep(RECONNECT_MS)
  }
}

/**
 * A well-behaved client: one HTTP/2 connection for all requests, and a new one as soon as the
 * server sends GOAWAY. Requests in flight on the old one continue. Nothing is sent twice.
 */
export class RollingClient implements Disposable {
  readonly #options: RollingClientOptions
  #session: ClientHttp2Session | undefined
  connections = 0

  constructor(options: RollingClientOptions) {
    this.#options = options
  }

  async send({ method, path, body, contentType }: RollingCall): Promise<RollingAnswer> {
    const type = contentType ?? 'application/json'
    const stream = this.#open({
      ':method': method,
      ':path': path,
      ...(body === undefined ? {} : { 'content-type': type }),
    })
    if (stream === undefined) return { outcome: 'not-sent', body: '' }
    return answerOf(stream, body)
  }

  /** A long request, for the caller to read; undefined when it was not sent. */
  stream(path: string): ClientHttp2Stream | undefined {
    return this.#open({ ':method': 'GET', ':path': path })
  }

  #open(headers: Readonly<Record<string, string>>): ClientHttp2Stream | undefined {
    try {
      const authorization = `Bearer ${this.#options.token}`
      return this.#current().request({ ...headers, authorization })
    } catch {
      // The connection is known to be closing: nothing was sent.
      this.#session = undefined
      return undefined
    }
  }

  #current(): ClientHttp2Session {
    if (this.#session !== undefined && !this.#session.closed && !this.#session.destroyed) {
      return this.#session
    }
    const { port, ca } = this.#options
    const session = connect(`https://127.0.0.1:${port}`, { ca })
    const leave = (): void => {
      if (this.#session === session) this.#session = undefined
    }
    session.on('error', leave)
    session.on('goaway', leave)
    session.on('close', leave)
    this.#session = session
    this.connections += 1
    return session
  }

  [Symbol.dispose](): void {
    this.#session?.destroy()
  }
}

function answerOf(stream: ClientHttp2Stream, body: string | undefined): Promise<RollingAnswer> {
  return new Promise((resolve) => {
    let status: number | undefined
    let isWhole = false
    let text = ''
    stream.setEncoding('utf8')
    stream.on('response', (headers) => {
      status = headers[':status']
    })
    stream.on('data', (chunk: string) => {
      text += chunk
    })
    stream.on('error', () => {})
    stream.on('end', () => {
      isWhole = true
    })
    stream.on('close', () => {
      // Node ends the readable side of a stream also when it was reset.
      const isReset = stream.rstCode !== constants.NGHTTP2_NO_ERROR
      if (status !== undefined && isWhole && !isReset) resolve({ outcome: status, body: text })
      else {
        const body = `cut after ${text.length} characters, code ${stream.rstCode}`
        resolve({ outcome: cutOutcome(stream), body })
      }
    })
    stream.setTimeout(60_000, () => stream.close(constants.NGHTTP2_CANCEL))
    stream.end(body)
  })
}

/** How a request without a complete response ended. */
export function cutOutcome({ rstCode, id }: ClientHttp2Stream): Outcome {
  if (rstCode === constants.NGHTTP2_REFUSED_STREAM) return 'refused-stream'
  return id === undefined ? 'not-sent' : 'lost'
}
