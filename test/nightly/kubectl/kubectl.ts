import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync } from 'node:fs'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { startEtcd } from '../../support/etcd.ts'
import { Tidings } from '../../support/tidings.ts'

const root = join(import.meta.dirname, '../../..')
const TOKENS = 'admin-token,admin,1,system:masters\nnobody-token,nobody,2\n'
/** Files that commands name by `-f`. */
const FILES = [
  'events.yaml',
  'deployment.yaml',
  'mistaken.yaml',
  'relabelled.yaml',
  'review.yaml',
  'mistaken-review.yaml',
]
const COMMAND_MS_MAX = 30_000

/** The release that the recorded session was made with. */
export const RECORDED_WITH = '1.36'
/** The oldest release that must work. */
export const OLDEST = '1.27'

/** The path of a release of kubectl on this machine: `npm run tools -- kubectl` downloads 1.36. */
export function findKubectl(version: string): string | undefined {
  return [
    join(root, `.cache/kubectl-${version}/usr/bin/kubectl`),
    ...globSync(join(root, `.cache/servers/kubectl-${version}.*`)),
    `/usr/lib/google-cloud-sdk/bin/kubectl.${version}`,
  ].find((path) => existsSync(path))
}

/** Why tests with this release cannot run; false when they can. */
export function whyNot(version: string): string | false {
  return findKubectl(version) === undefined ? `there is no kubectl ${version} here` : false
}

export interface Printed {
  /** Standard output and standard error, in order. */
  readonly output: string
  readonly exitCode: number
}

/**
 * A server, and a home directory in which kubectl is configured for it, with `events.yaml` and the
 * other files in the working directory of commands. For `await using`.
 */
export class KubectlSession implements AsyncDisposable {
  readonly server: Tidings
  readonly #binary: string
  readonly #home: string
  readonly #stack: AsyncDisposableStack

  /** `prefix`: a path in the server's URL, such as `/clusters/prod-eu`. */
  static async start(version: string, prefix: string): Promise<KubectlSession> {
    const binary = findKubectl(version)
    if (binary === undefined) throw new Error(`there is no kubectl ${version} here`)
    await using stack = new AsyncDisposableStack()
    const home = await mkdtemp(join(tmpdir(), 'tidings-kubectl-'))
    stack.defer(() => rm(home, { recursive: true, force: true }))
    await writeFile(join(home, 'tokens.csv'), TOKENS)
    for (const name of FILES) await cp(join(import.meta.dirname, name), join(home, name))
    const etcd = stack.use(await startEtcd())
    const server = stack.use(
      await Tidings.start([
        `--etcd-servers=${etcd.endpoints[0]}`,
        `--token-auth-file=${join(home, 'tokens.csv')}`,
      ]),
    )
    await server.until('/readyz', ({ status }) => status === 200, 10_000)
    await writeFile(join(home, 'kubeconfig'), kubeconfig(server, prefix))
    return new KubectlSession({ server, binary, home, stack: stack.move() })
  }

  private constructor(parts: {
    server: Tidings
    binary: string
    home: string
    stack: AsyncDisposableStack
  }) {
    this.server = parts.server
    this.#binary = parts.binary
    this.#home = parts.home
    this.#stack = parts.stack
  }

  /** Runs a command as it is in a transcript; its arguments have no spaces in them. */
  async run(command: string): Promise<Printed> {
    const running = this.start(command)
    const late = setTimeout(() => running.process.kill('SIGKILL'), COMMAND_MS_MAX)
    const exitCode = await running.ended
    clearTimeout(late)
    return { output: running.output, exitCode }
  }

  /** Starts a long-running command, and collects its output. */
  start(command: string): RunningKubectl {
    const [program, ...args] = wordsOf(command)
    if (program !== 'kubectl') throw new Error(`not a command for kubectl: ${command}`)
    // One pipe for both, so that warnings keep their place.
    const child = spawn('sh', ['-c', 'exec "$0" "$@" 2>&1', this.#binary, ...args], {
      cwd: this.#home,
      env: {
        PATH: ['/usr/bin', '/bin'].join(delimiter),
        HOME: this.#home,
        KUBECONFIG: join(this.#home, 'kubeconfig'),
        KUBE_EDITOR: "sed -i 's/app: web/app: shop/'",
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    return new RunningKubectl(child)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync()
  }
}

/** A command that has been started. */
export class RunningKubectl implements AsyncDisposable {
  readonly process: ChildProcess
  readonly ended: Promise<number>
  output = ''

  constructor(child: ChildProcess) {
    this.process = child
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      this.output += chunk
    })
    this.ended = once(child, 'close').then(([code]) => Number(code ?? -1))
  }

  /** Resolves when it has printed so many lines; rejects when it does not. */
  async printed(lines: number, timeoutMs = 10_000): Promise<void> {
    const endsAt = performance.now() + timeoutMs
    while (this.output.split('\n').length - 1 < lines) {
      if (performance.now() > endsAt) throw new Error(`no ${lines} lines:\n${this.output}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.process.kill('SIGKILL')
    await this.ended
  }
}

function kubeconfig(server: Tidings, prefix: string): string {
  const users = ['admin', 'nobody']
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'tidings',
        cluster: {
          server: `https://127.0.0.1:${server.port}${prefix}`,
          'certificate-authority-data': Buffer.from(server.ca).toString('base64'),
        },
      },
    ],
    users: users.map((name) => ({ name, user: { token: `${name}-token` } })),
    contexts: users.map((name) => ({
      name,
      context: { cluster: 'tidings', user: name, namespace: 'shop' },
    })),
    'current-context': 'admin',
  })
}

/** Words are separated by spaces, unless they are in single quotes, as in a shell. */
function wordsOf(command: string): readonly string[] {
  return [...command.matchAll(/'([^']*)'(?= |$)|[^ ]+/g)].map(([word, quoted]) => quoted ?? word)
}
