/** Reads the address of a server and the credentials for it from a kubeconfig file. */
import { hash } from 'node:crypto'
import { dirname, resolve } from 'node:path'
import { createSecureContext } from 'node:tls'
import { readBounded } from '../lib/files/bounded-file.ts'
import { errorIn } from '../lib/files/config-fields.ts'
import { isObject, type Json, type JsonObject, memberOf } from '../lib/json.ts'
import { yamlDocuments } from '../lib/text/yaml-documents.ts'

export interface KubeconfigServer {
  readonly url: URL
  /** PEM; when undefined, Node's public authorities are trusted. */
  readonly ca: string | undefined
  /** The name that the server's certificate must have; undefined means the host of the URL. */
  readonly serverName: string | undefined
  readonly clientCertificate: { readonly cert: string; readonly key: string } | undefined
  readonly token: string | undefined
  /** Equal for files with equal content. */
  readonly fingerprint: string
}

/** Far more than certificates and tokens need. */
const FILE_BYTES_MAX = 1024 * 1024

const INSTEAD_OF_PROGRAMS =
  'this server runs no programs: use token, tokenFile or a client certificate, for example the token of a service account'
const INSTEAD_OF_PASSWORDS = 'use token, tokenFile or a client certificate'
const INSTEAD_OF_IMPERSONATION = 'use credentials of that user'

/** Unsupported kinds of credentials, which are rejected rather than ignored, with alternatives. */
const REFUSED_IN_USER: Readonly<Record<string, string>> = {
  exec: INSTEAD_OF_PROGRAMS,
  'auth-provider': INSTEAD_OF_PROGRAMS,
  username: INSTEAD_OF_PASSWORDS,
  password: INSTEAD_OF_PASSWORDS,
  as: INSTEAD_OF_IMPERSONATION,
  'as-groups': INSTEAD_OF_IMPERSONATION,
  'as-uid': INSTEAD_OF_IMPERSONATION,
  'as-user-extra': INSTEAD_OF_IMPERSONATION,
}
const REFUSED_IN_CLUSTER: Readonly<Record<string, string>> = {
  'proxy-url': 'set the address of the server itself',
}

export interface KubeconfigOptions {
  /** Default: the current context of the file. */
  readonly context?: string | undefined
  /** Whether `http:` is allowed for a server on this host. It never is for other hosts. */
  readonly allowsLoopbackHttp?: boolean
}

/**
 * Rejects if the file is invalid; the error names the file and the field. Returns `current` itself
 * when the file and all files that it names, such as `tokenFile`, are unchanged.
 */
export async function loadKubeconfig(
  path: string,
  options: KubeconfigOptions = {},
  current?: KubeconfigServer,
): Promise<KubeconfigServer> {
  const text = await readText(path)
  try {
    const { cluster, user } = contextOf(text, options.context)
    const files = new Files(dirname(path))
    const found = await serverOf(cluster, user, { files, options })
    const fingerprint = hash('sha256', JSON.stringify([options.context, text, files.read]))
    if (fingerprint === current?.fingerprint) return current
    checkCredentials(found)
    return { ...found, fingerprint }
  } catch (cause) {
    throw errorIn(path, cause)
  }
}

async function serverOf(
  cluster: JsonObject,
  user: JsonObject,
  { files, options }: { readonly files: Files; readonly options: KubeconfigOptions },
): Promise<Omit<KubeconfigServer, 'fingerprint'>> {
  const cert = await files.dataOrFile(user, 'client-certificate')
  const key = await files.dataOrFile(user, 'client-key')
  if ((cert === undefined) !== (key === undefined)) {
    throw new Error('client-certificate and client-key must be set together: set both or none')
  }
  return {
    url: serverUrl(textOf(cluster, 'server'), options),
    ca: await files.dataOrFile(cluster, 'certificate-authority'),
    serverName: textOf(cluster, 'tls-server-name'),
    clientCertificate: cert === undefined || key === undefined ? undefined : { cert, key },
    token: await tokenOf(user, files),
  }
}

