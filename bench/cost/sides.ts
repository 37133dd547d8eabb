/** The servers that are loaded by turns. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DevCredentials } from '../../src/dev/credentials.ts'
import { type EtcdCluster, startEtcd } from '../../test/support/etcd.ts'
import { EventClient } from '../../test/support/event-client.ts'
import { KUBE_ADMIN_TOKEN, KubeApiserver } from '../../test/support/kube-apiserver.ts'
import { inParallel } from '../../test/support/load.ts'
import { Tidings } from '../../test/support/tidings.ts'
import { event } from '../support/request-costs.ts'

export const LISTED = 10_000
export const LISTED_NAMESPACE = 'listed'
/** An event that every server has. */
export const FIRST_NAME = 'first'
/** etcd has fsync on, as operators run it, and a sufficient quota. */
const ETCD_ARGS = ['--unsafe-no-fsync=false', '--quota-backend-bytes=8589934592']

export interface Side {
  readonly url: string
  readonly process: { readonly pid?: number | undefined }
  readonly headers: Readonly<Record<string, string>>
  /** Serves `bench/support/bare-server.ts` instead of the Event API. */
  readonly isBare?: boolean
}

/** One of this program. */
export interface TidingsSide extends Side {
  readonly server: Tidings
}

/** Everything ends with the scope. */
export class Sides implements AsyncDisposable {
  readonly etcd: EtcdCluster
  readonly folder: string
  readonly #access: DevCredentials
  readonly #cleanup: AsyncDisposableStack

  static async open(): Promise<Sides> {
    await using cleanup = new AsyncDisposableStack()
    const folder = await mkdtemp(join(tmpdir(), 'tidings-bench-'))
    cleanup.defer(() => rm(folder, { recursive: true, force: true }))
    const access = await DevCredentials.create(folder)
    const etcd = cleanup.use(await startEtcd({ args: ETCD_ARGS }))
    return new Sides({ folder, access, etcd, cleanup: cleanup.move() })
  }

  private constructor(parts: {
    readonly folder: string
    readonly access: DevCredentials
    readonly etcd: EtcdCluster
    readonly cleanup: AsyncDisposableStack
  }) {
    this.folder = parts.folder
    this.etcd = parts.etcd
    this.#access = parts.access
    this.#cleanup = parts.cleanup
  }

  /** A replica with data of its own. */
  async tidings(
    prefix: string,
    program?: string,
    env: Readonly<Record<string, string>> = {},
  ): Promise<TidingsSide> {
    const server = await Tidings.start(
      [
        `--etcd-servers=${this.etcd.endpoints[0]}`,
        `--etcd-prefix=/${prefix}`,
        `--token-auth-file=${this.#access.tokenFile}`,
      ],
      env,
      program,
    )
    this.#cleanup.use(server)
    await server.until('/readyz', ({ status }) => status === 200, 30_000)
    await this.#fill(server, this.#access.token)
    return { ...sideOf(server.port, server.process, this.#access.token), server }
  }

  /** A Node server with the same TLS and HTTP/2, and nothing else. */
  async bare(): Promise<Side> {
    const args = [this.etcd.endpoints[0] ?? '', '/bare', LISTED_NAMESPACE]
    const bare = fork(new URL('../support/bare-server.ts', import.meta.url), args)
    this.#cleanup.defer(() => bare.disconnect())
    const [port] = await once(bare, 'message')
    return { ...sideOf(port, bare, this.#access.token), isBare: true }
  }

  /** A Kubernetes API server on its own etcd, which has the same flags. */
  async kubernetes(): Promise<Side> {
    const server = this.#cleanup.use(await KubeApiserver.start({ etcdArgs: ETCD_ARGS }))
    await this.#fill(server, KUBE_ADMIN_TOKEN)
    return sideOf(server.port, { pid: server.pid }, KUBE_ADMIN_TOKEN)
  }

  async #fill({ port, ca }: Pick<Tidings, 'port' | 'ca'>, token: string): Promise<void> {
    using client = await EventClient.open({ port, ca, token })
    await inParallel(LISTED, 64, async (n) => {
      const made = event(n, LISTED_NAMESPACE)
      const metadata = { name: FIRST_NAME, namespace: LISTED_NAMESPACE }
      await client.create(n === 0 ? { ...made, metadata } : made)
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cleanup.disposeAsync()
  }
}

function sideOf(port: number, process: Side['process'], token: string): Side {
  return {
    url: `https://127.0.0.1:${port}`,
    process,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
  }
}
