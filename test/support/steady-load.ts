import http2 from 'node:http2'
import https from 'node:https'
import type { Tidings } from './tidings.ts'

/** The results of a steady load. */
export interface LoadReport {
  readonly answered: number
  /** Requests that failed, with the time since the start of the load and the reason. */
  readonly failed: readonly { readonly atMs: number; readonly why: string }[]
  /** When the first connection was refused, counted from the start of the load. */
  readonly refusedAtMs: number | undefined
}

export interface Load {
  stop(): Promise<LoadReport>
}

interface Tally {
  answered: number
  failed: { atMs: number; why: string }[]
  refusedAtMs: number | undefined
}

/**
 * Sends requests at a fixed rate, whether or not responses arrive (an open loop), as a well-behaved
 * client: it closes a connection when the server asks for it, and retries only requests that the
 * protocol reports as not processed (REFUSED_STREAM, or a stream after the last one that a GOAWAY
 * names). A refused connection is the expected end, not a failure.
 */
export function steadyLoad(
  server: Tidings,
  options: { readonly path: string; readonly perSecond: number; readonly protocol: 'h1' | 'h2' },
): Load {
  const startedAt = performance.now()
  const tally: Tally = { answered: 0, failed: [], refusedAtMs: undefined }
  const send = options.protocol === 'h1' ? http1Sender(server) : http2Sender(server)
  const underWay = new Set<Promise<void>>()
  const onceMoreIfUnseen = (error: Error): Promise<number> => {
    if (!(error instanceof UnseenError)) throw error
    return send.get(options.path)
  }
  const timer = setInterval(() => {
    const sent = send
      .get(options.path)
      .catch(onceMoreIfUnseen)
      .then(
        (status) => {
          if (status === 200) tally.answered += 1
          else tally.failed.push({ atMs: performance.now() - startedAt, why: `status ${status}` })
        },
        (error: NodeJS.ErrnoException) => {
          const atMs = performance.now() - startedAt
          // HTTP/2 reports it as the cause of a cancelled stream.
          if (error.message.includes('ECONNREFUSED')) tally.refusedAtMs ??= atMs
          else tally.failed.push({ atMs, why: `${error.code} ${error.message}` })
        },
      )
    underWay.add(sent)
    void sent.finally(() => underWay.delete(sent))
  }, 1000 / options.perSecond)
  return {
    stop: async () => {
      clearInterval(timer)
      await Promise.all(underWay)
      send.close()
      return tally
    },
  }
}

interface Sender {
  get(path: string): Promise<number>
  close(): void
}

function http1Sender(server: Tidings): Sender {
  const agent = new https.Agent({ keepAlive: true, maxSockets: 20, ca: server.ca })
  return {
    get: (path) =>
      new Promise((resolve, reject) => {
        const request = https.get(
          { host: '127.0.0.1', port: server.port, path, agent },
          (answer) => {
            answer.on('error', reject).on('end', () => resolve(answer.statusCode ?? 0))
            answer.resume()
          },
        )
        request.on('error', reject)
      }),
    close: () => agent.destroy(),
  }
}

/** The server has reported that it did not process this request. */
class UnseenError extends Error {}

function http2Sender(server: Tidings): Sender {
  let session: http2.ClientHttp2Session | undefined
  const lastServed = new WeakMap<http2.ClientHttp2Session, number>()
  const connect = (): http2.ClientHttp2Session => {
    const fresh = http2.connect(`https://127.0.0.1:${server.port}`, { ca: server.ca })
    const leave = (): void => {
      if (session === fresh) session = undefined
    }
    fresh.on('goaway', (_code, lastStreamId) => {
      lastServed.set(fresh, lastStreamId)
      leave()
    })
    fresh.on('close', leave).on('error', leave)
    return fresh
  }
  const get = (path: string): Promise<number> =>
    new Promise((resolve, reject) => {
      session ??= connect()
      const owner = session
      const stream = owner.request({ ':path': path })
      const fail = (error: Error): void => {
        const isUnseen =
          error.message.includes('NGHTTP2_REFUSED_STREAM') ||
          (stream.id ?? 0) > (lastServed.get(owner) ?? Number.POSITIVE_INFINITY)
        reject(isUnseen ? new UnseenError(error.message) : error)
      }
      owner.once('error', fail)
      let status = 0
      stream.on('response', (headers) => {
        status = headers[':status'] ?? 0
      })
      stream.on('error', fail)
      stream.on('end', () => {
        if (status !== 0) resolve(status)
      })
      stream.on('close', () => {
        owner.off('error', fail)
        fail(new Error('the stream was closed without a response'))
      })
      stream.resume()
    })
  return { get, close: () => session?.close() }
}
