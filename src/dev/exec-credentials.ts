/**
 * Credentials from a program named in the user's kubeconfig (`exec`), such as those of cloud providers:
 * client.authentication.k8s.io ExecCredential. They are written to files, which the server reads again
 * when they change, and renewed before they expire.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { isAbsolute, join, resolve } from 'node:path'
import { collectBytes } from '../lib/bytes/collect-bytes.ts'
import { isObject, type JsonObject, memberOf, textOf } from '../lib/json.ts'

const TIMEOUT_MS = 120_000
const OUTPUT_BYTES_MAX = 1024 * 1024
/** How often credentials without an expiry time are renewed. */
const RENEW_MS = 10 * 60_000
/** How long before their expiry credentials are renewed. */
const EARLY_MS = 2 * 60_000
const RENEW_MS_MIN = 30_000
const OWNER_ONLY = 0o600

export interface ExecPlugin {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly apiVersion: string
  readonly providesClusterInfo: boolean
  /** May be empty. */
  readonly installHint: string
}

/** Undefined when the user entry names no program. */
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
  /** The folder that credentials are written to. */
  readonly folder: string
  /** The cluster of the kubeconfig, which is passed to programs that ask for it. */
  readonly cluster: JsonObject
  readonly onFailure: (error: unknown) => void
}

export class ExecCredentials {
  /** The user entry for a kubeconfig with these credentials. */
  readonly user: JsonObject
  readonly #plugin: ExecPlugin
  readonly #options: ExecCredentialsOptions
  #timer: NodeJS.Timeout | undefined

  /** Runs the program once; rejects when it fails. */
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

/** Returns the status of the ExecCredential that the program prints. */
async function run(plugin: ExecPlugin, cluster: JsonObject): Promise<JsonObject> {
  const { command, args, apiVersion, installHint } = plugin
  const spec = {
    interactive: false,
    ...(plugin.providesClusterInfo ? { cluster: clusterInfo(cluster) } : {}),
  }
  const child = spawn(command, args, {
    // Prompts of the program appear in the user's terminal.
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      // biome-ignore lint/style/noProcessEnv: the program is the user's own and needs its environment.
      ...process.env,
      ...plugin.env,
      KUBERNETES_EXEC_INFO: JSON.stringify({ apiVersion, kind: 'ExecCredential', spec }),
    },
  })
  // Rejects when the program cannot be started. It is awaited after the output, which ends first, so
  // a rejection until then must not count as unhandled.
  const closed = once(child, 'close')
  closed.catch(() => {})
  // Not the `timeout` of `spawn`, whose timer remains when the program cannot be started.
  const late = setTimeout(() => child.kill(), TIMEOUT_MS)
  try {
    const output = await collectBytes(child.stdout, OUTPUT_BYTES_MAX)
    if (output === 'too-long') throw new Error('it printed too much')
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
