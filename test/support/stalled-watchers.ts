import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import { connect as connectTls, type TLSSocket } from 'node:tls'

/** Server address, credentials, and the path to watch. */
export interface StalledOptions {
  readonly port: number
  readonly ca: string
  readonly token: string
  readonly path: string
  readonly http1: number
  readonly http2: number
}

const PER_SESSION = 50
/** So that a stream is limited by its own window and not by that of the session. */
const SESSION_WINDOW_BYTES = 64 * 1024 * 1024

/**
 * Watchers that send a request and then read no byte: streams that never open their window again,
 * and HTTP/1.1 connections that are not read. Closed at the end of the scope.
 */
export class StalledWatchers implements Disposable {
  readonly sockets: readonly TLSSocket[]
  readonly streams: readonly ClientHttp2Stream[]
  readonly #sessions: readonly ClientHttp2Session[]

  /** Resolves when the HTTP/2 responses have begun, and all requests have been sent. */
  static async open(options: StalledOptions): Promise<StalledWatchers> {
    const sockets: TLSSocket[] = []
    for (let index = 0; index < options.http1; index++) sockets.push(await openHttp1(options))
    const sessions: ClientHttp2Session[] = []
    const streams: ClientHttp2Stream[] = []
    while (streams.length < options.http2) {
      const session = connect(`https://127.0.0.1:${options.port}`, { ca: options.ca })
      session.on('error', () => {}) // Cut with the server at the end.
      await once(session, 'connect')
      session.setLocalWindowSize(SESSION_WINDOW_BYTES)
      sessions.push(session)
      const count = Math.min(PER_SESSION, options.http2 - streams.length)
      const opening = Array.from({ length: count }, () => openHttp2(session, options))
      streams.push(...(await Promise.all(opening)))
    }
    return new StalledWatchers(sockets, streams, sessions)
  }

  private constructor(
    sockets: readonly TLSSocket[],
    streams: readonly ClientHttp2Stream[],
    sessions: readonly ClientHttp2Session[],
  ) {
    this.sockets = sockets
    this.streams = streams
    this.#sessions = sessions
  }

  [Symbol.dispose](): void {
    for (const socket of this.sockets) socket.destroy()
    for (const session of this.#sessions) session.destroy()
  }
}

async function openHttp1({ port, ca, token, path }: StalledOptions): Promise<TLSSocket> {
  const socket = connectTls({ host: '127.0.0.1', port, ca, ALPNProtocols: ['http/1.1'] })
  socket.on('error', () => {}) // Cut with the server at the end.
  await once(socket, 'secureConnect')
  socket.pause()
  socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${token}\r\n\r\n`)
  return socket
}

async function openHttp2(
  session: ClientHttp2Session,
  { token, path }: StalledOptions,
): Promise<ClientHttp2Stream> {
  const stream = session.request({ ':path': path, authorization: `Bearer ${token}` })
  stream.on('error', () => {})
  stream.pause()
  const [headers] = await once(stream, 'response')
  if (headers[':status'] !== 200) throw new Error(`${path}: ${headers[':status']}`)
  return stream
}
