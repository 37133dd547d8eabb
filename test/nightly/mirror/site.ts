/** A Kubernetes as the origin, and two replicas with three mirrors of it. */
import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { isObject } from '../../../src/lib/json.ts'
import { yamlDocuments } from '../../../src/lib/text/yaml-documents.ts'
import { etcdctlBinary } from '../../support/etcd.ts'
import type { ApiAnswer, EventClient } from '../../support/event-client.ts'
import { eventually } from '../../support/eventually.ts'
import type { KubeApiserver } from '../../support/kube-apiserver.ts'
import { Kubernetes } from '../../support/kubernetes.ts'
import { Replicas } from '../../support/replicas.ts'
import type { CheckOptions } from './check.ts'
import { Session } from './session.ts'

const run = promisify(execFile)
const manifest = join(import.meta.dirname, '../../../deploy/origin-mirror.yaml')
export const eventTtlSeconds = 120
export const namespaces = ['w-0', 'w-1', 'w-2', 'real', 'ending'] as const
export const replicaIndexes = [0, 1] as const
const pollMs = 1_000
const compactDelayMs = 1_000
const settleMs = 3_000
const caughtUpMsMax = 120_000

/** The mirrors: all of the same origin. */
export const mirrors: Readonly<Record<string, CheckOptions>> = {
  never: { deletes: 'never' },
  explicit: { deletes: 'explicit' },
  selected: { deletes: 'never', namespaces: ['w-0', 'real'] },
}

export class Site implements AsyncDisposable {
  readonly kubernetes: Kubernetes
  readonly replicas: Replicas
  /** Values of the metrics of mirrors by process and metric: counters begin anew with a process. */
  readonly #metrics = new Map<string, Map<string, number>>()
  readonly #ending = new AbortController()
  #markers = 0

  static async start(): Promise<Site> {
    const eventTtl = `${eventTtlSeconds}s`
    const kubernetes = await Kubernetes.start({ eventTtl })
    try {
      const { api } = kubernetes
      await create(api, namespaces.map(namespaceNamed))
      const token = await mirrorToken(api)
      await checkPermissions(api, token)
      const path = await writeClustersFile(api, token)
      const flags = [`--clusters-file=${path}`]
      return new Site(kubernetes, await Replicas.start(replicaIndexes.length, flags))
    } catch (error) {
      await kubernetes[Symbol.asyncDispose]()
      throw error
    }
  }

  private constructor(kubernetes: Kubernetes, replicas: Replicas) {
    this.kubernetes = kubernetes
    this.replicas = replicas
    void this.#pollMetrics()
  }

  /** A connection to one of the replicas, another one each time. */
  readonly target = async (): Promise<EventClient> =>
    await this.replicas.client(Math.floor(Math.random() * replicaIndexes.length))

  readonly origin = (): Promise<EventClient> => this.kubernetes.client()

  /** The replica that mirrors; undefined when there is none at the moment. */
  leader(mirror = 'never'): number | undefined {
    for (const index of replicaIndexes) {
      const { pid } = this.replicas.server(index).process
      const metrics = this.#metrics.get(String(pid))
      if (metrics?.get(`tidings_mirror_role{cluster="${mirror}"}`) === 1) return index
    }
    return undefined
  }

  async someLeader(): Promise<number> {
    await eventually('a replica mirrors', () => this.leader() !== undefined, 60_000)
    return this.leader() ?? 0
  }

  /** Resolves when all mirrors have stored what was written before the call. */
  async untilCaughtUp(): Promise<void> {
    const name = `marker.${++this.#markers}`
    const marked = Object.entries(mirrors).flatMap(([mirror, { namespaces: streams = ['w-0'] }]) =>
      streams.map((namespace) => ({ mirror, namespace })),
    )
    // A write that was sent before may be applied later than the marker.
    await sleep(settleMs)
    for (const namespace of new Set(marked.map((mark) => mark.namespace))) {
      await this.#mark(namespace, name)
    }
    using session = new Session(this.target)
    for (const { mirror, namespace } of marked) {
      const path = `/clusters/${mirror}/api/v1/namespaces/${namespace}/events/${name}`
      await eventually(
        `${mirror} has caught up`,
        () => session.request({ path }).then(isFound, () => false),
        caughtUpMsMax,
      )
    }
    // Mirrors write other events at the same time.
    await sleep(settleMs)
  }

