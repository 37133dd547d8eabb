import { rmSync } from 'node:fs'
import { access, constants, mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { makeSelfSigned } from '../http/tls/self-signed.ts'
import { EtcdProcess, hasOldFlags } from './etcd-process.ts'
import type { UserContext } from './user-kubeconfig.ts'

/** The folder contains credentials. */
const OWNER_ONLY_FOLDER = 0o700
const OWNER_ONLY_FILE = 0o600

/**
 * A private etcd, by default in a temporary folder that is deleted when the process exits. It listens
 * on loopback, which other users of this host and web pages can reach too, so it responds only to the
 * holder of a key that nobody but the user of this process can read.
 */
export class DevEtcd {
  readonly endpoint: string
  /** One self-signed certificate for etcd, its peers and its clients. */
  readonly tls: CertificateFiles
  /** Contains etcd's data, the server's certificate and the credentials. */
  readonly folder: string
  /** Whether the folder outlives the process. */
  readonly isPersistent: boolean
  readonly #process: EtcdProcess
  #isStopping = false

  /**
   * Without `binary`, etcd is searched in `searchPath`, a list of folders as in PATH. Without
   * `dataDir`, nothing outlives the process.
   */
  static async start(options: {
    readonly binary: string | undefined
    readonly searchPath: string
    readonly dataDir: string | undefined
  }): Promise<DevEtcd> {
    const program = options.binary ?? (await findEtcd(options.searchPath))
    const { dataDir } = options
    const folder = dataDir === undefined ? await temporaryFolder() : resolve(dataDir)
    await mkdir(folder, { recursive: true, mode: OWNER_ONLY_FOLDER })
    const tls = await writeCertificate(folder)
    const etcd = await EtcdProcess.start({
      binary: program,
      dataDir: join(folder, 'etcd'),
      tls: { ca: tls.cert, ...tls },
      requiresClientCertificate: true,
      args: await smallLog(program),
    })
    return new DevEtcd(folder, { etcd, tls, isPersistent: dataDir !== undefined })
  }

  private constructor(
    folder: string,
    parts: {
      readonly etcd: EtcdProcess
      readonly tls: CertificateFiles
      readonly isPersistent: boolean
    },
  ) {
    const { etcd, tls, isPersistent } = parts
    this.isPersistent = isPersistent
    this.tls = tls
    this.endpoint = etcd.endpoint
    this.folder = folder
    this.#process = etcd
  }

  get certDir(): string {
    return join(this.folder, 'certs')
  }

  /** Calls `callback` when etcd exits before it is stopped. */
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

/** A new certificate for each start, since files of an earlier start may have been copied. */
async function writeCertificate(folder: string): Promise<CertificateFiles> {
  const { cert, key } = await makeSelfSigned(['127.0.0.1', 'localhost'], { isForClients: true })
  const files = { cert: join(folder, 'etcd.crt'), key: join(folder, 'etcd.key') }
  // Removed first, since an existing file would keep its mode.
  for (const file of Object.values(files)) rmSync(file, { force: true })
  await writeFile(files.cert, cert, { mode: OWNER_ONLY_FILE })
  await writeFile(files.key, key, { mode: OWNER_ONLY_FILE })
  return files
}

/** The addresses, and commands to paste into another terminal. */
export function devBanner(parts: {
  readonly server: {
    readonly url: string
    readonly certFile: string
    readonly group: string
    /** The port that the server would have if no other program used it. */
    readonly takenPort: number | undefined
  }
  /** Undefined when the web page is not served. */
  readonly code: string | undefined
  readonly etcd: Pick<DevEtcd, 'endpoint' | 'tls' | 'folder' | 'isPersistent'>
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
${portText(server.takenPort)}${pageText(base, code)}${mirrorText(mirrored, kubectl)}
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

All data is in ${etcd.folder} and is ${etcd.isPersistent ? 'kept' : 'deleted'} when tidings stops.
Press Ctrl-C to stop.

`
}

function portText(taken: number | undefined): string {
  if (taken === undefined) return ''
  return `
Port ${taken} is in use by another program, so this start has another one. Kubeconfigs of earlier starts
do not reach it: use the one below.
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
  ${kubectl} get events -A
  ${kubectl} get events -A --field-selector type=Warning --watch
`
}

/**
 * By default etcd 3.5 retains the last 100,000 entries of its log in memory (10,000 since 3.6), and 5,000
 * more for followers. Group commit creates entries of 50 kB and more, so that would be gigabytes. A
 * single member has no followers that could need them.
 */
export async function smallLog(program: string): Promise<readonly string[]> {
  const prefix = (await hasOldFlags(program)) ? '--experimental-' : '--'
  return ['--snapshot-count=1000', `${prefix}snapshot-catchup-entries=100`]
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
    'no etcd program in PATH: install etcd 3.5.28 or newer, or set --etcd-binary=<path>; in a checkout, "npm run tools -- etcd" downloads one for "npm run dev"',
  )
}
