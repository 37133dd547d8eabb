import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import http from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const built = join(import.meta.dirname, '../../dist/main.js')
const START_MS_MAX = 90_000
const CERT_FILE = '--tls-cert-file='
const LOOPBACK_ONLY = ['--bind-address=127.0.0.1'] as const

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

export interface Ask {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly protocol?: 'h1' | 'h2' | 'plain'
  readonly timeoutMs?: number
  /** The CA to trust, if not the certificate that the server started with. */
  readonly ca?: string
}

interface LogLine {
  readonly msg: string
  readonly [field: string]: unknown
}

/**
 * The built program as a process, on ports that the kernel chose, with a self-signed certificate.
 * Stopped, and its folder removed, at the end of the scope.
 */
export class Tidings implements AsyncDisposable {
  readonly port: number
  readonly ca: string
  readonly process: ChildProcess
  readonly log: LogLine[]
  /** Exit code and signal, once it has ended. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null }>
  /** Contains its certificate; removed at the end. */
  readonly folder: string

  /**
   * Resolves when it listens. `env` overrides the environment of the test; `program` may be
   * `main.js` of another build, the launcher of a release archive, or a command.
   */
  static async start(
    flags: readonly string[],
    env: Readonly<Record<string, string>> = {},
    program: string | readonly string[] = built,
  ): Promise<Tidings> {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-test-'))
    // `env` execs the program, so signals reach it.
    const child = spawn(
      'env',
      [
        ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
        ...commandOf(program),
        ...(flags.some((flag) => flag.startsWith('--bind-address=')) ? [] : LOOPBACK_ONLY),
        ...(flags.some((flag) => flag.startsWith('--secure-port=')) ? [] : ['--secure-port=0']),
        `--cert-dir=${folder}`,
        '--logging-format=json',
        ...flags,
      ],
      { stdio: ['ignore', 'inherit', 'pipe'] },
    )
    const log: LogLine[] = []
    const ended = once(child, 'exit').then(([code, signal]) => ({ code, signal }))
    const { promise: listening, resolve, reject } = Promise.withResolvers<number>()
    if (child.stderr === null) throw new Error('the program has no standard error')
    createInterface({ input: child.stderr }).on('line', (text) => {
      const line = parseLine(text)
      log.push(line)
      if (line.msg === 'Serving securely') resolve(portOf(line))
    })
    const said = (): string => log.map((line) => JSON.stringify(line)).join('\n')
    const late = setTimeout(() => reject(new Error(`not listening:\n${said()}`)), START_MS_MAX)
    ended.then(({ code }) => reject(new Error(`ended with ${code}:\n${said()}`)), reject)
    try {
      const port = await listening
      const certFile = flags.find((flag) => flag.startsWith(CERT_FILE))?.slice(CERT_FILE.length)
      const ca = await readFile(certFile ?? join(folder, 'tidings.crt'), 'utf8')
      return new Tidings({ child, port, log, ended, folder, ca })
    } catch (error) {
      child.kill('SIGKILL')
      await rm(folder, { recursive: true, force: true })
      throw error
    } finally {
      clearTimeout(late)
    }
  }

  private constructor(parts: {
    child: ChildProcess
    port: number
    log: LogLine[]
    ended: Tidings['ended']
    folder: string
    ca: string
  }) {
    this.process = parts.child
    this.port = parts.port
    this.log = parts.log
    this.ended = parts.ended
    this.ca = parts.ca
    this.folder = parts.folder
  }

  /** The port of the plain listener, from the log. */
  async plainPort(): Promise<number> {
    return portOf(await this.logged('Serving plain HTTP to this host'))
  }

  /** The first log line with this message; waits for it. */
  async logged(msg: string, timeoutMs = 10_000): Promise<LogLine> {
    const endsAt = performance.now() + timeoutMs
    while (performance.now() < endsAt) {
      const line = this.log.find((candidate) => candidate.msg === msg)
      if (line !== undefined) return line
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    throw new Error(`"${msg}" was not logged within ${timeoutMs} ms`)
  }

  ask(path: string, ask: Ask = {}): Promise<Answer> {
    if (ask.protocol === 'h2') return askHttp2(this, path, ask)
    return askHttp1(this, path, ask)
  }

  /** Polls until `accept` returns true; resolves to the time that took, in milliseconds. */
  async until(
    path: string,
    accept: (answer: Answer) => boolean,
    timeoutMs: number,
  ): Promise<number> {
    const startedAt = performance.now()
    let last: Answer | undefined
    while (performance.now() - startedAt < timeoutMs) {
      last = await this.ask(path)
      if (accept(last)) return performance.now() - startedAt
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    throw new Error(`${path} after ${timeoutMs} ms: ${last?.status} ${last?.body}`)
  }

  kill(signal: NodeJS.Signals): void {
    this.process.kill(signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.process.kill('SIGKILL')
    await this.ended
    await rm(this.folder, { recursive: true, force: true })
  }
}

/** Starts the program and waits for its end: for flags with which it does not serve. */
export async function runToEnd(
  flags: readonly string[],
): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
  const child = spawn(process.execPath, [built, ...flags], { stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ])
  return { code, stdout, stderr }
}

/** Starts the program, for tests that control it themselves. */
export function startProgram(flags: readonly string[]): ChildProcess {
  return spawn(process.execPath, [built, ...flags], { stdio: 'ignore' })
}

/** The same as PID 1 of a namespace, as in a container; the returned child is its parent. */
export function startAsInit(flags: readonly string[]): ChildProcess {
  const command = [process.execPath, built, ...flags]
  return spawn('unshare', ['--pid', '--fork', '--kill-child', ...command], { stdio: 'ignore' })
}

async function text(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

function commandOf(program: string | readonly string[]): readonly string[] {
  if (typeof program !== 'string') return program
  return /\.[jt]s$/.test(program) ? [process.execPath, program] : [program]
}

function parseLine(text: string): LogLine {
  try {
    return JSON.parse(text)
  } catch {
    return { msg: text }
  }
}

function portOf(line: LogLine): number {
  return Number(String(line['address']).split(':').at(-1))
}

async function askHttp1(server: Tidings, path: string, ask: Ask): Promise<Answer> {
  const isPlain = ask.protocol === 'plain'
  const request = (isPlain ? http : https).request({
    host: '127.0.0.1',
    port: isPlain ? await server.plainPort() : server.port,
    path,
    method: ask.method ?? 'GET',
    headers: ask.headers ?? {},
    ca: ask.ca ?? server.ca,
    agent: false,
    timeout: ask.timeoutMs ?? 15_000,
  })
  request.on('timeout', () => request.destroy(new Error(`${path}: no response in time`)))
  // A response may arrive before the body is sent, and the connection may be closed with it.
  request.on('error', () => {})
  request.end(ask.body)
  const [response] = await once(request, 'response')
  return { status: response.statusCode, headers: response.headers, body: await text(response) }
}

async function askHttp2(server: Tidings, path: string, ask: Ask): Promise<Answer> {
  const session = http2.connect(`https://127.0.0.1:${server.port}`, {
    ca: ask.ca ?? server.ca,
  })
  try {
    const stream = session.request({
      ':path': path,
      ':method': ask.method ?? 'GET',
      ...(ask.headers ?? {}),
    })
    session.on('error', () => {})
    stream.setTimeout(ask.timeoutMs ?? 15_000, () => stream.destroy(new Error(`${path}: too late`)))
    stream.end(ask.body)
    const [headers] = await once(stream, 'response')
    return { status: headers[':status'], headers, body: await text(stream) }
  } finally {
    session.close()
  }
}
