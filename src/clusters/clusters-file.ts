/** The file of `--clusters-file`: clusters that are mirrored or that authorise their readers. */
import { readBounded } from '../lib/files/bounded-file.ts'
import { errorIn } from '../lib/files/config-fields.ts'
import { follow, type OnPoll } from '../lib/files/follow.ts'
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
 * kubeconfig changes, but not when only credentials are renewed.
 */
export interface ClusterConfig {
  readonly name: string
  /** Returns the current server and credentials; undefined without a kubeconfig in the file. */
  readonly kubeconfig: (() => KubeconfigServer) | undefined
  /** Undefined when the cluster is not mirrored. */
  readonly mirror: MirrorConfig | undefined
  /** Whether the roles of this server or the cluster itself authorise readers. */
  readonly authorization: 'rbac' | 'origin'
  /** Tokens that may be sent to the cluster; undefined when none may. */
  readonly tokens?: ClusterTokens | undefined
}

export type ClustersSource = Pick<ClustersFile, 'clusters' | 'certificates' | 'onChange'>

export interface ClustersFileOptions {
  readonly log: Log
  readonly onPoll?: OnPoll | undefined
}

/** The content of the file and of the kubeconfig files that it names. */
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
 * Follows the file and the kubeconfig files that it names. While a changed file is invalid, the last
 * valid version stays in effect; an invalid kubeconfig affects no other cluster.
 */
export class ClustersFile {
  readonly #options: ClustersFileOptions
  #members: ReadonlyMap<string, Member> = new Map()
  #clusters: ReadonlyMap<string, ClusterConfig> = new Map()
  readonly #listeners: (() => void)[] = []
  /** Files that are currently invalid. */
  readonly #unusable = new Set<string>()
  readonly #follower: { stop(): void }

  /** Rejects if a file is invalid; the error names the file and the field. */
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
      onRecovered: () => log.info('Clusters file valid again, unchanged', { file: path }),
      onPoll: (isUsable, hasChanged) => this.#polled(path, isUsable, hasChanged),
    })
  }

  /** Keyed by name, in the order of the file. Each change creates a new map. */
  get clusters(): ReadonlyMap<string, ClusterConfig> {
    return this.#clusters
  }

  /** The client certificates and authorities of all clusters, as PEM. */
  get certificates(): string {
    return [...this.#members.values()]
      .flatMap(({ server }) => [server?.ca ?? '', server?.clientCertificate?.cert ?? ''])
      .join('\n')
  }

  /** Calls `listener` after each change of `clusters`. */
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
      const isUnchanged = known !== undefined && isSame(known, { section, server })
      members.set(section.name, isUnchanged ? known : this.#started({ section, server }))
      if (isUnchanged) known.server = server
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
      onRecovered: () => log.info('Kubeconfig of a cluster valid again, unchanged', fields),
      onPoll: (isUsable, hasChanged) => this.#polled(keyOf(section), isUsable, hasChanged),
      intervalMs: KUBECONFIG_INTERVAL_MS,
    })
    return member
  }

  #polled(file: string, isUsable: boolean, hasChanged: boolean): void {
    if (isUsable) this.#unusable.delete(file)
    else this.#unusable.add(file)
    this.#options.onPoll?.(this.#unusable.size === 0, hasChanged)
  }
}

function configOf({ name, mirror, authorization, tokens }: ClusterSection): ClusterConfig {
  return { name, mirror, authorization, tokens, kubeconfig: undefined }
}

/** A new object that returns the member's kubeconfig at the time of each call. */
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
    throw errorIn(path, cause)
  }
}

async function loadServer(
  { authorization }: ClusterSection,
  { path, context }: NonNullable<ClusterSection['kubeconfig']>,
  current?: KubeconfigServer,
): Promise<KubeconfigServer> {
  // An origin that decides who has access must be reached over TLS.
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
    throw errorIn(field, cause)
  }
}
