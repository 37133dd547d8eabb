import { rmSync } from 'node:fs'
import { access, constants, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { EtcdProcess } from './etcd-process.ts'

/**
 * By default etcd keeps the last 100,000 entries of its log in memory, and 5,000 more for
 * followers. Group commit makes entries of 50 kB and more, so that would be gigabytes. A single
 * member has no followers that could need them.
 */
const smallLog = ['--snapshot-count=1000', '--experimental-snapshot-catchup-entries=100']

/** A private etcd in a temporary folder, which is deleted when the process exits. */
export class DevEtcd {
  readonly endpoint: string
  /** Contains etcd's data, the server's certificate and the credentials. */
  readonly folder: string
  readonly #process: EtcdProcess
  #isStopping = false

  /** Without `binary`, etcd is searched in `searchPath`, a list of folders as in PATH. */
  static async start(binary: string | undefined, searchPath: string): Promise<DevEtcd> {
    const program = binary ?? (await findEtcd(searchPath))
    const folder = await mkdtemp(join(tmpdir(), 'tidings-dev-'))
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
    const dataDir = join(folder, 'etcd')
    const etcd = await EtcdProcess.start({ binary: program, dataDir, args: smallLog })
    return new DevEtcd(folder, etcd)
  }

  private constructor(folder: string, etcd: EtcdProcess) {
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

/** The text for the user: the addresses, and commands to paste into another terminal. */
export function devBanner(parts: {
  readonly server: { readonly url: string; readonly certFile: string; readonly group: string }
  readonly etcd: { readonly endpoint: string; readonly folder: string }
  readonly credentials: { readonly token: string; readonly kubeconfig: string }
}): string {
  const { server, etcd, credentials } = parts
  const curl = `curl --cacert ${server.certFile}`
  const base = server.url
  return `
tidings is up, in front of a private etcd:

  tidings  ${base}
  etcd     ${etcd.endpoint}

In another terminal:

  kubectl --kubeconfig ${credentials.kubeconfig} get events
  ${curl} -H 'Authorization: Bearer ${credentials.token}' '${base}/apis/${server.group}/v1/events'

Health, version and metrics need no token on this host:

  ${curl} '${base}/readyz?verbose'
  ${curl} '${base}/livez'
  ${curl} '${base}/readyz/datastore'
  ${curl} '${base}/version'
  ${curl} '${base}/metrics'

All data is in ${etcd.folder} and is deleted when tidings stops.
Press Ctrl-C to stop.

`
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
