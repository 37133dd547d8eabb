/** The replica with which data of a release is recorded and checked: a mirror, rules, a budget. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EtcdCluster } from '../support/etcd.ts'
import { type ApiAnswer, type ApiCall, ApiError, EventClient } from '../support/event-client.ts'
import { reservePort } from '../support/ports.ts'
import { Tidings } from '../support/tidings.ts'
import type { WireList } from '../support/wire-event.ts'
import type { ServedEvent } from './recorded-release.ts'

export const OTHER_CLUSTER = 'team-b'
export const MIRRORED_CLUSTER = 'prod-eu'
export const CLUSTERS: readonly string[] = ['local', OTHER_CLUSTER, MIRRORED_CLUSTER]
/** The namespace whose budget evicts events, so that there is an account of them. */
export const SMALL_NAMESPACE = 'small'
export const SMALL_BUDGET = 5
const TOKEN = 'release'
const READY_MS_MAX = 30_000

const POLICY = {
  apiVersion: 'tidings.dev/v1alpha1',
  kind: 'RetentionPolicy',
  rules: [{ name: 'warnings', type: 'Warning', lifetime: '7d' }],
  budgets: [{ name: 'small', per: 'Namespace', namespace: SMALL_NAMESPACE, events: SMALL_BUDGET }],
}

export interface SiteOptions {
  readonly etcd: EtcdCluster
  /** The program: `dist/main.js` of a build, or `bin/tidings` of an archive. */
  readonly program: string | undefined
  /** The authority of a mirrored cluster that does not run, from a recording. */
  readonly originCa?: string | undefined
}

interface Started {
  readonly server: Tidings
  readonly client: EventClient
}

export class ReleaseSite implements AsyncDisposable {
  readonly #options: SiteOptions
  readonly #folder: string
  readonly #originPort: number
  #originCa: string
  readonly #running: (Tidings | EventClient)[] = []

  static async open(options: SiteOptions): Promise<ReleaseSite> {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-release-'))
    const site = new ReleaseSite(options, folder, await reservePort())
    await writeFile(join(folder, 'tokens.csv'), `${TOKEN},admin,1,system:masters\n`, {
      mode: 0o600,
    })
    await writeFile(join(folder, 'policy.yaml'), `${JSON.stringify(POLICY)}\n`)
    await site.#writeClusters()
    return site
  }

  private constructor(options: SiteOptions, folder: string, originPort: number) {
    this.#options = options
    this.#folder = folder
    this.#originPort = originPort
    this.#originCa = options.originCa ?? ''
  }

  get originCa(): string {
    return this.#originCa
  }

  /** The cluster that is mirrored: another server, with a prefix of its own in the same etcd. */
  async startOrigin(): Promise<EventClient> {
    const server = await this.#start([
      '--etcd-prefix=/origin',
      `--secure-port=${this.#originPort}`,
      '--etcd-compaction-interval=0',
    ])
    this.#originCa = server.ca
    await this.#writeClusters()
    return this.#client(server)
  }

  /** Starts the server with the mirror and the policy. */
  start(flags: readonly string[] = []): Promise<Started> {
    return this.startPlain([
      `--clusters-file=${join(this.#folder, 'clusters.yaml')}`,
      `--retention-policy-file=${join(this.#folder, 'policy.yaml')}`,
      ...flags,
    ])
  }

  async startPlain(flags: readonly string[]): Promise<Started> {
    const server = await this.#start(flags)
    return { server, client: await this.#client(server) }
  }

  async #start(flags: readonly string[]): Promise<Tidings> {
    const { etcd, program } = this.#options
    const common = [
      `--etcd-servers=${etcd.endpoints.join(',')}`,
      `--token-auth-file=${join(this.#folder, 'tokens.csv')}`,
    ]
    const server = await Tidings.start([...common, ...flags], {}, program)
    this.#running.push(server)
    await server.until('/readyz', ({ status }) => status === 200, READY_MS_MAX)
    return server
  }

  async #client({ port, ca }: Tidings): Promise<EventClient> {
    const client = await EventClient.open({ port, ca, token: TOKEN })
    this.#running.push(client)
    return client
  }

  async #writeClusters(): Promise<void> {
    const kubeconfig = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'origin',
      contexts: [{ name: 'origin', context: { cluster: 'origin', user: 'mirror' } }],
      clusters: [
        {
          name: 'origin',
          cluster: {
            server: `https://127.0.0.1:${this.#originPort}`,
            'certificate-authority-data': Buffer.from(this.#originCa).toString('base64'),
          },
        },
      ],
      users: [{ name: 'mirror', user: { token: TOKEN } }],
    }
    const clusters = {
      apiVersion: 'tidings.dev/v1alpha1',
      kind: 'ClusterConfiguration',
      clusters: [{ name: MIRRORED_CLUSTER, kubeconfig: 'origin.kubeconfig', mirror: {} }],
    }
    await writeFile(join(this.#folder, 'origin.kubeconfig'), JSON.stringify(kubeconfig), {
      mode: 0o600,
    })
    await writeFile(join(this.#folder, 'clusters.yaml'), JSON.stringify(clusters))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const part of this.#running.reverse()) {
      if (part instanceof EventClient) part[Symbol.dispose]()
      else await part[Symbol.asyncDispose]()
    }
    await rm(this.#folder, { recursive: true, force: true })
  }
}

/** A request that must succeed. */
export async function succeed(client: EventClient, call: ApiCall): Promise<ApiAnswer> {
  const answer = await client.request(call)
  if (answer.status >= 300) throw new ApiError(call, answer)
  return answer
}

export async function getJson<T>(client: EventClient, path: string): Promise<T> {
  return JSON.parse((await succeed(client, { path })).body.toString())
}

export const EVENTS_API = 'apis/events.k8s.io/v1'
export const CORE_API = 'api/v1'

/** The events of all clusters as both APIs list them, in the order of their keys. */
export async function servedEvents(client: EventClient): Promise<readonly ServedEvent[]> {
  const found: ServedEvent[] = []
  for (const cluster of CLUSTERS) {
    const list = (api: string) => getJson<WireList>(client, `/clusters/${cluster}/${api}/events`)
    const [events, core] = [await list(EVENTS_API), await list(CORE_API)]
    for (const [index, event] of events.items.entries()) {
      const same = core.items[index]
      if (same?.metadata.name !== event.metadata.name) {
        throw new Error(`${event.metadata.name} is not at the same place in both lists`)
      }
      found.push({ cluster, events: event, core: same })
    }
  }
  return found
}
