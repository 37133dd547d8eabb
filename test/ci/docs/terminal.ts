import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { eventually } from '../../support/eventually.ts'

/**
 * Runs blocks of commands from descriptor 3, so that no command can read the next block as its
 * input. After each block it prints a mark with 0, or with the line of the first command that failed.
 */
const SHELL = `
trap 'failed=\${failed:-$LINENO}' ERR
set -E -o pipefail
trap : INT
while IFS= read -r -d '' -u 3 block; do
  failed=
  eval "$block" < /dev/null
  printf '\\n== block ended: %s ==\\n' "\${failed:-0}"
done
`
const MARK = /\n== block ended: (\d+) ==\n/
/** `LINENO` counts on from here in a block. */
const EVAL_LINE = SHELL.split('\n').findIndex((line) => line.includes('eval ')) + 1
const STOP_MS_MAX = 5_000

export interface TerminalOptions {
  /** A network of its own, by the name for `ip netns`; undefined: that of the machine. */
  readonly network: string | undefined
  /** The home folder of the user, where every terminal opens. */
  readonly home: string
  readonly env: Readonly<Record<string, string>>
}

/** A terminal with a shell, in which a user types commands one block after the other. */
export class Terminal implements AsyncDisposable {
  readonly #shell: ChildProcess
  readonly #ended: Promise<unknown>
  /** What has been printed since the last block was typed. */
  #output = ''

  constructor({ network, home, env }: TerminalOptions) {
    const inside = network === undefined ? [] : ['ip', 'netns', 'exec', network]
    const [program = '', ...args] = [...inside, 'bash', '--norc', '-c', SHELL]
    this.#shell = spawn(program, args, {
      cwd: home,
      env: { ...env, HOME: home },
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      // Ctrl-C reaches the whole group, as in a real terminal.
      detached: true,
    })
    this.#ended = once(this.#shell, 'close')
    // A shell that has ended is noticed by what it does not print.
    this.#shell.stdio[3]?.on('error', () => {})
    for (const stream of [this.#shell.stdout, this.#shell.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text
      })
    }
  }

  /** The output without the mark at its end. */
  get output(): string {
    return this.#output.replace(MARK, '')
  }

  type(commands: string): void {
    this.#output = ''
    const stream = this.#shell.stdio[3]
    if (stream === null || stream === undefined || !('write' in stream)) throw new Error('no shell')
    stream.write(`${commands}\0`)
  }

  /** Resolves when the last block has ended: the line of the command that failed, or 0. */
  async ended(timeoutMs: number): Promise<number> {
    await eventually('the commands end', () => MARK.test(this.#output), timeoutMs)
    const line = Number(MARK.exec(this.#output)?.[1])
    return line === 0 ? 0 : line - EVAL_LINE + 1
  }

  interrupt(): void {
    this.#signal('SIGINT')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#signal('SIGTERM')
    const kill = setTimeout(() => this.#signal('SIGKILL'), STOP_MS_MAX)
    // A shell waits for its command, and ignores SIGINT; its group may also have left it behind.
    this.#shell.stdio[3]?.destroy()
    await this.#ended
    clearTimeout(kill)
    this.#signal('SIGKILL')
  }

  #signal(signal: NodeJS.Signals): void {
    const { pid } = this.#shell
    if (pid === undefined) return
    try {
      process.kill(-pid, signal)
    } catch {
      // There is no process left in the group.
    }
  }
}
