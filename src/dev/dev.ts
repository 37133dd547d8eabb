import { rmSync } from 'node:fs'
import { access, constants, mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { makeSelfSigned } from '../http/tls/self-signed.ts'
import { EtcdProcess } from './etcd-process.ts'
import type { UserContext } from './user-kubeconfig.ts'

/**
 * By default etcd keeps the last 100,000 entries of its log in memory, and 5,000 more for
 * followers. Group commit makes entries of 50 kB and more, so that would be gigabytes. A single
 * member has no followers that could need them.
 */
const smallLog = ['--snapshot-count=1000', '--experimental-snapshot-catchup-entries=100']

/** It holds credentials. */
const OWNER_ONLY_FOLDER = 0o700
const OWNER_ONLY_FILE = 0o600

/**
 * A private etcd, by default in a temporary folder, which is deleted when the process exits. It
 * listens on loopback, which other users of this host and web pages reach too: so it responds only
 * to the holder of a key that the user of this process can read, and nobody else.
 */
export class DevEtcd {
  readonly endpoint: string
  /** The certificate is its own authority, and that of etcd, its peers and its clients. */
  readonly tls: CertificateFiles
  /** Contains etcd's data, the server's certificate and the credentials. */
  readonly folder: string
  /** Whether the folder stays when the process exits. */
  readonly isKept: boolean
  readonly #process: EtcdProcess
  #isStopping = false

  /**
   * Without `binary`, etcd is searched in `searchPath`, a list of folders as in PATH. Without
   * `keptIn`, a folder, nothing is kept.
   */
  static async start(options: {
    readonly binary: string | undefined
    readonly searchPath: string
    readonly keptIn: string | undefined
  }): Promise<DevEtcd> {
    const program = options.binary ?? (await findEtcd(options.searchPath))
    const folder = options.keptIn === undefined ? await temporaryFolder() : resolve(options.keptIn)
    await mkdir(folder, { recursive: true, mode: OWNER_ONLY_FOLDER })
    const dataDir = join(folder, 'etcd')
    const tls = await writeCertificate(folder)
    const etcd = await EtcdProcess.start({
      binary: program,
      dataDir,
      tls: { ca: tls.cert, ...tls },
      requiresClientCertificate: true,
      args: smallLog,
    })
    return new DevEtcd(folder, { etcd, tls, isKept: options.keptIn !== undefined })
  }

  private constructor(
    folder: string,
    parts: { readonly etcd: EtcdProcess; readonly tls: CertificateFiles; readonly isKept: boolean },
  ) {
    const { etcd, tls, isKept } = parts
    this.isKept = isKept
    this.tls = tls
    this.endpoint = etcd.endpoint
    this.folder = folder
    this.#process = etcd
  }

  get certDir(): string {
    return join(this.folder, 'certs')
  }

  /** Calls back when etcd exits before it is stopped. */
  onUnexpectedEnd(callback: () => void): void {
    void this.#process.exited.then(() => {
      if (!this.#isStopping) callback()
    })
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    await this.#process.stop()
  }
}

interface CertificateFiles {
  readonly cert: string
  readonly key: string
}

/** A new one for each start: files of an earlier start may have been copied. */
async function writeCertificate(folder: string): Promise<CertificateFiles> {
  const { cert, key } = await makeSelfSigned(['127.0.0.1', 'localhost'], { isForClients: true })
  const files = { cert: join(folder, 'etcd.crt'), key: join(folder, 'etcd.key') }
  // Removed first: the mode of a file that exists would stay.
  for (const file of Object.values(files)) rmSync(file, { force: true })
  await writeFile(files.cert, cert, { mode: OWNER_ONLY_FILE })
  await writeFile(files.key, key, { mode: OWNER_ONLY_FILE })
  return files
}

/** The text for the user: the addresses, and commands to paste into another terminal. */
export function devBanner(parts: {
  readonly server: { readonly url: string; readonly certFile: string; readonly group: string }
  /** Undefined: the web page is not served. */
  readonly code: string | undefined
  readonly etcd: Pick<DevEtcd, 'endpoint' | 'tls' | 'folder' | 'isKept'>
  readonly credentials: { readonly token: string; readonly kubeconfig: string }
  readonly mirrored: Pick<UserContext, 'context' | 'server' | 'clusterName'> | undefined
}): string {
  const { server, etcd, credentials, code, mirrored } = parts
  const kubectl = `kubectl --kubeconfig ${credentials.kubeconfig}`
  const curl = `curl --cacert ${server.certFile}`
  const base = server.url
  return `
tidings is up, in front of a private etcd:

  tidings  ${base}
  etcd     ${etcd.endpoint}
  token    ${credentials.token}
${pageText(base, code)}${mirrorText(mirrored, kubectl)}
In another terminal:

  ${kubectl} get events
  ${curl} -H 'Authorization: Bearer ${credentials.token}' '${base}/apis/${server.group}/v1/events'

Health, version and metrics need no token on this host:

  ${curl} '${base}/readyz?verbose'
  ${curl} '${base}/livez'
  ${curl} '${base}/readyz/datastore'
  ${curl} '${base}/version'
  ${curl} '${base}/metrics'

etcd responds only with its key:

  etcdctl --endpoints ${etcd.endpoint} --cacert ${etcd.tls.cert} --cert ${etcd.tls.cert} --key ${etcd.tls.key} endpoint status

All data is in ${etcd.folder} and is ${etcd.isKept ? 'kept' : 'deleted'} when tidings stops.
Press Ctrl-C to stop.

`
}

function pageText(base: string, code: string | undefined): string {
  if (code === undefined) return ''
  return `
In a browser, signed in (the link works once, within 10 minutes; the certificate is self-signed):

  ${base}/ui/#code=${code}
`
}

function mirrorText(
  mirrored: Pick<UserContext, 'context' | 'server' | 'clusterName'> | undefined,
  kubectl: string,
): string {
  if (mirrored === undefined) return ''
  const { context, server, clusterName } = mirrored
  return `
It mirrors the events of context ${context} (${server}) as cluster ${clusterName}:

  ${kubectl} get clusters
  ${kubectl} get events -A --sort-by=.metadata.creationTimestamp
  ${kubectl} get events -A --field-selector type=Warning --watch
`
}

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tidings-dev-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function findEtcd(searchPath: string): Promise<string> {
  for (const folder of searchPath.split(delimiter)) {
    const candidate = join(folder, 'etcd')
    const isProgram = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (isProgram) return candidate
  }
  throw new Error(
    'no etcd program in PATH: install etcd 3.5.28 or newer, or set --etcd-binary=<path>; in a checkout, "npm run etcd" downloads one for "npm run dev"',
  )
}
