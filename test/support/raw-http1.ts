import type { Socket } from 'node:net'
import { connect as connectPlain } from 'node:net'
import type { ConnectionOptions, TLSSocket } from 'node:tls'
import { connect as connectTls } from 'node:tls'

/**
 * HTTP/1.1 by hand. A client library hides what these tests check: whether a response was complete,
 * when a connection was closed, and what happens to bytes that no client library would send.
 */

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** The response ended as announced, not by a cut connection or stream. */
  readonly isWhole: boolean
  /** Statuses below 200 that came before it. */
  readonly informational: readonly number[]
}

export interface Call {
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

export const PATIENCE_MS = 15_000

/** A TLS connection that offers the given protocols; it does not verify the server by default. */
export function openTls(port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options })
    socket.once('error', reject)
    socket.once('secureConnect', () => {
      socket.off('error', reject)
      // Many of these connections are meant to be cut; tests use 'close'.
      socket.on('error', () => {})
      resolve(socket)
    })
  })
}

export function openPlain(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connectPlain({ host: '127.0.0.1', port })
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      socket.on('error', () => {})
      resolve(socket)
    })
  })
}

/** One HTTP/1.1 connection, requests one after the other. */
export class RawHttp1 {
  readonly socket: Socket
  readonly #source: ByteSource

  static async open(port: number, options: ConnectionOptions = {}): Promise<RawHttp1> {
    return new RawHttp1(await openTls(port, { ALPNProtocols: ['http/1.1'], ...options }))
  }

  static async openPlain(port: number): Promise<RawHttp1> {
    return new RawHttp1(await openPlain(port))
  }

  constructor(socket: Socket) {
    this.socket = socket
    this.#source = new ByteSource(socket)
  }

  /** Resolves when the server has closed the connection; what it still sends is read for that. */
  get closed(): Promise<void> {
    this.#source.start()
    return this.#source.closed
  }

  get isClosed(): boolean {
    return this.#source.isClosed
  }

  send(bytes: string | Uint8Array): void {
    this.socket.write(bytes)
  }

  async request(call: Call): Promise<Answer> {
    this.send(requestHead(call))
    if (call.body !== undefined) this.send(call.body)
    return await this.readAnswer(call.method)
  }

  /** Reads one response; missing body parts and cut ends show in `isWhole`. */
  async readAnswer(method = 'GET'): Promise<Answer> {
    const informational: number[] = []
    let head = await this.readHead()
    while (head.status < 200) {
      informational.push(head.status)
      head = await this.readHead()
    }
    const { body, isWhole } = await this.#readBody(head, method)
    return { ...head, body, isWhole, informational }
  }

  async readHead(): Promise<Head> {
    const bytes = await this.#source.readThrough('\r\n\r\n')
    if (bytes === undefined) throw new Error('the connection ended before the head of a response')
    const [statusLine = '', ...lines] = bytes.toString('latin1').trimEnd().split('\r\n')
    const headers: Record<string, string> = {}
    for (const line of lines) {
      const colon = line.indexOf(':')
      headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim()
    }
    return { status: Number(statusLine.split(' ')[1]), headers }
  }

  /** The next chunk of a chunked response; an empty one is its end, undefined a cut one. */
  async readChunk(): Promise<Buffer | undefined> {
    const size = await this.#source.readThrough('\r\n')
    if (size === undefined) return undefined
    const length = Number.parseInt(size.toString('latin1'), 16)
    const chunk = await this.#source.readExactly(length + 2)
    return chunk?.subarray(0, length)
  }

  close(): void {
    this.socket.destroy()
  }

  async #readBody(head: Head, method: string): Promise<{ body: Buffer; isWhole: boolean }> {
    const isBodiless = method === 'HEAD' || head.status === 204 || head.status === 304
    if (isBodiless) return { body: Buffer.alloc(0), isWhole: true }
    if (head.headers['transfer-encoding'] === 'chunked') return await this.#readChunks()
    const length = head.headers['content-length']
    if (length === undefined) return { body: await this.#source.readAll(), isWhole: false }
    const body = await this.#source.readExactly(Number(length))
    return { body: body ?? (await this.#source.readAll()), isWhole: body !== undefined }
  }

  async #readChunks(): Promise<{ body: Buffer; isWhole: boolean }> {
    const chunks: Buffer[] = []
    for (;;) {
      const chunk = await this.readChunk()
      if (chunk === undefined || chunk.length === 0) {
        return { body: Buffer.concat(chunks), isWhole: chunk !== undefined }
      }
      chunks.push(chunk)
    }
  }
}

export interface Head {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
}

/** The bytes of a request up to its body; a body without a given length gets a content-length. */
export function requestHead(call: Call): string {
  const { method = 'GET', path = '/', body } = call
  const headers: Record<string, string> = { host: 'localhost', ...call.headers }
  const isFramed = 'content-length' in headers || 'transfer-encoding' in headers
  if (body !== undefined && !isFramed) headers['content-length'] = String(Buffer.byteLength(body))
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`
}

/** The bytes of a socket, read on demand. Nothing is read before the first call. */
class ByteSource {
  readonly closed: Promise<void>
  readonly #socket: Socket
  #held: Buffer = Buffer.alloc(0)
  #isReading = false
  isClosed = false
  #wake: () => void = () => {}

  constructor(socket: Socket) {
    this.#socket = socket
    this.closed = new Promise((resolve) => {
      const onEnd = (): void => {
        this.isClosed = true
        this.#wake()
        resolve()
      }
      socket.once('close', onEnd)
      socket.once('end', onEnd)
    })
  }

  async readThrough(mark: string): Promise<Buffer | undefined> {
    let end = this.#held.indexOf(mark)
    while (end === -1) {
      if (!(await this.#more())) return undefined
      end = this.#held.indexOf(mark)
    }
    return this.#take(end + mark.length)
  }

  async readExactly(length: number): Promise<Buffer | undefined> {
    while (this.#held.length < length) if (!(await this.#more())) return undefined
    return this.#take(length)
  }

  async readAll(): Promise<Buffer> {
    while (await this.#more());
    return this.#take(this.#held.length)
  }

  start(): void {
    if (this.#isReading) return
    this.#isReading = true
    this.#socket.on('data', (chunk: Buffer) => {
      this.#held = Buffer.concat([this.#held, chunk])
      this.#wake()
    })
  }

  #take(length: number): Buffer {
    const taken = this.#held.subarray(0, length)
    this.#held = this.#held.subarray(length)
    return taken
  }

  /** True when there are more bytes than before, false when there never will be. */
  async #more(): Promise<boolean> {
    this.start()
    const before = this.#held.length
    if (this.isClosed) return false
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('nothing came in time')), PATIENCE_MS)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    return this.#held.length > before || !this.isClosed
  }
}
