/** Several replicas over one etcd, and what each of them uses. */
import { readFile } from 'node:fs/promises'
import { atPace } from '../../test/support/load.ts'
import { ADMIN_TOKEN, Replicas } from '../../test/support/replicas.ts'
import { loadRate } from '../support/h2load.ts'
import { event, secondsOf } from '../support/request-costs.ts'

const NAMESPACE = 'created'
const PATH = `/apis/events.k8s.io/v1/namespaces/${NAMESPACE}/events`
const MANY = { connections: 8, streams: 32 }
const MIB = 1024 ** 2

/** CPU seconds of each, and seconds by the clock. */
export interface Usage {
  readonly replicas: readonly number[]
  readonly etcd: number
  readonly seconds: number
}

export interface Address {
  readonly url: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

export class World implements AsyncDisposable {
  readonly size: number
  readonly #replicas: Replicas
  #created = 0

  static async start(size: number): Promise<World> {
    return new World(size, await Replicas.start(size))
  }

  private constructor(size: number, replicas: Replicas) {
    this.size = size
    this.#replicas = replicas
  }

  get created(): number {
    return this.#created
  }

  /** The events that all loads create. */
  address(replica: number): Address {
    const { port } = this.#replicas.server(replica)
    return {
      url: `https://127.0.0.1:${port}`,
      path: PATH,
      headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    }
  }

  async measure(run: () => Promise<unknown>): Promise<Usage> {
    const before = this.#used()
    const startedAt = performance.now()
    await run()
    const seconds = (performance.now() - startedAt) / 1000
    const after = this.#used()
    const [etcd = 0, ...replicas] = after.map((used, at) => used - (before[at] ?? 0))
    return { etcd, replicas, seconds }
  }

  /** Sends creates as fast as they are served, by 8 clients with 32 requests each. */
  async createMany(requests: number, replica: number): Promise<void> {
    const { url, path, headers } = this.address(replica)
    const body = Buffer.from(JSON.stringify(event(0, NAMESPACE)))
    await loadRate({ url: `${url}${path}`, headers, amount: { requests }, ...MANY, body })
    this.#created += requests
  }

  async createAtPace(
    pace: { readonly count: number; readonly perSecond: number },
    replica: number,
  ): Promise<void> {
    using client = await this.#replicas.client(replica)
    await atPace(pace, async (n) => {
      await client.create(event(n, NAMESPACE))
    })
    this.#created += pace.count
  }

  /** The resource version from which a watch has nothing to catch up. */
  async version(): Promise<string> {
    using client = await this.#replicas.client(0)
    const { metadata } = await client.list(NAMESPACE, { limit: 1 })
    return metadata.resourceVersion
  }

  async etcdUse(): Promise<{ readonly memoryMib: number; readonly bytesPerEvent: number }> {
    const { endpoint, pid } = this.#replicas.etcd.member(0)
    const metrics = await (await fetch(`${endpoint}/metrics`)).text()
    const [, used] = /^etcd_mvcc_db_total_size_in_use_in_bytes (\S+)$/m.exec(metrics) ?? []
    const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? []
    return {
      memoryMib: (Number(kib) * 1024) / MIB,
      bytesPerEvent: Number(used) / this.#created,
    }
  }

  /** CPU time of etcd, then of each replica. */
  #used(): readonly number[] {
    const replicas = Array.from({ length: this.size }, (_, at) => this.#replicas.server(at))
    const etcd = { process: { pid: this.#replicas.etcd.member(0).pid } }
    return [etcd, ...replicas].map(secondsOf)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#replicas[Symbol.asyncDispose]()
  }
}
