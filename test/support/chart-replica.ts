/**
 * Starts the program with the command line and the files of a rendered chart: each volume becomes a
 * folder as a kubelet mounts it, and each path in the arguments is replaced by that of its folder.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { find, type Manifest } from './chart.ts'
import { MountedVolume } from './mounted-volume.ts'
import { type Answer, type Ask, Tidings } from './tidings.ts'

type Files = Readonly<Record<string, string>>

export interface ChartReplicaOptions {
  /** Contents of the ConfigMaps and Secrets that the chart only names, by name and key. */
  readonly given?: Readonly<Record<string, Files>>
  readonly etcdServers: string
}

// biome-ignore lint/suspicious/noExplicitAny: parts of a pod, as Kubernetes has them.
type PodPart = any

export class ChartReplica implements AsyncDisposable {
  readonly server: Tidings
  /** PEM of the authority that clients trust. */
  readonly ca: string
  readonly container: PodPart
  readonly #volumes: ReadonlyMap<string, MountedVolume>
  readonly #folder: string

  static async start(
    manifests: readonly Manifest[],
    options: ChartReplicaOptions,
  ): Promise<ChartReplica> {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-chart-'))
    const pod = find(manifests, 'Deployment')['spec'].template.spec
    const [container] = pod.containers
    const volumes = new Map<string, MountedVolume>()
    const objects = { ...made(manifests), ...options.given }
    for (const { name, mountPath } of container.volumeMounts) {
      const volume = new MountedVolume(join(folder, mountPath))
      const source = pod.volumes.find((each: PodPart) => each.name === name)
      await volume.write(filesOf(source, objects))
      volumes.set(name, volume)
    }
    try {
      const env = Object.fromEntries(
        (container.env ?? []).map(({ name, value }: PodPart) => [name, value]),
      )
      const server = await Tidings.start(argsOf(container.args, folder, options), env)
      const ca = objects[tlsSecretOf(pod)]?.['ca.crt'] ?? ''
      return new ChartReplica({ server, ca, container, volumes, folder })
    } catch (error) {
      await rm(folder, { recursive: true })
      throw error
    }
  }

  private constructor(parts: {
    readonly server: Tidings
    readonly ca: string
    readonly container: PodPart
    readonly volumes: ReadonlyMap<string, MountedVolume>
    readonly folder: string
  }) {
    this.server = parts.server
    this.ca = parts.ca
    this.container = parts.container
    this.#volumes = parts.volumes
    this.#folder = parts.folder
  }

  ask(path: string, ask: Ask = {}): Promise<Answer> {
    return this.server.ask(path, { ca: this.ca, ...ask })
  }

  /** Changes the files of a volume as a kubelet does after `kubectl apply`. */
  async update(volume: string, files: Files): Promise<void> {
    const found = this.#volumes.get(volume)
    if (found === undefined) throw new Error(`the pod has no volume ${volume}`)
    await found.write(files)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]()
    await rm(this.#folder, { recursive: true })
  }
}

/** Contents of the ConfigMaps and Secrets of the chart, by name and key. */
export function made(manifests: readonly Manifest[]): Readonly<Record<string, Files>> {
  const found: Record<string, Files> = {}
  for (const { kind, metadata, data } of manifests) {
    if (kind === 'ConfigMap') found[metadata.name] = data
    if (kind !== 'Secret') continue
    found[metadata.name] = Object.fromEntries(
      Object.entries<string>(data).map(([key, value]) => [
        key,
        Buffer.from(value, 'base64').toString(),
      ]),
    )
  }
  return found
}

function tlsSecretOf(pod: PodPart): string {
  return pod.volumes.find((each: PodPart) => each.name === 'tls').secret.secretName
}

/** Files of a volume, by path in its folder. */
function filesOf(volume: PodPart, objects: Readonly<Record<string, Files>>): Files {
  const sources = volume.projected?.sources ?? [volume]
  return Object.assign({}, ...sources.map((source: PodPart) => filesOfSource(source, objects)))
}

function filesOfSource(source: PodPart, objects: Readonly<Record<string, Files>>): Files {
  const { secret, configMap, serviceAccountToken } = source
  if (serviceAccountToken !== undefined) {
    return { [serviceAccountToken.path]: objects['service-account']?.['token'] ?? '' }
  }
  const name = secret?.secretName ?? secret?.name ?? configMap.name
  const data = objects[name]
  if (data === undefined) throw new Error(`neither the chart nor the test has ${name}`)
  const items = (secret ?? configMap).items as readonly { key: string; path: string }[] | undefined
  if (items === undefined) return data
  return Object.fromEntries(items.map(({ key, path }) => [path, data[key] ?? '']))
}

/**
 * Only what a machine without the cluster cannot have is replaced: where etcd is, the port, and the
 * root of the paths.
 */
function argsOf(
  args: readonly string[],
  folder: string,
  { etcdServers }: ChartReplicaOptions,
): readonly string[] {
  return (
    args
      // Set for every replica of a test, which reads the log.
      .filter((arg) => !arg.startsWith('--logging-format='))
      .map((arg) =>
        arg
          .replace(/^--etcd-servers=.*/, `--etcd-servers=${etcdServers}`)
          .replace(/^--secure-port=.*/, '--secure-port=0')
          .replace(/=\/etc\//, `=${folder}/etc/`),
      )
  )
}
