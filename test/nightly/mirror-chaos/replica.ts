import { join } from 'node:path'
import { EventClient } from '../../support/event-client.ts'
import { Tidings } from '../../support/tidings.ts'

export interface ReplicaOptions {
  /** The folder of `serving.crt`, `serving.key` and `tokens.csv`. */
  readonly folder: string
  readonly port: number
  /** `host:port` of the etcd, or of the proxy in front of it. */
  readonly etcd: string
  readonly flags: readonly string[]
  readonly program?: string | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
}

/** One tidings that is killed, paused and started again on the same port. */
export class Replica implements AsyncDisposable {
  readonly port: number
  readonly #options: ReplicaOptions
  #server: Tidings | undefined
  /** Log lines of warnings and errors, of all processes so far. */
  readonly #log: string[] = []

  constructor(options: ReplicaOptions) {
    this.#options = options
    this.port = options.port
  }

  get pid(): number | undefined {
    return this.#server?.process.pid
  }

  /** Resolves when it listens; whether etcd is there does not matter. */
  async start(): Promise<void> {
    const { folder, port, etcd, flags, env = {}, program } = this.#options
    this.#server = await Tidings.start(
      [
        `--etcd-servers=http://${etcd}`,
        `--secure-port=${port}`,
        `--tls-cert-file=${join(folder, 'serving.crt')}`,
        `--tls-private-key-file=${join(folder, 'serving.key')}`,
        `--token-auth-file=${join(folder, 'tokens.csv')}`,
        // Histories are read at the end; the run itself compacts that of the origin.
        '--etcd-compaction-interval=0',
        '--event-ttl=24h',
        '--v=2',
        ...flags,
      ],
      env,
      program,
    )
  }

  /** Ends the process, and returns when it has ended. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const server = this.#server
    this.#server = undefined
    if (server === undefined) return
    server.kill(signal)
    await server.ended
    this.#log.push(...logOf(server))
    await server[Symbol.asyncDispose]()
  }

  pause(): void {
    this.#server?.kill('SIGSTOP')
  }

  resume(): void {
    this.#server?.kill('SIGCONT')
  }

  /** A new connection, which is destroyed at the end of the scope. */
  client(ca: string, token: string): Promise<EventClient> {
    return EventClient.open({ port: this.port, ca, token })
  }

  /** What the replica has logged. */
  get log(): readonly string[] {
    return this.#server === undefined ? this.#log : [...this.#log, ...logOf(this.#server)]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]()
  }
}

function logOf(server: Tidings): readonly string[] {
  return server.log.map((line) => JSON.stringify(line))
}
