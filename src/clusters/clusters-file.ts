/** The file of `--clusters-file`: the clusters that are mirrored, or that authorise their readers. */
import { readBounded } from '../lib/files/bounded-file.ts'
import { follow, type OnLook } from '../lib/files/follow.ts'
import type { Log } from '../lib/log/log.ts'
import {
  type ClusterSection,
  type ClusterTokens,
  type MirrorConfig,
  readClusters,
} from './cluster-sections.ts'
import { type KubeconfigServer, loadKubeconfig } from './kubeconfig.ts'

const FILE_BYTES_MAX = 256 * 1024
/** Kubeconfig files are polled less often than the file itself: there may be hundreds. */
const KUBECONFIG_INTERVAL_MS = 5000

/**
 * A cluster of the file. The object is replaced when its section of the file or the address in its
 * kubeconfig changes, and kept when only credentials are renewed.
 */
export interface ClusterConfig {
  readonly name: string
  /** The server and the credentials as they are now; undefined when the file has no kubeconfig. */
  readonly kubeconfig: (() => KubeconfigServer) | undefined
  /** Undefined: not mirrored. */
  readonly mirror: MirrorConfig | undefined
  /** Who authorises readers: the roles of this server, or the cluster itself. */
  readonly authorization: 'rbac' | 'origin'
  /** Which tokens the cluster may see; undefined: none. */
  readonly tokens?: ClusterTokens | undefined
}

/** What a part of the server needs of a clusters file. */
export type ClustersSource = Pick<ClustersFile, 'clusters' | 'certificates' | 'onChange'>

export interface ClustersFileOptions {
  readonly log: Log
  readonly onLook?: OnLook | undefined
}

/** The content of the file with the kubeconfig files that it names. */
interface Loaded {
  readonly content: Buffer
  readonly clusters: readonly LoadedCluster[]
}

interface LoadedCluster {
  readonly section: ClusterSection
  readonly server: KubeconfigServer | undefined
}

interface Member {
  readonly section: ClusterSection
  config: ClusterConfig
  server: KubeconfigServer | undefined
  follower: { stop(): void } | undefined
}

/**
 * Follows the file and the kubeconfig files that it names. While a changed file cannot be used, the
 * last usable version stays in effect; a kubeconfig that cannot be used affects no other cluster.
 */
export class ClustersFile {
  readonly #options: ClustersFileOptions
  #members: ReadonlyMap<string, Member> = new Map()
  #clusters: ReadonlyMap<string, ClusterConfig> = new Map()
  readonly #listeners: (() => void)[] = []
  /** Files that cannot be used at present. */
  readonly #unusable = new Set<string>()
  readonly #follower: { stop(): void }

  /** Rejects if a file cannot be used; the error has file and field. */
  static async open(path: string, options: ClustersFileOptions): Promise<ClustersFile> {
    return new ClustersFile(path, await load(path), options)
  }

