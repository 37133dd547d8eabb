import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type EtcdCluster, startEtcd } from './etcd.ts'
import { EventClient } from './event-client.ts'
import { Tidings } from './tidings.ts'

/** A user with all permissions. */
export const ADMIN_TOKEN = 'admin-token'
const TOKENS = `${ADMIN_TOKEN},admin,1,system:masters\n`
const READY_MS_MAX = 30_000

/**
 * Several built servers in front of one etcd, ready to serve events; stopped at the end of the
 * scope.
 */
export class Replicas implements AsyncDisposable {
  readonly etcd: EtcdCluster
  /** Tests may add files; it is removed at the end. */
  readonly folder: string
  readonly #flags: readonly string[]
  readonly #servers: Tidings[] = []

  static async start(count: number, flags: readonly string[] = []): Promise<Replicas> {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-replicas-'))
    await writeFile(join(folder, 'tokens.csv'), TOKENS)
    const replicas = new Replicas(await startEtcd(), folder, flags)
    try {
      await Promise.all(Array.from({ length: count }, (_, index) => replicas.startOne(index)))
      return replicas
    } catch (error) {
      await replicas[Symbol.asyncDispose]()
      throw error
    }
  }

  private constructor(etcd: EtcdCluster, folder: string, flags: readonly string[]) {
    this.etcd = etcd
    this.folder = folder
    this.#flags = flags
  }

  /**
   * Starts the replica with this number, in place of one that has ended if there was one; `flags`
   * are additional.
   */
  async startOne(index: number, flags: readonly string[] = []): Promise<Tidings> {
    const server = await Tidings.start([
      `--etcd-servers=${this.etcd.endpoints.join(',')}`,
      `--token-auth-file=${join(this.folder, 'tokens.csv')}`,
      ...this.#flags,
      ...flags,
    ])
    await this.#servers[index]?.[Symbol.asyncDispose]()
    this.#servers[index] = server
    await server.until('/readyz', ({ status }) => status === 200, READY_MS_MAX)
    return server
  }

  server(index: number): Tidings {
    const server = this.#servers[index]
    if (server === undefined) throw new Error(`there is no replica ${index}`)
    return server
  }

  /** A connection to that replica, as a user with all permissions. */
  client(index: number): Promise<EventClient> {
    const { port, ca } = this.server(index)
    return EventClient.open({ port, ca, token: ADMIN_TOKEN })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#servers.map((server) => server[Symbol.asyncDispose]()))
    await this.etcd[Symbol.asyncDispose]()
    await rm(this.folder, { recursive: true, force: true })
  }
}
