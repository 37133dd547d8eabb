/**
 * Credentials from a program that the user's kubeconfig names (`exec`), as cloud providers install
 * it: client.authentication.k8s.io ExecCredential. They are written to files that the server reads
 * again when they change, and renewed before they expire.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { isAbsolute, join, resolve } from 'node:path'
import { collectBytes } from '../lib/bytes/collect-bytes.ts'
import { isObject, type JsonObject, memberOf, textOf } from '../lib/json.ts'

const TIMEOUT_MS = 120_000
const OUTPUT_BYTES_MAX = 1024 * 1024
/** Credentials without a time of expiry are renewed this often. */
const RENEW_MS = 10 * 60_000
/** How long before they expire credentials are renewed. */
const EARLY_MS = 2 * 60_000
const RENEW_MS_MIN = 30_000
const OWNER_ONLY = 0o600

/** The program and how it is called. */
export interface ExecPlugin {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly apiVersion: string
  readonly providesClusterInfo: boolean
  /** Empty when there is none. */
  readonly installHint: string
}

/** Undefined when the user has no such program. */
export function execPluginOf(user: JsonObject, folder: string): ExecPlugin | undefined {
  const exec = memberOf(user, 'exec')
  if (!isObject(exec)) return undefined
  const command = textOf(exec, 'command')
  if (command === '') throw new Error('user.exec.command is missing')
  // A path is relative to the kubeconfig; a name is searched in PATH.
  const isPath = command.includes('/') && !isAbsolute(command)
  const args = memberOf(exec, 'args')
  const env = memberOf(exec, 'env')
  return {
    command: isPath ? resolve(folder, command) : command,
    args: Array.isArray(args) ? args.map(String) : [],
    env: Object.fromEntries(Array.isArray(env) ? env.flatMap(environmentEntry) : []),
    apiVersion: textOf(exec, 'apiVersion') || 'client.authentication.k8s.io/v1',
    providesClusterInfo: memberOf(exec, 'provideClusterInfo') === true,
    installHint: textOf(exec, 'installHint'),
  }
}

function environmentEntry(entry: unknown): [string, string][] {
  if (!isObject(entry as JsonObject)) return []
  const name = memberOf(entry as JsonObject, 'name')
  const value = memberOf(entry as JsonObject, 'value')
  return typeof name === 'string' ? [[name, String(value ?? '')]] : []
}

export interface ExecCredentialsOptions {
  /** Where credentials are written. */
  readonly folder: string
  /** The cluster of the kubeconfig, for programs that want to know it. */
  readonly cluster: JsonObject
  readonly onFailure: (error: unknown) => void
}

export class ExecCredentials {
  /** The user entry of a kubeconfig that has the credentials. */
  readonly user: JsonObject
  readonly #plugin: ExecPlugin
  readonly #options: ExecCredentialsOptions
  #timer: NodeJS.Timeout | undefined

  /** Runs the program once; rejects with what it prints when it fails. */
  static async start(
    plugin: ExecPlugin,
    options: ExecCredentialsOptions,
  ): Promise<ExecCredentials> {
    const status = await run(plugin, options.cluster)
    const credentials = new ExecCredentials(plugin, options, status)
    await credentials.#write(status)
    return credentials
  }

  private constructor(plugin: ExecPlugin, options: ExecCredentialsOptions, status: JsonObject) {
    this.#plugin = plugin
    this.#options = options
    const file = (name: string): string => join(options.folder, name)
    this.user = {
      ...(textOf(status, 'token') === '' ? {} : { tokenFile: file(TOKEN) }),
      ...(textOf(status, 'clientCertificateData') === ''
        ? {}
        : { 'client-certificate': file(CERTIFICATE), 'client-key': file(KEY) }),
    }
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  async #write(status: JsonObject): Promise<void> {
    const write = async (name: string, text: string): Promise<void> => {
      if (text === '') return
      await writeFile(join(this.#options.folder, name), text, { mode: OWNER_ONLY })
    }
    await write(KEY, textOf(status, 'clientKeyData'))
    await write(CERTIFICATE, textOf(status, 'clientCertificateData'))
    await write(TOKEN, textOf(status, 'token'))
    this.#renewIn(renewalMs(textOf(status, 'expirationTimestamp')))
  }

  #renewIn(ms: number): void {
    this.#timer = setTimeout(() => void this.#renew(), ms)
    this.#timer.unref()
  }

  async #renew(): Promise<void> {
    try {
      await this.#write(await run(this.#plugin, this.#options.cluster))
    } catch (error) {
      this.#options.onFailure(error)
      this.#renewIn(RENEW_MS_MIN)
    }
  }
}

const TOKEN = 'origin.token'
const CERTIFICATE = 'origin.crt'
const KEY = 'origin.key'

function renewalMs(expiration: string): number {
  const expiresAt = Date.parse(expiration)
  if (Number.isNaN(expiresAt)) return RENEW_MS
  return Math.max(RENEW_MS_MIN, Math.min(RENEW_MS, expiresAt - Date.now() - EARLY_MS))
}

/** The status of the ExecCredential that the program prints. */
async function run(plugin: ExecPlugin, cluster: JsonObject): Promise<JsonObject> {
  const { command, args, apiVersion, installHint } = plugin
  const spec = {
    interactive: false,
    ...(plugin.providesClusterInfo ? { cluster: clusterInfo(cluster) } : {}),
  }
  const child = spawn(command, args, {
    // What the program needs to ask of the user appears in the user's terminal.
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      // biome-ignore lint/style/noProcessEnv: the program is the user's own and needs its environment.
      ...process.env,
      ...plugin.env,
      KUBERNETES_EXEC_INFO: JSON.stringify({ apiVersion, kind: 'ExecCredential', spec }),
    },
  })
  // Rejects when the program cannot be started. It is awaited after the output, which ends first; a
  // rejection until then is not unhandled.
  const closed = once(child, 'close')
  closed.catch(() => {})
  // Not the option of `spawn`, whose timer remains when the program cannot be started.
  const late = setTimeout(() => child.kill(), TIMEOUT_MS)
  try {
    const output = await collectBytes(child.stdout, OUTPUT_BYTES_MAX)
    if (output === 'too-long') throw new Error('it prints too much')
    const [code] = await closed
    if (code !== 0) throw new Error(`it exited with code ${code}`)
    return statusOf(output.toString())
  } catch (cause) {
    child.kill()
    const hint = installHint === '' ? '' : `\n${installHint}`
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`${command}, which provides credentials, failed: ${why}${hint}`, { cause })
  } finally {
    clearTimeout(late)
  }
}

function statusOf(output: string): JsonObject {
  let value: unknown
  try {
    value = JSON.parse(output)
  } catch {
    throw new Error('it did not print JSON')
  }
  const status = isObject(value as JsonObject) ? memberOf(value as JsonObject, 'status') : undefined
  const hasCredentials =
    isObject(status) &&
    (textOf(status, 'token') !== '' || textOf(status, 'clientCertificateData') !== '')
  if (!hasCredentials) throw new Error('it printed no token and no certificate')
  return status
}

function clusterInfo(cluster: JsonObject): JsonObject {
  const { server, 'certificate-authority-data': ca, 'tls-server-name': name } = cluster
  return {
    server: server ?? '',
    ...(ca === undefined ? {} : { 'certificate-authority-data': ca }),
    ...(name === undefined ? {} : { 'tls-server-name': name }),
  }
}