  async #mark(namespace: string, name: string): Promise<void> {
    const involvedObject = { kind: 'Namespace', name: namespace, namespace }
    const event = { metadata: { name, namespace }, involvedObject, reason: 'Marked' }
    await this.kubernetes.api.create(`/api/v1/namespaces/${namespace}/events`, event)
  }

  /** The sum of a counter over all processes that there were. */
  total(start: string): number {
    let sum = 0
    for (const metrics of this.#metrics.values()) {
      for (const [name, value] of metrics) if (name.startsWith(start)) sum += value
    }
    return sum
  }

  /** Compacts the history of the origin up to its newest revision. */
  async compactOrigin(): Promise<void> {
    const [endpoint = ''] = this.kubernetes.api.etcd.endpoints
    const call = (...args: readonly string[]) =>
      run(etcdctlBinary, [`--endpoints=${endpoint}`, ...args])
    const { stdout } = await call('endpoint', 'status', '--write-out=json')
    const revision = JSON.parse(stdout)[0].Status.header.revision
    // Time for the watch of the observer to get there.
    await sleep(compactDelayMs)
    await call('compact', String(revision))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort()
    await this.replicas[Symbol.asyncDispose]()
    await this.kubernetes[Symbol.asyncDispose]()
  }

  async #pollMetrics(): Promise<void> {
    while (!this.#ending.signal.aborted) {
      await Promise.all(replicaIndexes.map((index) => this.#poll(index)))
      await sleep(pollMs)
    }
  }

  async #poll(index: number): Promise<void> {
    const server = this.replicas.server(index)
    const pid = String(server.process.pid)
    try {
      const { body } = await server.ask('/metrics', { timeoutMs: 2_000 })
      const lines = [...body.matchAll(/^(tidings_mirror_\S+) (\S+)$/gm)]
      this.#metrics.set(pid, new Map(lines.map(([, name = '', value]) => [name, Number(value)])))
    } catch {
      // It is down or paused: it does not mirror.
      for (const [name] of this.#metrics.get(pid) ?? []) {
        if (name.startsWith('tidings_mirror_role')) this.#metrics.get(pid)?.set(name, 0)
      }
    }
  }
}

/** Applies the documented manifest, and returns the token that the cluster puts into its Secret. */
async function mirrorToken(api: KubeApiserver): Promise<string> {
  const documents = [...yamlDocuments(await readFile(manifest, 'utf8'))]
  await create(api, documents.map(({ value }) => value).filter(isObject))
  const path = '/api/v1/namespaces/tidings-mirror/secrets/mirror-token'
  let token = ''
  await eventually(
    'the cluster issues a token',
    async () => {
      const { body } = await api.ask('GET', path)
      token = JSON.parse(body).data?.token ?? ''
      return token !== ''
    },
    60_000,
  )
  return Buffer.from(token, 'base64').toString('utf8')
}

/** The account may list and watch core/v1 events, and nothing else. */
async function checkPermissions(api: KubeApiserver, token: string): Promise<void> {
  const events = '/api/v1/namespaces/w-0/events'
  const body = { metadata: { name: 'x' }, involvedObject: { kind: 'Pod', namespace: 'w-0' } }
  const wanted = [
    ['GET', '/api/v1/events', 200],
    ['GET', '/api/v1/events?watch=1&timeoutSeconds=1', 200],
    ['GET', `${events}/x`, 403],
    ['POST', events, 403],
    ['DELETE', `${events}/x`, 403],
    ['GET', '/apis/events.k8s.io/v1/events', 403],
    ['GET', '/api/v1/pods', 403],
    ['GET', '/api/v1/namespaces', 403],
    ['GET', '/api/v1/namespaces/kube-system', 200],
    ['GET', '/api/v1/namespaces/default', 403],
    ['GET', '/api/v1/namespaces/tidings-mirror/secrets', 403],
  ] as const
  for (const [method, path, status] of wanted) {
    const sent = { token, ...(method === 'POST' ? { body } : {}) }
    const response = await api.ask(method, path, sent)
    if (response.status !== status) throw new Error(`${method} ${path}: ${response.status}`)
  }
}

async function writeClustersFile(api: KubeApiserver, token: string): Promise<string> {
  const { folder } = api
  await writeFile(join(folder, 'mirror.kubeconfig'), api.kubeconfig(token), { mode: 0o600 })
  const clusters = Object.entries(mirrors).map(([name, { deletes, namespaces: selected }]) => ({
    name,
    kubeconfig: 'mirror.kubeconfig',
    mirror: {
      deletes,
      originEventTTL: `${eventTtlSeconds}s`,
      ...(selected === undefined ? {} : { namespaces: selected }),
    },
  }))
  const path = join(folder, 'clusters.yaml')
  const kind = 'ClusterConfiguration'
  await writeFile(path, JSON.stringify({ apiVersion: 'tidings.dev/v1alpha1', kind, clusters }))
  return path
}

function namespaceNamed(name: string): object {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }
}

function isFound({ status }: ApiAnswer): boolean {
  return status === 200
}

/** Paths by kind, for the kinds that the tests create. */
const paths: Readonly<Record<string, string>> = {
  Namespace: '/api/v1/namespaces',
  ServiceAccount: '/api/v1/namespaces/tidings-mirror/serviceaccounts',
  Secret: '/api/v1/namespaces/tidings-mirror/secrets',
  ClusterRole: '/apis/rbac.authorization.k8s.io/v1/clusterroles',
  ClusterRoleBinding: '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
}

async function create(api: KubeApiserver, objects: readonly object[]): Promise<void> {
  for (const object of objects) {
    const kind = 'kind' in object ? String(object.kind) : ''
    await api.create(paths[kind] ?? '', object)
  }
}
