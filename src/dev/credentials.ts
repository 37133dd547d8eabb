import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { readBounded } from '../lib/files/bounded-file.ts'

const TOKEN_BYTES = 16
const TOKEN_LINE = /^([0-9a-f]{32}),dev,/
/** The server in a kubeconfig of ours. */
const SERVER = /"https:\/\/localhost:(\d{1,5})"/
const PORT_MAX = 65_535
const FILE_BYTES_MAX = 64 * 1024
/** Other users of this host can reach the port, so they must not be able to read the token. */
const OWNER_ONLY = 0o600

/** The token of the user of `tidings dev`, in files for the server and kubectl. */
export class DevCredentials {
  readonly token: string
  /** Path for --token-auth-file. */
  readonly tokenFile: string
  /** Path for `kubectl --kubeconfig`. */
  readonly kubeconfig: string
  /** The port of the last start in the folder. */
  readonly lastPort: number | undefined

  /**
   * Writes the server's file, with the token of the last start in the folder, so that copies of its
   * kubeconfig stay valid. The kubeconfig needs the server's address.
   */
  static async create(folder: string): Promise<DevCredentials> {
    const tokenFile = join(folder, 'tokens.csv')
    const kubeconfig = join(folder, 'kubeconfig')
    const [, known] = TOKEN_LINE.exec(await textOf(tokenFile)) ?? []
    const token = known ?? randomBytes(TOKEN_BYTES).toString('hex')
    const port = Number(SERVER.exec(await textOf(kubeconfig))?.[1])
    const lastPort = port > 0 && port <= PORT_MAX ? port : undefined
    await writeFile(tokenFile, `${token},dev,dev,system:masters\n`, { mode: OWNER_ONLY })
    return new DevCredentials({ token, tokenFile, kubeconfig, lastPort })
  }

  private constructor(
    parts: Pick<DevCredentials, 'token' | 'tokenFile' | 'kubeconfig' | 'lastPort'>,
  ) {
    this.token = parts.token
    this.tokenFile = parts.tokenFile
    this.kubeconfig = parts.kubeconfig
    this.lastPort = parts.lastPort
  }

  async writeKubeconfig(server: string, certFile: string): Promise<void> {
    // JSON is valid YAML, and it quotes any path correctly.
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        { name: 'tidings', cluster: { server, 'certificate-authority': resolve(certFile) } },
      ],
      users: [{ name: 'dev', user: { token: this.token } }],
      contexts: [{ name: 'tidings', context: { cluster: 'tidings', user: 'dev' } }],
      'current-context': 'tidings',
    }
    const text = `${JSON.stringify(config, undefined, 2)}\n`
    await writeFile(this.kubeconfig, text, { mode: OWNER_ONLY })
  }
}

/** Empty for a file that does not exist. */
async function textOf(file: string): Promise<string> {
  try {
    return String(await readBounded(file, FILE_BYTES_MAX))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}
