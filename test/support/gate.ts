import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ConnectionOptions } from 'node:tls'
import { StatusError } from '../../src/api/status.ts'
import { statusResponse } from '../../src/endpoints/response/respond.ts'
import { admitted } from '../../src/gate/admitted.fixture.ts'
import { alwaysAllow } from '../../src/gate/authorization/standing-rights.ts'
import { Gate } from '../../src/gate/gate.ts'
import { NotIdentified } from '../../src/gate/refusal.ts'
import { readTarget } from '../../src/gate/target.ts'
import type { User } from '../../src/gate/user.ts'
import type { Handler } from '../../src/http/exchange.ts'
import type { HttpLimits } from '../../src/http/limits.ts'
import { createLog, type LineSink } from '../../src/lib/log/log.ts'
import { serverCommand } from '../../src/options/commands.ts'
import { parseFlags } from '../../src/options/parse.ts'
import { openAuthentication } from '../../src/server/authentication.ts'
import { openSession, type Protocol, requestOn } from './http-client.ts'
import { startListener } from './listener.ts'
import { type Answer, RawHttp1 } from './raw-http1.ts'

/** Headers in the order in which they are sent. */
export type SentHeaders = readonly (readonly [name: string, value: string])[]

/** A connection that sends headers in any case and any number. */
export interface GateClient extends Disposable {
  request(headers?: SentHeaders, path?: string): Promise<Answer>
}

/** A listener whose response is the authenticated user. */
export interface TestGate extends AsyncDisposable {
  readonly port: number
  /** Everything logged, at the highest level. */
  readonly lines: readonly string[]
  /** The reasons of rejected requests, in order. */
  readonly refusals: readonly string[]
  /** How many requests were authenticated. */
  admitted(): number
  /** How many bodies were read. */
  bodiesRead(): number
  connect(protocol: Protocol, options?: ConnectionOptions): Promise<GateClient>
  /** Sends one request on its own connection. */
  ask(protocol: Protocol, headers?: SentHeaders, options?: ConnectionOptions): Promise<Answer>
}

export async function startGate(
  flags: readonly string[],
  limits: Partial<HttpLimits> = {},
): Promise<TestGate> {
  const parsed = parseFlags(serverCommand, ['--etcd-servers=http://127.0.0.1:1', ...flags])
  if (parsed.kind !== 'run') throw new Error(JSON.stringify(parsed))
  const lines: string[] = []
  const sink: LineSink = { write: (line) => lines.push(line) }
  const log = createLog({ format: 'json', verbosity: 10, sink, pid: 1 })
  const { authenticators, clientAuthorities, stop } = await openAuthentication(parsed.options, log)
  const gate = new Gate({
    authenticators,
    authorizers: [alwaysAllow],
    allowsAnonymous: parsed.options.anonymousAuth,
  })
  const refusals: string[] = []
  let admittedCount = 0
  let bodies = 0
  const handler: Handler = async (sent) => {
    const request = {
      method: sent.method,
      path: sent.path,
      query: sent.query,
      signal: sent.signal,
      headers: sent.headers,
      ...(sent.rawHeaders === undefined ? {} : { rawHeaders: sent.rawHeaders }),
      peer: sent.peer,
      body: () => {
        bodies += 1
        return sent.body()
      },
    }
    try {
      const access = { isOpenToHost: request.path === '/livez' }
      const { user } = await admitted(gate, request, readTarget(request, 'local'), access)
      admittedCount += 1
      return { status: 200, headers: {}, body: JSON.stringify(user) }
    } catch (error) {
      if (error instanceof NotIdentified) refusals.push(error.refusal)
      if (error instanceof StatusError) return statusResponse(request, error)
      throw error
    }
  }
  const { listener, port, bugs } = await startListener(handler, {
    limits,
    ...(clientAuthorities === undefined ? {} : { tls: { clientCa: clientAuthorities.pem } }),
  })
  clientAuthorities?.onChange((pem) => listener.renewClientCa(pem))
  const connect: TestGate['connect'] = (protocol, options) => connectTo(protocol, port, options)
  return {
    port,
    lines,
    refusals,
    admitted: () => admittedCount,
    bodiesRead: () => bodies,
    connect,
    ask: async (protocol, headers, options) => {
      using client = await connect(protocol, options)
      return await client.request(headers)
    },
    [Symbol.asyncDispose]: async () => {
      stop()
      await listener.close()
      if (bugs.length > 0) throw new Error('the handler has a bug', { cause: bugs[0] })
    },
  }
}

/** The user that the gate authenticated; undefined for a 401. */
export function userIn(answer: Answer): User | undefined {
  if (answer.status === 401) return undefined
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.body}`)
  return JSON.parse(answer.body.toString()) as User
}

async function connectTo(
  protocol: Protocol,
  port: number,
  options: ConnectionOptions = {},
): Promise<GateClient> {
  if (protocol === 'h2') {
    const session = await openSession(port, options)
    return {
      request: (headers = [], path = '/apis') =>
        requestOn(session, { path, headers: grouped(headers) }),
      [Symbol.dispose]: () => session.destroy(),
    }
  }
  const connection = await RawHttp1.open(port, options)
  return {
    request: (headers = [], path = '/apis') => {
      const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
      connection.send(Buffer.from(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n${lines}\r\n`))
      return connection.readAnswer()
    },
    [Symbol.dispose]: () => connection.close(),
  }
}

/** HTTP/2 allows lower case only; repeated headers are sent one by one. */
function grouped(headers: SentHeaders): Record<string, string> {
  const found: Record<string, string[]> = {}
  for (const [name, value] of headers) {
    // UTF-8, as it is sent.
    const bytes = Buffer.from(value).toString('latin1')
    const key = name.toLowerCase()
    found[key] = [...(found[key] ?? []), bytes]
  }
  // Node also accepts lists, which its types do not say.
  return found as Record<string, unknown> as Record<string, string>
}

/** A folder of files that are replaced atomically. */
export class Folder implements AsyncDisposable {
  readonly path: string

  static async create(): Promise<Folder> {
    return new Folder(await mkdtemp(join(tmpdir(), 'tidings-gate-')))
  }

  private constructor(path: string) {
    this.path = path
  }

  /** Returns the path of the file. */
  async write(name: string, text: string): Promise<string> {
    const path = join(this.path, name)
    await writeFile(`${path}.new`, text)
    await rename(`${path}.new`, path)
    return path
  }

  [Symbol.asyncDispose](): Promise<void> {
    return rm(this.path, { recursive: true })
  }
}
