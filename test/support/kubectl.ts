import { execFile } from 'node:child_process'
import { access, constants, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import type { Tidings } from './tidings.ts'

export interface Said {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** The user's own kubectl; undefined where there is none. */
export async function findKubectl(): Promise<string | undefined> {
  // biome-ignore lint/style/noProcessEnv: a test uses what the machine has.
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const candidate = join(folder, 'kubectl')
    const isThere = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (isThere) return candidate
  }
  return undefined
}

/**
 * kubectl as one user of a server. Its caches and its kubeconfig are in the folder of the server.
 */
export class Kubectl {
  readonly #program: string
  readonly #flags: readonly string[]

  static async as(token: string, server: Tidings, program: string): Promise<Kubectl> {
    const kubeconfig = join(server.folder, `kubeconfig-${token}`)
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        {
          name: 'c',
          cluster: {
            server: `https://127.0.0.1:${server.port}`,
            'certificate-authority': join(server.folder, 'tidings.crt'),
          },
        },
      ],
      users: [{ name: 'u', user: { token } }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    }
    await writeFile(kubeconfig, JSON.stringify(config))
    const cache = join(server.folder, 'cache')
    return new Kubectl(program, [`--kubeconfig=${kubeconfig}`, `--cache-dir=${cache}`])
  }

  private constructor(program: string, flags: readonly string[]) {
    this.#program = program
    this.#flags = flags
  }

  run(...args: readonly string[]): Promise<Said> {
    return new Promise((resolve) => {
      execFile(this.#program, [...this.#flags, ...args], (error, stdout, stderr) => {
        const code = typeof error?.code === 'number' ? error.code : 0
        resolve({ code: error === null ? 0 : code || 1, stdout, stderr })
      })
    })
  }
}