  private constructor(path: string, first: Loaded, options: ClustersFileOptions) {
    this.#options = options
    this.#apply(first)
    const { log } = options
    this.#follower = follow({
      inUse: first,
      load: (current) => load(path, current),
      onChange: (found) => {
        this.#apply(found)
        log.info('Clusters file reloaded', { file: path, count: found.clusters.length })
        this.#notify()
      },
      onProblem: (err) => log.warn('Clusters file not reloaded', { err }),
      onMended: () => log.info('Clusters file valid again, unchanged', { file: path }),
      onLook: (isUsable, hasChanged) => this.#looked(path, isUsable, hasChanged),
    })
  }

  /** By name, in the order of the file. A new map after each change. */
  get clusters(): ReadonlyMap<string, ClusterConfig> {
    return this.#clusters
  }

  /** PEM: the client certificates and authorities of all clusters. */
  get certificates(): string {
    return [...this.#members.values()]
      .flatMap(({ server }) => [server?.ca ?? '', server?.clientCertificate?.cert ?? ''])
      .join('\n')
  }

  /** `listener` is called after each change of `clusters`. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener)
  }

  stop(): void {
    this.#follower.stop()
    for (const { follower } of this.#members.values()) follower?.stop()
  }

  #apply({ clusters }: Loaded): void {
    const members = new Map<string, Member>()
    for (const { section, server } of clusters) {
      const known = this.#members.get(section.name)
      const isKept = known !== undefined && isSame(known, { section, server })
      members.set(section.name, isKept ? known : this.#started({ section, server }))
      if (isKept) known.server = server
    }
    for (const [name, old] of this.#members) {
      if (members.get(name) === old) continue
      old.follower?.stop()
      if (old.section.kubeconfig !== undefined) this.#unusable.delete(keyOf(old.section))
    }
    this.#members = members
    this.#publish()
  }

  #publish(): void {
    this.#clusters = new Map([...this.#members].map(([name, { config }]) => [name, config]))
  }

  #notify(): void {
    for (const listener of this.#listeners) listener()
  }

  #started({ section, server }: LoadedCluster): Member {
    const member: Member = { section, server, follower: undefined, config: configOf(section) }
    member.config = liveConfig(member)
    const { kubeconfig } = section
    if (server === undefined || kubeconfig === undefined) return member
    const { log } = this.#options
    const fields = { cluster: section.name, file: kubeconfig.path }
    member.follower = follow({
      inUse: server,
      load: (current) => loadServer(section, kubeconfig, current),
      onChange: (found) => {
        const hasMoved = found.url.href !== member.server?.url.href
        member.server = found
        log.info('Kubeconfig of a cluster reloaded', fields)
        if (!hasMoved) return
        member.config = liveConfig(member)
        this.#publish()
        this.#notify()
      },
      onProblem: (err) => log.warn('Kubeconfig of a cluster not reloaded', { ...fields, err }),
      onMended: () => log.info('Kubeconfig of a cluster valid again, unchanged', fields),
      onLook: (isUsable, hasChanged) => this.#looked(keyOf(section), isUsable, hasChanged),
      intervalMs: KUBECONFIG_INTERVAL_MS,
    })
    return member
  }

  #looked(file: string, isUsable: boolean, hasChanged: boolean): void {
    if (isUsable) this.#unusable.delete(file)
    else this.#unusable.add(file)
    this.#options.onLook?.(this.#unusable.size === 0, hasChanged)
  }
}

function configOf({ name, mirror, authorization, tokens }: ClusterSection): ClusterConfig {
  return { name, mirror, authorization, tokens, kubeconfig: undefined }
}

/** A new object whose kubeconfig is that of the member at the time of each call. */
function liveConfig(member: Member): ClusterConfig {
  const { server } = member
  const config = configOf(member.section)
  return server === undefined ? config : { ...config, kubeconfig: () => member.server ?? server }
}

function keyOf({ name }: ClusterSection): string {
  return `cluster ${name}`
}

function isSame(one: LoadedCluster, other: LoadedCluster): boolean {
  return (
    JSON.stringify(one.section) === JSON.stringify(other.section) &&
    one.server?.url.href === other.server?.url.href
  )
}

/** Returns `current` itself when the content of the file is unchanged. */
async function load(path: string, current?: Loaded): Promise<Loaded> {
  const content = await readBounded(path, FILE_BYTES_MAX)
  if (current?.content.equals(content) === true) return current
  try {
    const clusters: LoadedCluster[] = []
    for (const [at, section] of readClusters(content.toString(), path).entries()) {
      const { kubeconfig } = section
      const field = `clusters[${at}].kubeconfig`
      const server =
        kubeconfig === undefined ? undefined : await inField(field, loadServer(section, kubeconfig))
      clusters.push({ section, server })
    }
    return { content, clusters }
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`${path}: ${why}`, { cause })
  }
}

async function loadServer(
  { authorization }: ClusterSection,
  { path, context }: NonNullable<ClusterSection['kubeconfig']>,
  current?: KubeconfigServer,
): Promise<KubeconfigServer> {
  // An origin whose responses decide who has access is always asked over TLS.
  const allowsLoopbackHttp = authorization !== 'origin'
  const server = await loadKubeconfig(path, { context, allowsLoopbackHttp }, current)
  if (/\/clusters\/(\*|%2a)\/?$/i.test(server.url.pathname)) {
    throw new Error(`${path}: the server is all clusters of a tidings: name one of them in its URL`)
  }
  return server
}

async function inField<T>(field: string, result: Promise<T>): Promise<T> {
  try {
    return await result
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`${field}: ${why}`, { cause })
  }
}
