/**
 * Runs one etcd member as a child process.
 *
 * The child never outlives this process, however it ends: a shell waits at the other end of a pipe
 * that only this process holds open, and kills etcd when the pipe closes. (An exit handler would
 * miss SIGKILL, and SIGTERM without a handler.)
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import http, { type ClientRequest } from 'node:http'
import https from 'node:https'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { pause } from '../lib/abort.ts'

export interface EtcdPorts {
  readonly client: number
  readonly peer: number
  /** Serves /health and /metrics, without TLS unless a client certificate is required. */
  readonly metrics: number
}

export interface EtcdProcessOptions {
  readonly binary: string
  /** Reused by later starts; etcd creates it when it is missing. */
  readonly dataDir: string
  readonly name?: string | undefined
  /** Default: free ports chosen by the kernel. */
  readonly ports?: EtcdPorts | undefined
  /** All members, including this one. Default: only this one. */
  readonly cluster?: readonly { readonly name: string; readonly peerPort: number }[] | undefined
  /** PEM files. If set, clients must present a certificate signed by `ca`. */
  readonly tls?: { readonly ca: string; readonly cert: string; readonly key: string } | undefined
  /**
   * Whether every port requires a client certificate: peers and metrics use `tls` as well, and there
   * is no gateway for plain HTTP requests.
   */
  readonly requiresClientCertificate?: boolean | undefined
  /** Additional flags. */
  readonly args?: readonly string[] | undefined
  readonly startTimeoutMs?: number | undefined
  /** Whether `start` waits for a healthy cluster (default) or only for this member. */
  readonly waitForQuorum?: boolean | undefined
}

const host = '127.0.0.1'
const defaultStartTimeoutMs = 20_000
const defaultStopTimeoutMs = 5_000
const versionTimeoutMs = 5_000
const healthTimeoutMs = 1_000
const healthIntervalMs = 50
/** Start attempts when other processes take the ports that were free. */
const portAttempts = 5
/**
 * Log lines that are shown when etcd does not start. The first ones are kept as well: an etcd that rejects a
 * flag names it first, and then prints hundreds of lines about all the others.
 */
const logLinesMax = 30
const firstLogLines = 3

export class EtcdProcess {
  /** The URL for clients. */
  readonly endpoint: string
  readonly ports: EtcdPorts
  readonly pid: number
  /** Resolves when the process has exited, for any reason. */
  readonly exited: Promise<void>
  readonly #child: ChildProcess
  readonly #guard: ChildProcess
  readonly #log: string[] = []
  #hasExited = false

  /** Resolves when etcd is healthy; on a timeout, rejects with lines of its log. */
  static async start(options: EtcdProcessOptions): Promise<EtcdProcess> {
    for (let attempt = 1; ; attempt++) {
      const ports = options.ports ?? (await reservePorts())
      const etcd = await EtcdProcess.#spawn(options, ports)
      try {
        await etcd.#untilHealthy(options)
        return etcd
      } catch (error) {
        await etcd.kill()
        const canRetry = options.ports === undefined && etcd.#isPortTaken()
        if (!canRetry || attempt === portAttempts) throw error
      }
    }
  }

