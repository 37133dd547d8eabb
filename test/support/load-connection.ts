import http2 from 'node:http2'
import https from 'node:https'

/** How many requests a client may have open on one HTTP/2 connection. */
const STREAMS_MAX = 100
const HANDSHAKES_AT_ONCE = 50

export interface LoadTarget {
  readonly port: number
  readonly ca: string
}

export interface LoadExchange {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}

/** Called at the end of a response; the status is 0 if there was none. */
export type Done = (status: number, retryAfter: string | undefined) => void

/** One connection to a server under load. */
export interface LoadConnection {
  readonly openMax: number
  ask(exchange: LoadExchange, done: Done): void
  destroy(): void
}

type Note = (what: string) => void

/** Opens a few at a time: handshakes are not what is measured. */
export async function openAll(
  count: number,
  open: () => Promise<LoadConnection>,
): Promise<readonly LoadConnection[]> {
  const connections: LoadConnection[] = []
  while (connections.length < count) {
    const length = Math.min(HANDSHAKES_AT_ONCE, count - connections.length)
    connections.push(...(await Promise.all(Array.from({ length }, open))))
  }
  return connections
}

export async function openHttp2({ port, ca }: LoadTarget, note: Note): Promise<LoadConnection> {
  const session = http2.connect(`https://127.0.0.1:${port}`, { ca })
  session.on('error', (error) => note(`connection: ${error.message}`))
  session.on('goaway', (code) => note(`goaway ${code}`))
  await new Promise((settled) => session.once('remoteSettings', settled))
  const ask = ({ method, path, headers, body }: LoadExchange, done: Done): void => {
    const stream = session.request(
      { ':method': method, ':path': path, ...headers, ...lengthOf(body) },
      { endStream: body === undefined },
    )
    if (body !== undefined) stream.end(body)
    let status = 0
    let retryAfter: string | undefined
    stream.on('response', (answer) => {
      status = answer[':status'] ?? 0
      retryAfter = answer['retry-after']
    })
    stream.on('error', (error) => note(error.message))
    stream.on('close', () => done(status, retryAfter))
    stream.resume()
  }
  return { openMax: STREAMS_MAX, ask, destroy: () => session.destroy() }
}

export async function openHttp1({ port, ca }: LoadTarget, note: Note): Promise<LoadConnection> {
  const agent = new https.Agent({ ca, keepAlive: true, maxSockets: 1 })
  const ask = ({ method, path, headers, body }: LoadExchange, done: Done): void => {
    const to = { host: '127.0.0.1', port, agent, method, path }
    const request = https.request({ ...to, headers: { ...headers, ...lengthOf(body) } })
    let status = 0
    let retryAfter: string | undefined
    request.on('response', (answer) => {
      retryAfter = answer.headers['retry-after']
      answer.on('end', () => {
        status = answer.statusCode ?? 0
      })
      answer.resume()
    })
    request.on('error', (error) => note(error.message))
    request.on('close', () => done(status, retryAfter))
    request.end(body)
  }
  await new Promise<void>((opened) => {
    ask({ method: 'GET', path: '/livez', headers: {}, body: undefined }, () => opened())
  })
  return { openMax: 1, ask, destroy: () => agent.destroy() }
}

/** Clients of Kubernetes send the length. The server reserves 64 KiB for a body of unknown length. */
function lengthOf(body: string | undefined): { readonly 'content-length'?: number } {
  return body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
}
