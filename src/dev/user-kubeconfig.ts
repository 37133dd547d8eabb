/**
 * The user's own kubeconfig, as kubectl would use it, for `tidings dev --mirror`. The selected context
 * is written as a kubeconfig of one context that the server can read. A program that provides
 * credentials (`exec`) is run here; the server itself never runs one.
 */
import { writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { readBounded } from '../lib/files/bounded-file.ts'
import { isObject, type JsonObject, memberOf, textOf } from '../lib/json.ts'
import { yamlDocuments } from '../lib/text/yaml-documents.ts'
import { ExecCredentials, type ExecPlugin, execPluginOf } from './exec-credentials.ts'

const FILE_BYTES_MAX = 4 * 1024 * 1024
/** The file contains credentials. */
const OWNER_ONLY = 0o600

export interface UserContext {
  readonly context: string
  /** The URL of the context's cluster. */
  readonly server: string
  /** The name of the cluster in tidings: a DNS label. */
  readonly clusterName: string
  /** Path of a kubeconfig that has only this context. */
  readonly kubeconfig: string
  /** Stops renewing credentials. */
  stop(): void
}

export interface UserContextOptions {
  /** As with `KUBECONFIG`, the first file that has an entry wins. */
  readonly files: readonly string[]
  /** Default: the current context. */
  readonly context: string | undefined
  /** The folder that the kubeconfig is written to. */
  readonly folder: string
  /** Called when credentials could not be renewed. */
  readonly onFailure: (error: unknown) => void
}

/** An entry of one of the files; paths in it are relative to the folder of that file. */
interface Entry {
  readonly name: string
  readonly value: JsonObject
  readonly folder: string
}

interface UserConfig {
  readonly currentContext: string | undefined
  readonly contexts: readonly Entry[]
  readonly clusters: readonly Entry[]
  readonly users: readonly Entry[]
}

export async function openUserContext(options: UserContextOptions): Promise<UserContext> {
  const config = await readFiles(options.files)
  const context = options.context ?? config.currentContext
  const places = options.files.join(', ')
  if (context === undefined) throw new Error(`${places}: no current-context: set --context`)
  const { value } = entryOf(config.contexts, 'context', context)
  const cluster = entryOf(config.clusters, 'cluster', textOf(value, 'cluster'))
  const userName = textOf(value, 'user')
  const user = userName === '' ? undefined : entryOf(config.users, 'user', userName)
  const server = textOf(cluster.value, 'server')
  if (server === '') throw new Error(`cluster ${cluster.name} has no server`)

  const kubeconfig = join(options.folder, 'origin.kubeconfig')
  const plugin = user && execPluginOf(user.value, user.folder)
  const credentials = plugin && (await startPlugin(plugin, cluster, options))
  const written = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'origin', cluster: absolute(cluster, CLUSTER_FILES) }],
    users: [{ name: 'user', user: credentials?.user ?? (user ? absolute(user, USER_FILES) : {}) }],
    contexts: [{ name: context, context: { cluster: 'origin', user: 'user' } }],
    'current-context': context,
  }
  await writeFile(kubeconfig, JSON.stringify(written, undefined, 2), { mode: OWNER_ONLY })
  return {
    context,
    server,
    clusterName: labelOf(context),
    kubeconfig,
    stop: () => credentials?.stop(),
  }
}

const CLUSTER_FILES = ['certificate-authority']
const USER_FILES = ['client-certificate', 'client-key', 'tokenFile']

async function startPlugin(
  plugin: ExecPlugin,
  cluster: Entry,
  { folder, onFailure }: UserContextOptions,
): Promise<ExecCredentials> {
  const info = absolute(cluster, CLUSTER_FILES)
  return ExecCredentials.start(plugin, { folder, cluster: info, onFailure })
}

async function readFiles(files: readonly string[]): Promise<UserConfig> {
  const configs: UserConfig[] = []
  let failure: unknown
  for (const file of files) {
    try {
      configs.push(configOf(String(await readBounded(file, FILE_BYTES_MAX)), file))
    } catch (error) {
      // Like kubectl, ignore files of the list that do not exist.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      failure = error
    }
  }
  if (configs.length === 0) {
    const where = files.join(', ')
    throw new Error(`no kubeconfig at ${where}: set KUBECONFIG or --kubeconfig`, { cause: failure })
  }
  return {
    currentContext: configs.find(({ currentContext }) => currentContext !== undefined)
      ?.currentContext,
    contexts: configs.flatMap(({ contexts }) => contexts),
    clusters: configs.flatMap(({ clusters }) => clusters),
    users: configs.flatMap(({ users }) => users),
  }
}

function configOf(text: string, file: string): UserConfig {
  const [document] = [...yamlDocuments(text)]
  const config = document?.value ?? {}
  if (!isObject(config)) throw new Error(`${file}: not a kubeconfig`)
  const folder = dirname(resolve(file))
  const entries = (kind: string): readonly Entry[] => {
    const listed = memberOf(config, `${kind}s`)
    if (!Array.isArray(listed)) return []
    return listed.flatMap((entry) => {
      const value = isObject(entry) ? memberOf(entry, kind) : undefined
      const name = isObject(entry) ? memberOf(entry, 'name') : undefined
      return isObject(value) && typeof name === 'string' ? [{ name, value, folder }] : []
    })
  }
  return {
    currentContext: textOf(config, 'current-context') || undefined,
    contexts: entries('context'),
    clusters: entries('cluster'),
    users: entries('user'),
  }
}

function entryOf(entries: readonly Entry[], kind: string, name: string): Entry {
  const found = entries.find((entry) => entry.name === name)
  if (found !== undefined) return found
  const names = entries.map((entry) => entry.name).join(', ')
  throw new Error(`the kubeconfig has no ${kind} ${JSON.stringify(name)}; it has: ${names}`)
}

/** The entry with absolute paths in the members that name files. */
function absolute({ value, folder }: Entry, files: readonly string[]): JsonObject {
  const resolved = { ...value }
  for (const name of files) {
    const path = textOf(value, name)
    if (path !== '') resolved[name] = resolve(folder, path)
  }
  return resolved
}

const LABEL_LENGTH_MAX = 63

/** Shortens contexts of cloud providers: `arn:aws:eks:eu-west-1:1234:cluster/prod` becomes `prod`. */
export function labelOf(context: string): string {
  const last = context.split(/[/@]/).at(-1) ?? ''
  const label = (last === '' ? context : last)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(-LABEL_LENGTH_MAX)
    .replaceAll(/^-+|-+$/g, '')
  return label === '' ? 'origin' : label
}
