import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hasOldFlags } from '../../../../src/dev/etcd-process.ts'
import { pause } from '../../../../src/lib/abort.ts'
import { etcdBinary } from '../../../support/etcd.ts'
import { address, Network } from './network.ts'

const clientPort = 2379
const peerPort = 2380
const startTimeoutMs = 30_000

/** A real member, in its own network namespace. Its data outlives its process. */
export class Member {
  readonly index: number
  readonly endpoint: string
  readonly #network: Network
  readonly #folder: string
  readonly #size: number
  readonly #corruptCheck: string
  #process: ChildProcess | undefined

  constructor(options: {
    readonly index: number
    readonly size: number
    readonly network: Network
    readonly folder: string
    readonly corruptCheck: string
  }) {
    this.index = options.index
    this.endpoint = `http://${address(options.index)}:${clientPort}`
    this.#network = options.network
    this.#folder = options.folder
    this.#size = options.size
    this.#corruptCheck = options.corruptCheck
  }

  get pid(): number {
    const pid = this.#process?.pid
    if (pid === undefined) throw new Error(`member ${this.index} does not run`)
    return pid
  }

  /** Resolves when the process runs, which is well before it serves. */
  async start(): Promise<void> {
    const [program = '', ...enter] = this.#network.command(this.index)
    const etcd = ['setpriv', '--pdeathsig', 'KILL', etcdBinary, ...this.#flags()]
    const started = spawn(program, [...enter, ...etcd], { stdio: ['ignore', 'ignore', 'pipe'] })
    await once(started, 'spawn')
    started.stderr.pipe(createWriteStream(join(this.#folder, `m${this.index}.log`), { flags: 'a' }))
    this.#process = started
  }

  /** Like a crash. */
  async kill(): Promise<void> {
    const running = this.#process
    this.#process = undefined
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return
    running.kill('SIGKILL')
    await once(running, 'exit')
  }

  pause(): void {
    this.#process?.kill('SIGSTOP')
  }

  resume(): void {
    this.#process?.kill('SIGCONT')
  }

  /** Returns whether it serves, which needs a majority. */
  async isHealthy(): Promise<boolean> {
    try {
      const answer = await fetch(`${this.endpoint}/health`, { signal: AbortSignal.timeout(1_000) })
      await answer.arrayBuffer()
      return answer.ok
    } catch {
      return false
    }
  }

  #flags(): readonly string[] {
    const peerUrl = (index: number) => `http://${address(index)}:${peerPort}`
    const cluster = Array.from({ length: this.#size }, (_, index) => `m${index}=${peerUrl(index)}`)
    return [
      `--name=m${this.index}`,
      `--data-dir=${join(this.#folder, `m${this.index}`)}`,
      `--listen-client-urls=${this.endpoint}`,
      `--advertise-client-urls=${this.endpoint}`,
      `--listen-peer-urls=${peerUrl(this.index)}`,
      `--initial-advertise-peer-urls=${peerUrl(this.index)}`,
      `--initial-cluster=${cluster.join(',')}`,
      this.#corruptCheck,
      '--log-level=warn',
    ]
  }
}

export class Cluster implements AsyncDisposable {
  readonly members: readonly Member[]
  readonly network: Network
  readonly #folder: string

  static async start(size: number): Promise<Cluster> {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-chaos-'))
    const network = await Network.create(size)
    // A member that comes back with other data than the rest must not serve.
    const corruptCheck = (await hasOldFlags(etcdBinary))
      ? '--experimental-initial-corrupt-check'
      : '--feature-gates=InitialCorruptCheck=true'
    const options = { size, network, folder, corruptCheck }
    const members = Array.from({ length: size }, (_, index) => new Member({ ...options, index }))
    const cluster = new Cluster(members, network, folder)
    await Promise.all(cluster.members.map((member) => member.start()))
    await cluster.untilHealthy()
    return cluster
  }

  private constructor(members: readonly Member[], network: Network, folder: string) {
    this.members = members
    this.network = network
    this.#folder = folder
  }

  get endpoints(): readonly string[] {
    return this.members.map((member) => member.endpoint)
  }

  member(index: number): Member {
    const member = this.members[index]
    if (member === undefined) throw new Error(`there is no member ${index}`)
    return member
  }

  /** Waits until every member serves. */
  async untilHealthy(): Promise<void> {
    const deadline = performance.now() + startTimeoutMs
    for (;;) {
      const healthy = await Promise.all(this.members.map((member) => member.isHealthy()))
      if (!healthy.includes(false)) return
      if (performance.now() > deadline) {
        throw new Error(`etcd does not recover: ${healthy.join()}; its logs are in ${this.#folder}`)
      }
      await pause(100)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.members.map((member) => member.kill()))
    await this.network[Symbol.asyncDispose]()
    await rm(this.#folder, { recursive: true, force: true })
  }
}
