import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeSelfSigned } from '../../../src/http/tls/self-signed.ts'
import { type EtcdCluster, startEtcdCluster } from '../../support/etcd.ts'
import { reservePort } from '../../support/ports.ts'
import { configurationIn, PROXY_ADDRESS, RealProxy } from '../../support/proxies.ts'
import { Tidings } from '../../support/tidings.ts'
import { RollingClient } from './http2-client.ts'

/** How soon haproxy notices a replica, and how long that replica waits for it. */
export interface Pace {
  /** Between two health checks. */
  readonly checkMs: number
  /** `--shutdown-delay-duration`: two checks that fail, and some time for them. */
  readonly stopDelayMs: number
  /** After a replica is ready: until haproxy uses it again, and clients have come. */
  readonly settleMs: number
}

/** The pace of docs/how-to/proxies.md. */
export const documentedPace: Pace = { checkMs: 1_000, stopDelayMs: 5_000, settleMs: 3_000 }

export interface FleetOptions {
  /** `main.js` or a launcher; undefined is the build of this tree. */
  readonly program?: string | undefined
  readonly pace?: Pace
  /** Default: one member. */
  readonly etcd?: { readonly members: number; readonly args: readonly string[] }
}

const REPLICAS = 3
const TOKEN = 'rolling'
const READY_MS_MAX = 60_000
const PROXY_RETRY_MS = 50

/** Three replicas behind a real haproxy, in front of an etcd; stopped at the end of the scope. */
export class Fleet implements AsyncDisposable {
  readonly size: number = REPLICAS
  readonly #rest = new AsyncDisposableStack()
  readonly #pace: Pace
  readonly #replicas: (Tidings | undefined)[] = []
  #folder = ''
  #ports: readonly number[] = []
  #ca = ''
  #etcd: EtcdCluster | undefined
  #proxy: RealProxy | undefined

  /** Resolves when haproxy uses the replicas. */
  static async start({
    program,
    pace = documentedPace,
    etcd = { members: 1, args: [] },
  }: FleetOptions = {}): Promise<Fleet> {
    const fleet = new Fleet(pace)
    try {
      await fleet.#start(program, etcd)
      return fleet
    } catch (error) {
      await fleet[Symbol.asyncDispose]()
      throw error
    }
  }

  private constructor(pace: Pace) {
    this.#pace = pace
  }

  async #start(
    program: string | undefined,
    { members, args }: NonNullable<FleetOptions['etcd']>,
  ): Promise<void> {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-rolling-'))
    this.#folder = folder
    this.#rest.defer(() => rm(folder, { recursive: true, force: true }))
    const { cert, key } = await makeSelfSigned(['localhost', '127.0.0.1'])
    this.#ca = cert
    await writeFile(join(folder, 'serving.crt'), cert)
    await writeFile(join(folder, 'serving.key'), key, { mode: 0o600 })
    await writeFile(join(folder, 'tokens.csv'), `${TOKEN},admin,1,system:masters\n`, {
      mode: 0o600,
    })
    this.#etcd = this.#rest.use(await startEtcdCluster(members, { args }))
    this.#ports = [await reservePort(), await reservePort(), await reservePort()]
    this.#rest.defer(async () => {
      for (const replica of this.#replicas) await replica?.[Symbol.asyncDispose]()
    })
    for (const index of this.#ports.keys()) await this.#startOne(index, program)
    const { checkMs, settleMs } = this.#pace
    this.#proxy = this.#rest.use(
      await RealProxy.haproxy({
        configuration: configurationIn('haproxy').replace('inter 1s', `inter ${checkMs}ms`),
        ports: this.#ports,
        files: { 'tidings-ca.crt': cert },
      }),
    )
    await this.#untilProxied()
    await sleep(checkMs + settleMs)
  }

  /** haproxy's first checks may be late on a busy machine. */
  async #untilProxied(): Promise<void> {
    using client = this.client()
    const deadline = performance.now() + READY_MS_MAX
    for (;;) {
      const { outcome } = await client.send({ method: 'GET', path: '/readyz' })
      if (outcome === 200) return
      if (performance.now() > deadline) throw new Error(`/readyz through haproxy: ${outcome}`)
      await sleep(PROXY_RETRY_MS)
    }
  }

  get etcd(): EtcdCluster {
    if (this.#etcd === undefined) throw new Error('there is no etcd yet')
    return this.#etcd
  }

  /** A connection through haproxy. */
  client(): RollingClient {
    return new RollingClient({ port: this.#proxy?.port ?? 0, ca: this.#ca, token: TOKEN })
  }

  /** The response of one replica. */
  async ask(index: number, path: string): Promise<string> {
    const replica = this.#replicas[index]
    if (replica === undefined) throw new Error(`there is no replica ${index}`)
    const headers = { authorization: `Bearer ${TOKEN}` }
    const { status, body } = await replica.ask(path, { headers })
    if (status !== 200) throw new Error(`replica ${index}: ${path}: ${status} ${body}`)
    return body
  }

  /** Stops a replica as a supervisor does, and starts a program in its place. */
  async replace(index: number, program?: string): Promise<void> {
    const replica = this.#replicas[index]
    replica?.kill('SIGTERM')
    await replica?.ended
    await this.#startOne(index, program)
    await sleep(this.#pace.settleMs)
  }

  async #startOne(index: number, program: string | undefined): Promise<void> {
    await this.#replicas[index]?.[Symbol.asyncDispose]()
    const { endpoints } = this.etcd
    // Each replica prefers another member.
    const first = index % endpoints.length
    const flags = [
      `--etcd-servers=${[...endpoints.slice(first), ...endpoints.slice(0, first)].join(',')}`,
      `--secure-port=${this.#ports[index]}`,
      `--tls-cert-file=${this.#folder}/serving.crt`,
      `--tls-private-key-file=${this.#folder}/serving.key`,
      `--token-auth-file=${this.#folder}/tokens.csv`,
      `--proxy-protocol-from=${PROXY_ADDRESS}`,
      '--authorization-always-allow-paths=/readyz',
      `--shutdown-delay-duration=${this.#pace.stopDelayMs}ms`,
    ]
    const replica = await Tidings.start(flags, {}, program)
    this.#replicas[index] = replica
    await replica.until('/readyz', ({ status }) => status === 200, READY_MS_MAX)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#rest.disposeAsync()
  }
}
