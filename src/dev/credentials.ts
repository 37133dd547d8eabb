import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'

const TOKEN_BYTES = 16
/** Other users of this host can reach the port, so they must not be able to read the token. */
const OWNER_ONLY = 0o600

/** The token of the user of `tidings dev`, in files for the server and kubectl. */
export class DevCredentials {
  readonly token: string
  /** Path for --token-auth-file. */
  readonly tokenFile: string
  /** Path for `kubectl --kubeconfig`. */
  readonly kubeconfig: string

  /** Generates a token and writes the server's file. The kubeconfig needs the server's address. */
  static async create(folder: string): Promise<DevCredentials> {
    const credentials = new DevCredentials(folder, randomBytes(TOKEN_BYTES).toString('hex'))
    const line = `${credentials.token},dev,dev,system:masters\n`
    await writeFile(credentials.tokenFile, line, { mode: OWNER_ONLY })
    return credentials
  }

  private constructor(folder: string, token: string) {
    this.token = token
    this.tokenFile = join(folder, 'tokens.csv')
    this.kubeconfig = join(folder, 'kubeconfig')
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
