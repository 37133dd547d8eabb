import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, delimiter, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { etcdBinary, etcdctlBinary, etcdutlBinary } from '../../support/etcd.ts'
import { anywhere, isShown } from './shown.ts'
import { MAIN, type Step, stepsOf } from './steps.ts'
import { Terminal } from './terminal.ts'

const root = join(import.meta.dirname, '../../..')
export const kubectlBinary: string = join(root, '.cache/kubectl-1.36/usr/bin/kubectl')
/** The reader's own programs. */
const PROGRAMS = {
  etcd: etcdBinary,
  etcdctl: etcdctlBinary,
  etcdutl: etcdutlBinary,
  kubectl: kubectlBinary,
} as const
const BIN = '.local/bin'
const DUCKDB = `#!/bin/sh
exec '${process.execPath}' '${join(import.meta.dirname, 'duckdb.ts')}' "$@"
`
const COMMANDS_MS_MAX = 60_000
/** How long a reader looks at a terminal, or repeats a question, before the page is wrong. */
const PATIENCE_MS = 20_000
const LOOK_MS = 200
const REPEAT_MS = 1_000
/** Nobody presses Ctrl-C sooner than this: the command has begun by then. */
const HAND_MS = 500
/** Questions that a reader may ask again, when the answer is not there yet. */
const QUESTION = /^kubectl (?:[^|;&<>]* )?(?:get|events) [^|;&<>]*$/

/** A value for the option `skip` of a test: false when pages can be followed here. */
export const cannotFollow: string | false =
  (!existsSync(kubectlBinary) && 'there is no kubectl 1.36 here: npm run tools -- kubectl') ||
  (!existsSync(etcdBinary) && 'there is no etcd here: npm run tools -- etcd')

export interface FollowerOptions {
  /** Folders with programs besides the reader's own and those of the system. */
  readonly programs?: readonly string[]
  /** All ports are free there, and there is nothing else. */
  readonly hasOwnNetwork?: boolean
}

/**
 * A new user with an empty home folder, who follows pages literally: types every block of commands, and
 * compares what is printed with what the page shows.
 */
export class Follower implements AsyncDisposable {
  readonly home: string
  readonly network: string | undefined
  readonly #path: string
  readonly #terminals = new Map<string, Terminal>()
  /** The last block that was typed. */
  #last: Step | undefined

  static async create({
    programs = [],
    hasOwnNetwork = false,
  }: FollowerOptions = {}): Promise<Follower> {
    const home = await mkdtemp(join(tmpdir(), 'tidings-reader-'))
    await mkdir(join(home, BIN), { recursive: true })
    for (const [name, program] of Object.entries(PROGRAMS)) {
      await symlink(program, join(home, BIN, name))
    }
    await writeFile(join(home, BIN, 'duckdb'), DUCKDB, { mode: 0o755 })
    if (!hasOwnNetwork) return new Follower(home, undefined, programs)
    const network = basename(home)
    execFileSync('ip', ['netns', 'add', network])
    execFileSync('ip', ['-n', network, 'link', 'set', 'lo', 'up'])
    return new Follower(home, network, programs)
  }

  private constructor(home: string, network: string | undefined, programs: readonly string[]) {
    this.home = home
    this.network = network
    const system = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/local/bin', '/usr/bin', '/bin']
    this.#path = [...programs, join(home, BIN), ...system].join(delimiter)
  }

  /** Follows a page from its first to its last block; throws an error with the line that is wrong. */
  async follow(path: string): Promise<void> {
    for (const step of stepsOf(readFileSync(resolve(root, path), 'utf8'))) {
      try {
        await this.#take(step)
      } catch (error) {
        const { output } = this.terminal(step.terminal)
        throw new Error(`${path}:${step.line}: ${String(error)}\nThe terminal shows:\n${output}`)
      }
    }
  }

  /** Opens the terminal, if it is not open yet. */
  terminal(name: string): Terminal {
    const { home, network } = this
    const open =
      this.#terminals.get(name) ??
      new Terminal({ home, network, env: { PATH: this.#path, LANG: 'C.UTF-8', USER: 'you' } })
    this.#terminals.set(name, open)
    return open
  }

  async #take(step: Step): Promise<void> {
    const terminal = this.terminal(step.terminal)
    if (step.what === 'type') {
      terminal.type(step.text)
      if (step.terminal === MAIN) await this.#succeeds(terminal)
      this.#last = step
    } else if (step.what === 'expect') {
      await this.#expect(step, terminal)
    } else {
      await sleep(HAND_MS)
      terminal.interrupt()
      await terminal.ended(COMMANDS_MS_MAX)
    }
  }

  async #succeeds(terminal: Terminal): Promise<void> {
    const failed = await terminal.ended(COMMANDS_MS_MAX)
    if (failed !== 0) throw new Error(`the command in line ${failed} of this block failed`)
  }

  async #expect({ text, terminal: name }: Step, terminal: Terminal): Promise<void> {
    const wanted = name === MAIN ? text : anywhere(text)
    const isRepeatable = name === MAIN && this.#last !== undefined && isQuestion(this.#last.text)
    const until = performance.now() + PATIENCE_MS
    while (!isShown(wanted, terminal.output, this.home)) {
      if (performance.now() > until || (name === MAIN && !isRepeatable)) {
        throw new Error('the page shows something else')
      }
      await sleep(isRepeatable ? REPEAT_MS : LOOK_MS)
      if (isRepeatable && this.#last !== undefined) {
        terminal.type(this.#last.text)
        await this.#succeeds(terminal)
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const terminal of [...this.#terminals.values()].reverse()) {
      await terminal[Symbol.asyncDispose]()
    }
    if (this.network !== undefined) execFileSync('ip', ['netns', 'del', this.network])
    await rm(this.home, { recursive: true, force: true })
  }
}

function isQuestion(commands: string): boolean {
  return commands
    .trimEnd()
    .split('\n')
    .every((line) => QUESTION.test(line))
}