  private constructor(child: ChildProcess, pid: number, ports: EtcdPorts, isEncrypted: boolean) {
    this.endpoint = `${isEncrypted ? 'https' : 'http'}://${host}:${ports.client}`
    this.ports = ports
    this.pid = pid
    this.#child = child
    this.#guard = guard(pid)
    this.exited = new Promise((resolve) => {
      child.once('exit', () => {
        this.#hasExited = true
        this.#guard.kill('SIGKILL')
        resolve()
      })
    })
    if (child.stderr !== null) {
      createInterface({ input: child.stderr }).on('line', (line) => this.#append(line))
    }
    // The child must not keep this process alive; when this process exits, the guard kills etcd.
    child.unref()
    for (const stream of [child.stderr, this.#guard.stdin]) {
      if (stream !== null && 'unref' in stream && typeof stream.unref === 'function') stream.unref()
    }
  }

  static async #spawn(options: EtcdProcessOptions, ports: EtcdPorts): Promise<EtcdProcess> {
    const child = spawn(options.binary, flags(options, ports), {
      stdio: ['ignore', 'ignore', 'pipe'],
      // A separate process group: Ctrl-C must reach only this process, which stops etcd last.
      detached: true,
    })
    await once(child, 'spawn')
    if (child.pid === undefined) throw new Error(`${options.binary} has no process id`)
    return new EtcdProcess(child, child.pid, ports, options.tls !== undefined)
  }

  /** The first and the last lines of etcd's log. */
  get log(): readonly string[] {
    return this.#log
  }

  /** Sends SIGTERM and waits for the exit; sends SIGKILL after `timeoutMs`. */
  async stop(timeoutMs: number = defaultStopTimeoutMs): Promise<void> {
    this.signal('SIGTERM')
    // A paused process would not handle SIGTERM.
    this.signal('SIGCONT')
    const timer = setTimeout(() => this.signal('SIGKILL'), timeoutMs)
    await this.exited
    clearTimeout(timer)
  }

  /** Kills etcd immediately, as in a crash. */
  async kill(): Promise<void> {
    this.signal('SIGKILL')
    // This process must not exit while a caller waits for the child to exit.
    if (!this.#hasExited) this.#child.ref()
    await this.exited
  }

  /** Does nothing when the process has exited. */
  signal(signal: NodeJS.Signals): void {
    if (!this.#hasExited) this.#child.kill(signal)
  }

  async #untilHealthy(options: EtcdProcessOptions): Promise<void> {
    const timeoutMs = options.startTimeoutMs ?? defaultStartTimeoutMs
    const deadline = performance.now() + timeoutMs
    const query = options.waitForQuorum === false ? '?serializable=true' : ''
    const path = `/health${query}`
    const request = healthRequest(this.ports.metrics, path, requiredTls(options))
    while (performance.now() < deadline) {
      if (this.#hasExited) throw this.#failure('etcd exited while starting')
      if (await isHealthy(request)) return
      await pause(healthIntervalMs)
    }
    throw this.#failure(`etcd is not healthy after ${timeoutMs} ms`)
  }

  #failure(what: string): Error {
    return new Error(
      [`${what}; the first and the last lines of its log:`, ...this.#log].join('\n  '),
    )
  }

  #isPortTaken(): boolean {
    return this.#log.some((line) => line.includes('address already in use'))
  }

  #append(line: string): void {
    this.#log.push(line)
    if (this.#log.length > logLinesMax) this.#log.splice(firstLogLines, 1)
  }
}

/** Whether the names of flags are those before 3.6, which renamed many; 3.7 rejects the old names. */
export async function hasOldFlags(binary: string): Promise<boolean> {
  const { stdout } = await promisify(execFile)(binary, ['--version'], { timeout: versionTimeoutMs })
  return /^etcd Version: 3\.[0-5]\./.test(stdout)
}

/** Three ports that are currently free; another process may still take them. */
export async function reservePorts(): Promise<EtcdPorts> {
  const servers = await Promise.all([listen(), listen(), listen()])
  const [client, peer, metrics] = servers.map((server) => (server.address() as AddressInfo).port)
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return { client: client ?? 0, peer: peer ?? 0, metrics: metrics ?? 0 }
}

async function listen(): Promise<Server> {
  const server = createServer()
  server.listen(0, host)
  await once(server, 'listening')
  return server
}

/** Kills the process when our end of the pipe closes, which happens when this process exits. */
function guard(pid: number): ChildProcess {
  const shell = spawn('/bin/sh', ['-c', `read -r _; kill -KILL ${pid} 2>/dev/null`], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  shell.unref()
  return shell
}

function flags(options: EtcdProcessOptions, ports: EtcdPorts): string[] {
  const name = options.name ?? 'tidings'
  const clientUrl = `${options.tls === undefined ? 'http' : 'https'}://${host}:${ports.client}`
  const required = requiredTls(options)
  const scheme = required === undefined ? 'http' : 'https'
  const peerUrl = `${scheme}://${host}:${ports.peer}`
  const cluster = options.cluster ?? [{ name, peerPort: ports.peer }]
  const tls = options.tls
  return [
    `--name=${name}`,
    `--data-dir=${options.dataDir}`,
    `--listen-client-urls=${clientUrl}`,
    `--advertise-client-urls=${clientUrl}`,
    `--listen-peer-urls=${peerUrl}`,
    `--initial-advertise-peer-urls=${peerUrl}`,
    `--initial-cluster=${cluster.map((m) => `${m.name}=${scheme}://${host}:${m.peerPort}`).join(',')}`,
    `--listen-metrics-urls=${scheme}://${host}:${ports.metrics}`,
    ...(tls === undefined
      ? []
      : [
          `--cert-file=${tls.cert}`,
          `--key-file=${tls.key}`,
          `--trusted-ca-file=${tls.ca}`,
          '--client-cert-auth',
        ]),
    ...(required === undefined
      ? []
      : [
          `--peer-cert-file=${required.cert}`,
          `--peer-key-file=${required.key}`,
          `--peer-trusted-ca-file=${required.ca}`,
          '--peer-client-cert-auth',
          '--enable-grpc-gateway=false',
        ]),
    ...(options.args ?? []),
  ]
}

/** The files that every port uses; undefined when some port allows plain HTTP. */
function requiredTls({
  requiresClientCertificate,
  tls,
}: EtcdProcessOptions): EtcdProcessOptions['tls'] {
  if (requiresClientCertificate === true && tls === undefined)
    throw new Error('an etcd that requires client certificates needs its own certificate')
  return requiresClientCertificate === true ? tls : undefined
}

function healthRequest(
  port: number,
  path: string,
  tls: EtcdProcessOptions['tls'],
): () => ClientRequest {
  const options = { host, port, path, timeout: healthTimeoutMs, agent: false } as const
  if (tls === undefined) return () => http.get(options)
  const [ca, cert, key] = [tls.ca, tls.cert, tls.key].map((file) => readFileSync(file))
  return () => https.get({ ...options, ca, cert, key })
}

function isHealthy(start: () => ClientRequest): Promise<boolean> {
  return new Promise((resolve) => {
    const request = start()
    request.on('response', (response) => {
      response.resume()
      resolve(response.statusCode === 200)
    })
    request.on('timeout', () => request.destroy())
    request.on('error', () => resolve(false))
  })
}
