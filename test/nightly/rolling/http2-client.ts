import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2'

export interface RollingClientOptions {
  readonly port: number
  readonly ca: string
  readonly token: string
}

/** How a request ended: with a status, or how it was lost. */
export type Outcome = number | 'refused-stream' | 'not-sent' | 'lost'

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

  async request(method: 'GET' | 'POST', path: string, body?: string): Promise<Outcome> {
    let stream: ClientHttp2Stream
    try {
      stream = this.#current().request({
        ':method': method,
        ':path': path,
        authorization: `Bearer ${this.#options.token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      })
    } catch {
      // The connection is known to be closing: nothing was sent.
      this.#session = undefined
      return 'not-sent'
    }
    return outcomeOf(stream, body)
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

function outcomeOf(stream: ClientHttp2Stream, body: string | undefined): Promise<Outcome> {
  return new Promise((resolve) => {
    let status: number | undefined
    let isWhole = false
    stream.on('response', (headers) => {
      status = headers[':status']
    })
    stream.on('error', () => {})
    stream.on('end', () => {
      isWhole = true
    })
    stream.on('close', () => {
      if (status !== undefined && isWhole) resolve(status)
      else if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) resolve('refused-stream')
      else resolve(stream.id === undefined ? 'not-sent' : 'lost')
    })
    stream.setTimeout(60_000, () => stream.close(constants.NGHTTP2_CANCEL))
    stream.resume()
    stream.end(body)
  })
}
