import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2'
import { connect, constants } from 'node:http2'
import type { ConnectionOptions } from 'node:tls'
import type { Answer, Call } from './raw-http1.ts'
import { RawHttp1, requestHead } from './raw-http1.ts'

/** One connection of either protocol with the same interface, for tests of both. */
export interface Client extends Disposable {
  readonly protocol: Protocol
  request(call: Call): Promise<Answer>
  /** Sends a request and waits for the head of the response; the body is left to be read. */
  open(call: Call): Promise<OpenAnswer>
}

/** A response that has begun. */
export interface OpenAnswer {
  readonly status: number
  /** The next chunk of the body; undefined at its normal end. Rejects when it is cut. */
  read(): Promise<Buffer | undefined>
  /** Cancels the response. */
  leave(): void
}

export type Protocol = 'h1' | 'h2'
export const PROTOCOLS: readonly Protocol[] = ['h1', 'h2']

export function openClient(
  protocol: Protocol,
  port: number,
  options: ConnectionOptions = {},
): Promise<Client> {
  return protocol === 'h1' ? openHttp1(port, options) : openHttp2(port, options)
}

async function openHttp1(port: number, options: ConnectionOptions): Promise<Client> {
  const connection = await RawHttp1.open(port, options)
  return {
    protocol: 'h1',
    request: (call) => connection.request(call),
    open: async (call) => {
      connection.send(requestHead(call))
      const { status } = await connection.readHead()
      return {
        status,
        read: async () => {
          const chunk = await connection.readChunk()
          if (chunk === undefined) throw new Error('the response was cut')
          return chunk.length === 0 ? undefined : chunk
        },
        leave: () => connection.close(),
      }
    },
    [Symbol.dispose]: () => connection.close(),
  }
}

async function openHttp2(port: number, options: ConnectionOptions): Promise<Client> {
  const session = await openSession(port, options)
  return {
    protocol: 'h2',
    request: (call) => requestOn(session, call),
    open: async (call) => {
      const stream = startRequest(session, call)
      const { status } = await headOf(stream)
      const chunks = stream[Symbol.asyncIterator]()
      return {
        status,
        read: async () => {
          const { value, done } = await chunks.next()
          if (done === true) assertClean(stream)
          return done === true ? undefined : value
        },
        leave: () => stream.close(8),
      }
    },
    [Symbol.dispose]: () => session.destroy(),
  }
}

export function openSession(
  port: number,
  options: ConnectionOptions = {},
): Promise<ClientHttp2Session> {
  return new Promise((resolve, reject) => {
    const session = connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false, ...options })
    session.once('error', reject)
    session.once('connect', () => {
      session.off('error', reject)
      // Sessions that are meant to be cut report it through their streams and 'close'.
      session.on('error', () => {})
      resolve(session)
    })
  })
}

/** The server has reported that the request was not processed: it can be sent elsewhere. */
export class RefusedError extends Error {}

export async function requestOn(session: ClientHttp2Session, call: Call): Promise<Answer> {
  const stream = startRequest(session, call)
  const informational: number[] = []
  stream.on('headers', (headers: IncomingHttpHeaders) =>
    informational.push(Number(headers[':status'])),
  )
  const { status, headers } = await headOf(stream)
  const chunks: Buffer[] = []
  let isWhole = true
  try {
    for await (const chunk of stream) chunks.push(chunk)
    assertClean(stream)
  } catch {
    isWhole = false
  }
  return { status, headers, body: Buffer.concat(chunks), isWhole, informational }
}

export function startRequest(session: ClientHttp2Session, call: Call): ClientHttp2Stream {
  const { method = 'GET', path = '/', headers, body } = call
  const isBodiless = body === undefined
  const stream = session.request(
    { ':method': method, ':path': path, ...headers },
    { endStream: isBodiless },
  )
  // A stream may be cut at any point; the reader gets a rejected read.
  stream.on('error', () => {})
  if (!isBodiless) stream.end(body)
  return stream
}

function headOf(
  stream: ClientHttp2Stream,
): Promise<{ status: number; headers: Record<string, string> }> {
  return new Promise((resolve, reject) => {
    const onClose = (): void => {
      const isRefused = stream.rstCode === constants.NGHTTP2_REFUSED_STREAM
      if (isRefused) reject(new RefusedError('the server has not processed this request'))
      else reject(new Error(`the stream ended before a response, code ${stream.rstCode}`))
    }
    stream.once('close', onClose)
    stream.once('response', (received) => {
      stream.off('close', onClose)
      const headers: Record<string, string> = {}
      for (const [name, value] of Object.entries(received)) headers[name] = String(value)
      resolve({ status: Number(received[':status']), headers })
    })
  })
}

/** Node ends the readable side of a stream also when it was reset without an error code. */
function assertClean(stream: ClientHttp2Stream): void {
  if (stream.rstCode !== undefined && stream.rstCode !== 0) {
    throw new Error(`the response was cut with code ${stream.rstCode}`)
  }
}
