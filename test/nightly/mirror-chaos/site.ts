/**
 * The processes of a run, and the proxies between them:
 *
 *     writers -> origin -> proxy -> etcd of the origin
 *                  ^
 *                proxy, one for each replica of the target
 *                  |
 *     observers -> target, two replicas -> proxy, one for each -> etcd of the target
 *
 * All of them keep their addresses when they are restarted.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeSelfSigned } from '../../../src/http/tls/self-signed.ts'
import { mirrorKey, mirrorLeaderKey } from '../../../src/storage/etcd/keys.ts'
import { type EtcdCluster, type EtcdMember, startEtcd } from '../../support/etcd.ts'
import { FaultProxy } from '../../support/fault-proxy.ts'
import { reservePort } from '../../support/ports.ts'
import type { OriginChange, TargetChange } from './history.ts'
import { Recorder } from './recorder.ts'
import { Replica } from './replica.ts'

export const token = 'mirror-chaos'
/** The cluster at the origin, behind a path prefix there, and its name at the target. */
export const originCluster = 'prod'
export const targetCluster = 'prod-eu'
const prefix = '/tidings'
const targetCount = 2

export interface SiteOptions {
  readonly deletes: 'never' | 'explicit'
  /** The namespaces that are mirrored, each by a stream of its own; undefined for all in one. */
  readonly namespaces?: readonly string[] | undefined
  /** The program of the target, and its environment: for planted bugs. */
  readonly program?: string | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
}

/** A replica of the target with its connections. */
export interface Target {
  readonly replica: Replica
  readonly toOrigin: FaultProxy
  readonly toEtcd: FaultProxy
}

/** The record of the mirror, as far as a run needs it. */
export interface MirrorReport {
  readonly state: string
  readonly message: string
  /** Keyed by stream: a namespace, or '' for all of them. */
  readonly positions: ReadonlyMap<string, number>
  /** The lowest of them; 0 while a stream has none. */
  readonly position: number
}

export class Site implements AsyncDisposable {
  readonly originEtcd: EtcdMember
  readonly targetEtcd: EtcdMember
  readonly origin: Replica
  readonly originToEtcd: FaultProxy
  readonly targets: readonly Target[]
  readonly ca: string
  readonly originHistory: Recorder<OriginChange>
  readonly targetHistory: Recorder<TargetChange>
  readonly #stack: AsyncDisposableStack
  readonly #namespaces: readonly string[] | undefined

