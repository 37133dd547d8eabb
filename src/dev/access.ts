import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'

const TOKEN_BYTES = 16
/** Other users of this machine can reach the port; the files that let them in are not theirs. */
const OWNER_ONLY = 0o600

/** A way in for whoever starts `tidings dev`: a token, in files for the server and for kubectl. */
export class DevAccess {
  readonly token: string
  /** For --token-auth-file. */
  readonly tokenFile: string
  /** For `kubectl --kubeconfig`. */
  readonly kubeconfig: string

  /** Makes a token and writes the server's file; the kubeconfig has to wait for the address. */
  static async create(folder: string): Promise<DevAccess> {
    const access = new DevAccess(folder, randomBytes(TOKEN_BYTES).toString('hex'))
    const line = `${access.token},dev,dev,system:masters\n`
    await writeFile(access.tokenFile, line, { mode: OWNER_ONLY })
    return access
  }

  private constructor(folder: string, token: string) {
    this.token = token
    this.tokenFile = join(folder, 'tokens.csv')
    this.kubeconfig = join(folder, 'kubeconfig')
  }

  /** `server` is its URL, `certFile` the certificate it shows. */
  async writeKubeconfig(server: string, certFile: string): Promise<void> {
    // JSON is YAML too, and quotes a path whatever it holds.
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
