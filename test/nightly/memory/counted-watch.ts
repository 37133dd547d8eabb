import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type OutgoingHttpHeaders,
} from 'node:http2'

/** Offset of the first letter of the type in `{"type":"ADDED",...`. */
const TYPE_AT = 9
const LINE_FEED = 0x0a

/** Counts the frames of a watch by the first letter of their type, and discards them. */
export class CountedWatch {
  readonly #counts = new Map<string, number>()
  #column = 0
  /** Why the stream is over; undefined while it runs. */
  ended: string | undefined

  count(letter: 'A' | 'M' | 'D' | 'B' | 'E'): number {
    return this.#counts.get(letter) ?? 0
  }

  /** A frame may come in several chunks, and a chunk may have many frames. */
  take(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      const typeAt = at + TYPE_AT - this.#column
      if (this.#column <= TYPE_AT && typeAt < chunk.length) this.#add(chunk[typeAt] ?? 0)
      const end = chunk.indexOf(LINE_FEED, at)
      if (end < 0) {
        this.#column += chunk.length - at
        return
      }
      this.#column = 0
      at = end + 1
    }
  }

  #add(byte: number): void {
    const letter = String.fromCharCode(byte)
    this.#counts.set(letter, (this.#counts.get(letter) ?? 0) + 1)
  }
}

/** HTTP/2 sessions to one server, each for some of its streams. */
export class Sessions implements Disposable {
  readonly #sessions: readonly ClientHttp2Session[]
  readonly #authorizations: readonly string[]
  #next = 0

  /** One session for each token. */
  constructor(options: { port: number; ca: string; tokens: readonly string[] }) {
    this.#authorizations = options.tokens.map((token) => `Bearer ${token}`)
    this.#sessions = options.tokens.map(() =>
      connect(`https://127.0.0.1:${options.port}`, { ca: options.ca }),
    )
  }

  /** Resolves when the watch has begun. */
  async watch(path: string): Promise<CountedWatch> {
    const watch = new CountedWatch()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const stream = this.#request({ ':path': path })
    stream.on('response', ({ ':status': status }) =>
      status === 200 ? resolve() : reject(new Error(`a watch got ${status}`)),
    )
    stream.on('data', (chunk: Buffer) => watch.take(chunk))
    stream.on('error', (error) => {
      watch.ended = error.message
    })
    stream.on('close', () => {
      watch.ended ??= 'closed'
      reject(new Error(`a watch ended: ${watch.ended}`))
    })
    await promise
    return watch
  }

  /** The version of a list. */
  async versionOf(path: string): Promise<string> {
    const stream = this.#request({ ':path': path })
    const chunks: Buffer[] = []
    for await (const chunk of stream) chunks.push(chunk)
    return JSON.parse(Buffer.concat(chunks).toString()).metadata.resourceVersion
  }

  /** The status of the response. */
  async post(path: string, body: string): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/json' }
    const stream = this.#request(headers)
    stream.on('response', ({ ':status': status }) => resolve(status ?? 0))
    stream.on('error', reject)
    stream.resume()
    stream.end(body)
    return promise
  }

  #request(headers: OutgoingHttpHeaders): ClientHttp2Stream {
    const at = this.#next++ % this.#sessions.length
    const session = this.#sessions[at]
    if (session === undefined) throw new Error('there is no session')
    return session.request({ ...headers, authorization: this.#authorizations[at] })
  }

  [Symbol.dispose](): void {
    for (const session of this.#sessions) session.destroy()
  }
}