  static async start(options: SiteOptions): Promise<Site> {
    await using stack = new AsyncDisposableStack()
    const folder = await mkdtemp(join(tmpdir(), 'tidings-mirror-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    const { cert, key } = await makeSelfSigned(['localhost', '127.0.0.1'])
    await writeFile(join(folder, 'serving.crt'), cert)
    await writeFile(join(folder, 'serving.key'), key, { mode: 0o600 })
    await writeFile(join(folder, 'tokens.csv'), `${token},admin,1,system:masters\n`)
    const etcds = await Promise.all([startEtcd(), startEtcd()])
    for (const etcd of etcds) stack.use(etcd)
    const [originEtcd, targetEtcd] = etcds
    const originToEtcd = stack.use(await proxyTo(originEtcd))
    const origin = stack.use(
      new Replica({ folder, port: await reservePort(), etcd: originToEtcd.address, flags: [] }),
    )
    const targets: Target[] = []
    for (let index = 0; index < targetCount; index++) {
      const toOrigin = stack.use(await FaultProxy.start(`127.0.0.1:${origin.port}`))
      const toEtcd = stack.use(await proxyTo(targetEtcd))
      const port = await reservePort()
      const file = await writeClusters(folder, { index, address: toOrigin.address, ...options })
      const flags = [`--clusters-file=${file}`]
      const replica = new Replica({ ...options, folder, port, etcd: toEtcd.address, flags })
      targets.push({ replica: stack.use(replica), toOrigin, toEtcd })
    }
    await Promise.all([origin, ...targets.map(({ replica }) => replica)].map((one) => one.start()))
    const { namespaces } = options
    const parts = { originEtcd, targetEtcd, origin, originToEtcd, targets, cert, namespaces }
    return new Site(parts, stack.move())
  }

  private constructor(
    parts: {
      readonly originEtcd: EtcdCluster
      readonly targetEtcd: EtcdCluster
      readonly origin: Replica
      readonly originToEtcd: FaultProxy
      readonly targets: readonly Target[]
      readonly cert: string
      readonly namespaces: readonly string[] | undefined
    },
    stack: AsyncDisposableStack,
  ) {
    this.originEtcd = parts.originEtcd.member(0)
    this.targetEtcd = parts.targetEtcd.member(0)
    this.origin = parts.origin
    this.originToEtcd = parts.originToEtcd
    this.targets = parts.targets
    this.ca = parts.cert
    this.#stack = stack
    this.#namespaces = parts.namespaces
    const folder = (cluster: string) => `${prefix}/events/${cluster}/`
    this.originHistory = stack.use(
      Recorder.ofOrigin(this.originEtcd.endpoint, folder(originCluster)),
    )
    this.targetHistory = stack.use(
      Recorder.ofTarget(this.targetEtcd.endpoint, folder(targetCluster)),
    )
  }

  /** The index of the replica that is elected to mirror; undefined when none is, or not known. */
  async elected(): Promise<number | undefined> {
    const value = await this.targetHistory.read(mirrorLeaderKey(prefix, targetCluster))
    // The name of a replica is its host and its process id.
    const [, pid] = /\/(\d+)(?: |$)/.exec(value?.toString() ?? '') ?? []
    const index = this.targets.findIndex(({ replica }) => String(replica.pid) === pid)
    return index === -1 ? undefined : index
  }

  /** The stream of the mirror that an event belongs to; undefined when it is not mirrored. */
  streamOf(name: string): string | undefined {
    if (this.#namespaces === undefined) return ''
    const namespace = name.slice(0, name.indexOf('/'))
    return this.#namespaces.includes(namespace) ? namespace : undefined
  }

  /** The changes at the origin that are to be mirrored. */
  mirrored(): readonly OriginChange[] {
    return this.originHistory.changes.filter(({ name }) => this.streamOf(name) !== undefined)
  }

  /** What the mirror has reported last. */
  async report(): Promise<MirrorReport | undefined> {
    const value = await this.targetHistory.read(mirrorKey(prefix, targetCluster))
    if (value === undefined) return undefined
    const { state, message, positions } = JSON.parse(value.toString())
    const streams = this.#namespaces ?? ['']
    const reached = new Map(streams.map((stream) => [stream, Number(positions[stream] ?? 0)]))
    return { state, message, positions: reached, position: Math.min(...reached.values()) }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync()
  }
}

function proxyTo(etcd: EtcdCluster): Promise<FaultProxy> {
  return FaultProxy.start(etcd.member(0).endpoint)
}

/** Each replica has files of its own, since each reaches the origin through its own proxy. */
async function writeClusters(
  folder: string,
  options: SiteOptions & { readonly index: number; readonly address: string },
): Promise<string> {
  const { index, address, deletes, namespaces } = options
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'origin',
    contexts: [{ name: 'origin', context: { cluster: 'origin', user: 'mirror' } }],
    clusters: [
      {
        name: 'origin',
        cluster: {
          server: `https://${address}/clusters/${originCluster}`,
          'certificate-authority': join(folder, 'serving.crt'),
        },
      },
    ],
    users: [{ name: 'mirror', user: { token } }],
  }
  await writeFile(join(folder, `origin-${index}.kubeconfig`), JSON.stringify(kubeconfig))
  const clusters = {
    apiVersion: 'tidings.dev/v1alpha1',
    kind: 'ClusterConfiguration',
    clusters: [
      {
        name: targetCluster,
        kubeconfig: `origin-${index}.kubeconfig`,
        mirror: { deletes, namespaces },
      },
    ],
  }
  const file = join(folder, `clusters-${index}.yaml`)
  await writeFile(file, JSON.stringify(clusters))
  return file
}
