/** The built program, over TLS, alternating between HTTP/1.1 and HTTP/2. */
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import http2 from 'node:http2'
import https from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEtcd } from '../../support/etcd.ts'
import { Tidings } from '../../support/tidings.ts'
import type { Answer, Ask, Target } from './target.ts'

const TOKEN = 'fuzz-token'
const ANSWER_MS_MAX = 20_000
/** How long a response without an end is read. */
const WATCH_MS = 200
/**
 * Node's client never releases the window that it counted for a body that the server rejected
 * before it was sent; with the default of 10 MB it resets its own streams after some twenty large
 * bodies.
 */
const SESSION_MB = 1000
/** The parser of HTTP/1.1 knows no other methods. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

export class OverSocket implements Target, AsyncDisposable {
  readonly #stack: AsyncDisposableStack
  readonly #server: Tidings
  readonly #agent: https.Agent
  #session: http2.ClientHttp2Session | undefined
  #asked = 0
  #linesSeen = 0

  static async start(): Promise<OverSocket> {
    const stack = new AsyncDisposableStack()
    const etcd = stack.use(await startEtcd())
    const folder = await mkdtemp(join(tmpdir(), 'tidings-fuzz-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    const tokenFile = join(folder, 'tokens.csv')
    await writeFile(tokenFile, `${TOKEN},fuzz,1,system:masters\n`)
    const flags = [`--etcd-servers=${etcd.endpoints[0]}`, `--token-auth-file=${tokenFile}`]
    const server = stack.use(await Tidings.start(flags))
    await server.until('/readyz', ({ status }) => status === 200, 10_000)
    return new OverSocket(stack, server)
  }

  private constructor(stack: AsyncDisposableStack, server: Tidings) {
    this.#stack = stack
    this.#server = server
    this.#agent = new https.Agent({ keepAlive: true, ca: server.ca, maxSockets: 8 })
  }

  async ask(ask: Ask): Promise<Answer> {
    const headers = {
      authorization: `Bearer ${TOKEN}`,
      ...ask.headers,
      ...(ask.body.length > 0 ? { 'content-length': String(ask.body.length) } : {}),
    }
    this.#asked += 1
    const isFirst = METHODS.has(ask.method) && (this.#asked % 2 === 0 || isLong(ask))
    return isFirst ? this.#askHttp1(ask, headers) : this.#askHttp2(ask, headers)
  }

  complaints(): readonly string[] {
    const { log, process } = this.#server
    const lines = log.slice(this.#linesSeen)
    this.#linesSeen = log.length
    return [
      ...(process.exitCode === null ? [] : [`the program ended with ${process.exitCode}`]),
      ...lines.filter((line) => isBad(line)).map((line) => JSON.stringify(line)),
    ]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#session?.destroy()
    this.#agent.destroy()
    await this.#stack.disposeAsync()
  }

  async #askHttp1(ask: Ask, headers: Record<string, string>): Promise<Answer> {
    const request = https.request({
      host: '127.0.0.1',
      port: this.#server.port,
      path: ask.target,
      method: ask.method,
      headers,
      agent: this.#agent,
      timeout: ANSWER_MS_MAX,
      maxHeaderSize: 65_536,
    })
    request.on('timeout', () => request.destroy(new Error('no response in time')))
    request.end(ask.body)
    const [response] = await once(request, 'response')
    request.on('error', () => {})
    const body = await contentOf(response, ask)
    response.destroy()
    return { status: response.statusCode ?? 0, headers: flat(response.headers), body }
  }

  async #askHttp2(ask: Ask, headers: Record<string, string>): Promise<Answer> {
    if (this.#session === undefined || this.#session.closed || this.#session.destroyed) {
      this.#session = http2.connect(`https://127.0.0.1:${this.#server.port}`, {
        ca: this.#server.ca,
        maxSendHeaderBlockLength: 1024 * 1024,
        maxSessionMemory: SESSION_MB,
      })
      this.#session.on('error', () => {})
    }
    const stream = this.#session.request(
      { ':path': ask.target, ':method': ask.method, ...headers },
      { endStream: ask.body.length === 0 },
    )
    stream.on('error', () => {})
    stream.setTimeout(ANSWER_MS_MAX, () => stream.destroy(new Error('no response in time')))
    if (ask.body.length > 0) stream.end(ask.body)
    const [answered] = await once(stream, 'response')
    const body = await contentOf(stream, ask)
    stream.destroy()
    return { status: answered[':status'], headers: flat(answered), body }
  }
}

/** The HTTP/2 library closes a connection for longer fields. */
function isLong({ target, headers }: Ask): boolean {
  return [target, ...Object.values(headers)].some((text) => text.length > 60_000)
}

function isBad({ msg }: { readonly msg: string }): boolean {
  return /Request failed|handler|bug|uncaught/i.test(msg)
}

/** Reads to the end, or for a watch the data that comes at once. */
async function contentOf(
  stream: AsyncIterable<Buffer> & { destroy(): void },
  { target }: Ask,
): Promise<Buffer> {
  const chunks: Buffer[] = []
  const isWatch = /\/watch\/|[?&]watch=/.test(target)
  const late = setTimeout(() => stream.destroy(), isWatch ? WATCH_MS : ANSWER_MS_MAX)
  try {
    for await (const chunk of stream) chunks.push(chunk)
  } catch {
    // Closed by this client: it was a watch.
  } finally {
    clearTimeout(late)
  }
  return Buffer.concat(chunks)
}

function flat(headers: object): Record<string, string> {
  const named = Object.entries(headers).filter(([name]) => !name.startsWith(':'))
  return Object.fromEntries(named.map(([name, value]) => [name, String(value)]))
}
