import { once } from 'node:events'
import type { ConnectionOptions, TLSSocket } from 'node:tls'
import { openTls, PATIENCE_MS } from './raw-http1.ts'

/** HTTP/2 frame by frame, for frames that a client library would refuse to send. */

export const FRAME = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const

export const FLAG = { endStream: 1, ack: 1, endHeaders: 4 } as const

export interface Frame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'

export function frame(type: number, flags: number, stream: number, payload?: Uint8Array): Buffer {
  const body = payload ?? Buffer.alloc(0)
  const head = Buffer.alloc(9)
  head.writeUIntBE(body.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, body])
}

/** A header block in the plainest form of HPACK: every field literal, without indexing. */
export function headerBlock(fields: Readonly<Record<string, string>>): Buffer {
  const parts: Buffer[] = []
  for (const [name, value] of Object.entries(fields)) {
    parts.push(Buffer.from([0]), hpackString(name), hpackString(value))
  }
  return Buffer.concat(parts)
}

export function requestFields(method: string, path: string): Record<string, string> {
  return { ':method': method, ':scheme': 'https', ':authority': 'localhost', ':path': path }
}

/** A field that goes into the dynamic table: from then on it is the first entry. */
export function longField(length: number): Buffer {
  return Buffer.concat([
    Buffer.from([0x40]),
    hpackString('x-long'),
    hpackString('x'.repeat(length)),
  ])
}

/** A whole GET in one frame; `more` is appended to its header block. */
export function getFrame(stream: number, path = '/', more: Buffer = Buffer.alloc(0)): Buffer {
  const block = Buffer.concat([headerBlock(requestFields('GET', path)), more])
  return frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, stream, block)
}

/** The head of a request whose body follows. */
export function postFrame(stream: number, path = '/', extra: Record<string, string> = {}): Buffer {
  const block = headerBlock({ ...requestFields('POST', path), ...extra })
  return frame(FRAME.headers, FLAG.endHeaders, stream, block)
}

export function resetFrame(stream: number, code: number): Buffer {
  const payload = Buffer.alloc(4)
  payload.writeUInt32BE(code)
  return frame(FRAME.rstStream, 0, stream, payload)
}

/** A connection that collects the frames it receives; it acknowledges settings by itself. */
export class RawHttp2 {
  readonly socket: TLSSocket
  readonly frames: Frame[] = []
  readonly closed: Promise<void>
  isClosed = false
  #acknowledges = false
  #held: Buffer = Buffer.alloc(0)
  readonly #watchers = new Set<() => void>()

  /**
   * `preface` false leaves even the preface to the caller; `acknowledge` false sends it and then
   * ignores the server's settings.
   */
  static async open(
    port: number,
    options: ConnectionOptions & {
      readonly preface?: boolean
      readonly acknowledge?: boolean
    } = {},
  ): Promise<RawHttp2> {
    const { preface = true, acknowledge = true, ...tls } = options
    const client = new RawHttp2(await openTls(port, { ALPNProtocols: ['h2'], ...tls }))
    if (preface) client.greet()
    client.#acknowledges = preface && acknowledge
    return client
  }

  /** Takes a connection whose handshake has already begun. */
  static async over(socket: TLSSocket): Promise<RawHttp2> {
    await once(socket, 'secureConnect')
    socket.on('error', () => {})
    const client = new RawHttp2(socket)
    client.greet()
    return client
  }

  private constructor(socket: TLSSocket) {
    this.socket = socket
    socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    this.closed = new Promise((resolve) => {
      const onEnd = (): void => {
        this.isClosed = true
        this.#notify()
        resolve()
      }
      socket.once('end', onEnd)
      socket.once('close', onEnd)
    })
  }

  greet(): void {
    this.#acknowledges = true
    this.send(Buffer.from(PREFACE), frame(FRAME.settings, 0, 0))
  }

  /**
   * Resolves when both sides have acknowledged the settings: from here on nothing is sent unasked.
   */
  async settled(): Promise<void> {
    await this.find((one) => one.type === FRAME.settings && (one.flags & FLAG.ack) !== 0)
    await this.find((one) => one.type === FRAME.settings && (one.flags & FLAG.ack) === 0)
  }

  /** Sends the frames in one write, so that the server is likely to get all of them in one read. */
  send(...frames: readonly Uint8Array[]): void {
    if (!this.socket.destroyed) this.socket.write(Buffer.concat(frames))
  }

  /**
   * The first frame, received already or later, that matches; undefined when the connection ends
   * first.
   */
  async find(fits: (frame: Frame) => boolean): Promise<Frame | undefined> {
    const deadline = Date.now() + PATIENCE_MS
    for (;;) {
      const found = this.frames.find(fits)
      if (found !== undefined || this.isClosed) return found
      if (Date.now() > deadline) throw new Error('the frame did not come in time')
      await this.#change(deadline - Date.now())
    }
  }

  /** Waits for the end of a response; undefined when the stream or the connection was cut. */
  async answer(stream: number): Promise<Buffer | undefined> {
    const isOfStream = (frame: Frame): boolean => frame.stream === stream
    const last = await this.find(
      (frame) =>
        isOfStream(frame) &&
        (frame.type === FRAME.rstStream || (frame.flags & FLAG.endStream) !== 0),
    )
    if (last === undefined || last.type === FRAME.rstStream) return undefined
    const data = this.frames.filter((frame) => isOfStream(frame) && frame.type === FRAME.data)
    return Buffer.concat(data.map((frame) => frame.payload))
  }

  close(): void {
    this.socket.destroy()
  }

  #receive(chunk: Buffer): void {
    this.#held = Buffer.concat([this.#held, chunk])
    while (this.#held.length >= 9) {
      const length = this.#held.readUIntBE(0, 3)
      if (this.#held.length < 9 + length) break
      this.#accept({
        type: this.#held[3] ?? 0,
        flags: this.#held[4] ?? 0,
        stream: this.#held.readUInt32BE(5) & 0x7fff_ffff,
        payload: this.#held.subarray(9, 9 + length),
      })
      this.#held = this.#held.subarray(9 + length)
    }
    this.#notify()
  }

  #accept(received: Frame): void {
    this.frames.push(received)
    const isSettings = received.type === FRAME.settings && (received.flags & FLAG.ack) === 0
    if (isSettings && this.#acknowledges) this.send(frame(FRAME.settings, FLAG.ack, 0))
  }

  #notify(): void {
    for (const watcher of this.#watchers) watcher()
  }

  #change(waitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        this.#watchers.delete(done)
        resolve()
      }
      const timer = setTimeout(done, waitMs)
      this.#watchers.add(done)
    })
  }
}

function hpackString(text: string): Buffer {
  const bytes = Buffer.from(text)
  return Buffer.concat([hpackInteger(bytes.length), bytes])
}

/** Seven bits in the first byte, the rest in groups of seven. */
function hpackInteger(value: number): Buffer {
  if (value < 127) return Buffer.from([value])
  const bytes = [127]
  let rest = value - 127
  while (rest >= 128) {
    bytes.push((rest % 128) | 128)
    rest = Math.floor(rest / 128)
  }
  bytes.push(rest)
  return Buffer.from(bytes)
}
