import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import type { Request } from './recording.ts'

/** How long a stream with all its expected frames must be silent until it counts as complete. */
const QUIET_MS = 150
/** The recorded times are those of a quiet machine; what is expected may take this much longer. */
const SLOWER_MAX = 20
const ANSWER_MS_MAX = 20_000

/** The response as it was received. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
  /** Whether the server ended it; false when the client stopped reading. */
  readonly ended: boolean
}

/** A request with all placeholders filled in. */
export interface Outgoing extends Pick<Request, 'method' | 'path' | 'watchMs'> {
  readonly headers: Readonly<Record<string, string>>
  readonly payload: string | undefined
  /** The number of expected frames of a stream; undefined: read until it ends. */
  readonly framesExpected: number | undefined
}

/** Sends HTTP/1.1 requests to the server under test, over kept connections. */
export class Client implements Disposable {
  private readonly base: URL
  private readonly agent: http.Agent

  constructor(base: string, options: { readonly ca?: string | undefined } = {}) {
    this.base = new URL(base)
    const kept = { keepAlive: true, maxSockets: 32 }
    this.agent =
      this.base.protocol === 'https:'
        ? new https.Agent({
            ...kept,
            ...(options.ca === undefined ? { rejectUnauthorized: false } : { ca: options.ca }),
          })
        : new http.Agent(kept)
  }

  async send(outgoing: Outgoing): Promise<Answer> {
    const { method, path, headers, payload } = outgoing
    const { protocol, hostname, port, pathname } = this.base
    const length =
      payload === undefined ? {} : { 'content-length': String(Buffer.byteLength(payload)) }
    const request = (protocol === 'https:' ? https : http).request({
      host: hostname,
      port,
      method,
      path: pathname.replace(/\/$/, '') + path,
      headers: { ...headers, ...length },
      agent: this.agent,
      timeout: ANSWER_MS_MAX,
    })
    request.on('timeout', () => request.destroy(new Error(`no response in ${ANSWER_MS_MAX} ms`)))
    request.end(payload)
    const [response] = (await once(request, 'response')) as [http.IncomingMessage]
    // From here on an error of the request is an error of the response, or our own close.
    request.on('error', () => {})
    const { body, ended } = await listen(response, outgoing)
    return { status: response.statusCode ?? 0, headers: response.headers, body, ended }
  }

  [Symbol.dispose](): void {
    this.agent.destroy()
  }
}

/** Reads to the end or, for a stream, until all expected frames have arrived and it is silent. */
function listen(
  response: http.IncomingMessage,
  { watchMs, framesExpected }: Outgoing,
): Promise<{ readonly body: Buffer; readonly ended: boolean }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ body: Buffer; ended: boolean }>()
  const chunks: Buffer[] = []
  const isBinary = response.headers['content-type']?.includes('protobuf') === true
  let quiet: NodeJS.Timeout | undefined
  const finish = (ended: boolean): void => {
    clearTimeout(latest)
    clearTimeout(quiet)
    resolve({ body: Buffer.concat(chunks), ended })
    if (!ended) response.destroy()
  }
  const latest =
    watchMs === undefined ? undefined : setTimeout(() => finish(false), watchMs * SLOWER_MAX)
  const settle = (): void => {
    if (watchMs === undefined || framesExpected === undefined) return
    if (framesIn(Buffer.concat(chunks), isBinary) < framesExpected) return
    clearTimeout(quiet)
    quiet = setTimeout(() => finish(false), QUIET_MS)
  }
  response.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    settle()
  })
  response.on('end', () => finish(true))
  response.on('error', (error) => {
    clearTimeout(latest)
    clearTimeout(quiet)
    reject(error)
  })
  settle()
  return promise
}

/** Counts the complete frames: lines, or messages that follow their length in four bytes. */
export function framesIn(body: Buffer, isBinary: boolean): number {
  let count = 0
  if (!isBinary) {
    for (const byte of body) if (byte === 0x0a) count++
    return count
  }
  for (let at = 0; at + 4 <= body.length; ) {
    at += 4 + body.readUInt32BE(at)
    if (at <= body.length) count++
  }
  return count
}
