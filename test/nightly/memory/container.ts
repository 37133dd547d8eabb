import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const PROJECT = join(import.meta.dirname, '../../..')
/** What Node needs of this machine. */
const SYSTEM = ['/usr', '/lib', '/lib64', '/etc']
/** Limits that a machine without all rights can set. */
const ULIMITS = ['--ulimit=nofile=20000:20000', '--ulimit=nproc=1024:1024']
const PODMAN = ['--cgroup-manager=cgroupfs', '--runtime=runc']

/**
 * A container of podman with a limit of memory, for one program that is on this machine: its folders
 * are mounted, so no image is needed. Removed at the end of the scope.
 */
export class Container implements Disposable {
  readonly #name = `tidings-memory-${process.pid}`
  readonly #folder = mkdtempSync(join(tmpdir(), 'tidings-container-'))
  readonly #bytes: number
  #pid: number | undefined

  /** Undefined, with the reason printed, when this machine does not let us make one. */
  static open(bytes: number): Container | undefined {
    const container = new Container(bytes)
    const [program = '', ...words] = container.command([process.execPath, '--version'])
    const { error, status, stderr } = spawnSync(program, words, { encoding: 'utf8' })
    if (status === 0) return container
    process.stdout.write(`no container can be made here: ${error ?? stderr}\n`)
    container[Symbol.dispose]()
    return undefined
  }

  private constructor(bytes: number) {
    this.#bytes = bytes
  }

  /** The words that run this command in the container, with these variables of the environment. */
  command(words: readonly string[]): readonly string[] {
    const programs = [PROJECT, realpathSync(join(PROJECT, 'node_modules')), process.execPath]
    const folders = [...SYSTEM, ...programs].map((path) => `--volume=${path}:${path}:ro`)
    return [
      ...['podman', ...PODMAN, 'run', '--rm', `--name=${this.#name}`, '--network=host', ...ULIMITS],
      ...[`--memory=${this.#bytes}`, `--memory-swap=${this.#bytes}`, '--env=NODE_OPTIONS'],
      '--env=MALLOC_ARENA_MAX',
      ...[...new Set(folders), `--volume=${tmpdir()}:${tmpdir()}`],
      ...['--rootfs', this.#folder, ...words],
    ]
  }

  /** The program's process id on this machine. Read once: watchers read nothing meanwhile. */
  pid(): number {
    const args = [...PODMAN, 'inspect', '--format={{.State.Pid}}', this.#name]
    this.#pid ??= Number(execFileSync('podman', args, { encoding: 'utf8' }))
    return this.#pid
  }

  [Symbol.dispose](): void {
    spawnSync('podman', [...PODMAN, 'rm', '--force', '--time=2', this.#name])
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** The most that the control group of a process took, pages of files included, in bytes. */
export function groupPeakBytes(pid: number): number | undefined {
  const table = readFileSync(`/proc/${pid}/cgroup`, 'utf8')
  const first = /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$/m.exec(table)?.[1]
  const second = /^0::(.*)$/m.exec(table)?.[1] ?? '/'
  const file =
    first === undefined
      ? join('/sys/fs/cgroup', second, 'memory.peak')
      : join('/sys/fs/cgroup/memory', first, 'memory.max_usage_in_bytes')
  try {
    return Number(readFileSync(file, 'utf8'))
  } catch {
    return undefined
  }
}
