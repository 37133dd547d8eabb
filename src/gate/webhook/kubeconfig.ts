/** Where a webhook is and what to show it, out of a file in kubectl's form. */
import { hash } from 'node:crypto'
import { dirname, resolve } from 'node:path'
import { createSecureContext } from 'node:tls'
import { yamlDocuments } from '../../codec/yaml-documents.ts'
import { readBounded } from '../../lib/bounded-file.ts'
import { isObject, type Json, type JsonObject, memberOf } from '../../lib/json.ts'

/** Everything needed to speak with the server of a kubeconfig. */
export interface WebhookServer {
  readonly url: URL
  /** PEM; undefined trusts the public authorities that Node knows. */
  readonly ca: string | undefined
  /** Which name its certificate must have; undefined means the one in the URL. */
  readonly serverName: string | undefined
  readonly clientCertificate: { readonly cert: string; readonly key: string } | undefined
  readonly token: string | undefined
  /** The same for files that say the same. */
  readonly fingerprint: string
}

/** Far more than certificates and tokens need. */
const FILE_BYTES_MAX = 1024 * 1024

/** Ways to log in that need a program to run, or send a password: refused, not overlooked. */
const REFUSED_IN_USER = ['exec', 'auth-provider', 'username', 'password', 'as', 'as-groups']
const REFUSED_IN_CLUSTER = ['proxy-url']

/** Rejects, naming file and field. Gives `current` itself when the files still say the same. */
export async function loadKubeconfig(
  path: string,
  current?: WebhookServer,
): Promise<WebhookServer> {
  const text = await readText(path)
  try {
    const { cluster, user } = currentContext(text)
    const files = new Files(dirname(path))
    const found = await serverOf(cluster, user, files)
    const fingerprint = hash('sha256', JSON.stringify([text, files.read]))
    if (fingerprint === current?.fingerprint) return current
    checkCredentials(found)
    return { ...found, fingerprint }
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`${path}: ${why}`, { cause })
  }
}

async function serverOf(
  cluster: JsonObject,
  user: JsonObject,
  files: Files,
): Promise<Omit<WebhookServer, 'fingerprint'>> {
  const cert = await files.dataOrFile(user, 'client-certificate')
  const key = await files.dataOrFile(user, 'client-key')
  if ((cert === undefined) !== (key === undefined)) {
    throw new Error('client-certificate and client-key go together: give both or none')
  }
  return {
    url: serverUrl(textOf(cluster, 'server')),
    ca: await files.dataOrFile(cluster, 'certificate-authority'),
    serverName: textOf(cluster, 'tls-server-name'),
    clientCertificate: cert === undefined || key === undefined ? undefined : { cert, key },
    token: await tokenOf(user, files),
  }
}

function serverUrl(server: string | undefined): URL {
  const url = URL.parse(server ?? '')
  if (url === null) throw new Error('cluster.server is no address: write https://host:port/path')
  if (url.protocol !== 'https:') {
    throw new Error('cluster.server must be https: whoever can answer for it decides who comes in')
  }
  if (url.username !== '' || url.password !== '') {
    throw new Error('cluster.server holds a user name: use a token or a client certificate')
  }
  return url
}

async function tokenOf(user: JsonObject, files: Files): Promise<string | undefined> {
  const file = textOf(user, 'tokenFile')
  const token = file === undefined ? textOf(user, 'token') : (await files.text(file)).trim()
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) {
    throw new Error('the token is empty or holds what no header can carry')
  }
  return token
}

/** A broken certificate is told now, not at the first question. */
function checkCredentials({ ca, clientCertificate }: Omit<WebhookServer, 'fingerprint'>): void {
  createSecureContext({ ...(ca === undefined ? {} : { ca }), ...clientCertificate })
}

function currentContext(text: string): { cluster: JsonObject; user: JsonObject } {
  const [document, second] = [...yamlDocuments(text)]
  if (second !== undefined) throw new Error('more than one document')
  const config = document?.value
  if (!isObject(config) || memberOf(config, 'kind') !== 'Config') {
    throw new Error('no kubeconfig: its kind must be Config')
  }
  const name = textOf(config, 'current-context')
  if (name === undefined) throw new Error('current-context is missing')
  const context = entryOf(config, 'context', name)
  const clusterName = textOf(context, 'cluster')
  if (clusterName === undefined) throw new Error(`context ${name} names no cluster`)
  const cluster = entryOf(config, 'cluster', clusterName)
  const userName = textOf(context, 'user')
  const user = userName === undefined ? {} : entryOf(config, 'user', userName)
  refuse(cluster, 'cluster', REFUSED_IN_CLUSTER)
  refuse(user, 'user', REFUSED_IN_USER)
  if (memberOf(cluster, 'insecure-skip-tls-verify') === true) {
    throw new Error(
      'cluster.insecure-skip-tls-verify is refused: give certificate-authority instead',
    )
  }
  return { cluster, user }
}

function refuse(part: JsonObject, place: string, names: readonly string[]): void {
  const found = names.find((name) => memberOf(part, name) !== undefined)
  if (found !== undefined) throw new Error(`${place}.${found} is not supported here`)
}

/** Of `clusters`, `users` or `contexts`, each a list of names with what they stand for. */
function entryOf(config: JsonObject, kind: string, name: string): JsonObject {
  const entries = memberOf(config, `${kind}s`)
  const entry = Array.isArray(entries)
    ? entries.find((one): one is JsonObject => isObject(one) && memberOf(one, 'name') === name)
    : undefined
  if (entry === undefined) throw new Error(`${kind}s has no ${kind} named ${JSON.stringify(name)}`)
  const value: Json | undefined = memberOf(entry, kind)
  return isObject(value) ? value : {}
}

/** Undefined for none and for an empty one. */
function textOf(part: JsonObject, name: string): string | undefined {
  const value = memberOf(part, name)
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value !== 'string') throw new Error(`${name} must be a text`)
  return value
}

/** Reads what a kubeconfig points at, and keeps account of it. */
class Files {
  readonly read: string[] = []
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  /** `<name>-data` in base64, or the file that `<name>` names; the former wins, as everywhere. */
  async dataOrFile(part: JsonObject, name: string): Promise<string | undefined> {
    const data = textOf(part, `${name}-data`)
    if (data !== undefined) return Buffer.from(data, 'base64').toString()
    const file = textOf(part, name)
    return file === undefined ? undefined : this.text(file)
  }

  async text(file: string): Promise<string> {
    const text = await readText(resolve(this.#folder, file))
    this.read.push(text)
    return text
  }
}

async function readText(path: string): Promise<string> {
  return String(await readBounded(path, FILE_BYTES_MAX))
}