function serverUrl(server: string | undefined, { allowsLoopbackHttp }: KubeconfigOptions): URL {
  const url = URL.parse(server ?? '')
  if (url === null) throw new Error('cluster.server is not a URL: use https://host:port/path')
  const isAllowedHttp = allowsLoopbackHttp === true && isLoopbackHttp(url)
  if (url.protocol !== 'https:' && !isAllowedHttp) {
    const except = allowsLoopbackHttp === true ? ', except for a server on this host' : ''
    throw new Error(`cluster.server must use https${except}: its responses are trusted`)
  }
  if (url.username !== '' || url.password !== '') {
    throw new Error('cluster.server contains a user name: use a token or a client certificate')
  }
  return url
}

/** Whether this is plain HTTP to this host, which nobody on the network can read. */
export function isLoopbackHttp({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
}

async function tokenOf(user: JsonObject, files: Files): Promise<string | undefined> {
  const file = textOf(user, 'tokenFile')
  const token = file === undefined ? textOf(user, 'token') : (await files.text(file)).trim()
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) {
    throw new Error('the token is empty or has characters that are not allowed in a header')
  }
  return token
}

/** Rejects an invalid certificate when the file is loaded, not with the first request. */
function checkCredentials({ ca, clientCertificate }: Omit<KubeconfigServer, 'fingerprint'>): void {
  createSecureContext({ ...(ca === undefined ? {} : { ca }), ...clientCertificate })
}

function contextOf(
  text: string,
  wanted: string | undefined,
): { cluster: JsonObject; user: JsonObject } {
  const [document, second] = [...yamlDocuments(text)]
  if (second !== undefined) throw new Error('more than one document')
  const config = document?.value
  if (!isObject(config) || memberOf(config, 'kind') !== 'Config') {
    throw new Error('not a kubeconfig: kind must be Config')
  }
  const name = wanted ?? textOf(config, 'current-context')
  if (name === undefined) throw new Error('current-context is missing')
  const context = entryOf(config, 'context', name)
  const clusterName = textOf(context, 'cluster')
  if (clusterName === undefined) throw new Error(`context ${name} has no cluster`)
  const cluster = entryOf(config, 'cluster', clusterName)
  const userName = textOf(context, 'user')
  const user = userName === undefined ? {} : entryOf(config, 'user', userName)
  refuse(cluster, 'cluster', REFUSED_IN_CLUSTER)
  refuse(user, 'user', REFUSED_IN_USER)
  if (memberOf(cluster, 'insecure-skip-tls-verify') === true) {
    throw new Error(
      'cluster.insecure-skip-tls-verify is refused: set certificate-authority instead',
    )
  }
  return { cluster, user }
}

function refuse(part: JsonObject, place: string, refused: Readonly<Record<string, string>>): void {
  for (const [name, instead] of Object.entries(refused)) {
    if (memberOf(part, name) !== undefined) {
      throw new Error(`${place}.${name} is not supported: ${instead}`)
    }
  }
}

/** An entry of `clusters`, `users` or `contexts`, which are lists of named values. */
function entryOf(config: JsonObject, kind: string, name: string): JsonObject {
  const entries = memberOf(config, `${kind}s`)
  const entry = Array.isArray(entries)
    ? entries.find((one): one is JsonObject => isObject(one) && memberOf(one, 'name') === name)
    : undefined
  if (entry === undefined) throw new Error(`${kind}s has no ${kind} named ${JSON.stringify(name)}`)
  const value: Json | undefined = memberOf(entry, kind)
  return isObject(value) ? value : {}
}

/** Undefined when it is missing or empty. */
function textOf(part: JsonObject, name: string): string | undefined {
  const value = memberOf(part, name)
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value !== 'string') throw new Error(`${name} must be a string`)
  return value
}

/** Reads the files that a kubeconfig names, and records their content for the fingerprint. */
class Files {
  readonly read: string[] = []
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  /** `<name>-data` in base64 or the file named by `<name>`. The former wins, as in client-go. */
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
