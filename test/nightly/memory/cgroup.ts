import { mkdirSync } from 'node:fs'
import { readFile, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const ROOT = '/sys/fs/cgroup'

/** A control group for one program, within that of this process; removed at the end of the scope. */
export class MemoryGroup implements AsyncDisposable {
  readonly #folder: string
  readonly #isFirstVersion: boolean

  /** Undefined, with the reason printed, when this machine does not let us make one. */
  static async make(bytes: number): Promise<MemoryGroup | undefined> {
    const table = await readFile('/proc/self/cgroup', 'utf8')
    const first = /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$/m.exec(table)?.[1]
    const second = /^0::(.*)$/m.exec(table)?.[1] ?? '/'
    const parent = first === undefined ? join(ROOT, second) : join(ROOT, 'memory', first)
    const group = new MemoryGroup(join(parent, `tidings-test-${process.pid}`), first !== undefined)
    try {
      mkdirSync(group.#folder)
      const file = group.#isFirstVersion ? 'memory.limit_in_bytes' : 'memory.max'
      await writeFile(join(group.#folder, file), String(bytes))
      return group
    } catch (error) {
      process.stdout.write(`no control group can be made here: ${error}\n`)
      await group[Symbol.asyncDispose]()
      return undefined
    }
  }

  private constructor(folder: string, isFirstVersion: boolean) {
    this.#folder = folder
    this.#isFirstVersion = isFirstVersion
  }

  /** Starts the command within the group, in the same process. */
  command(words: readonly string[]): readonly string[] {
    const enter = 'echo $$ > "$0" && exec "$@"'
    return ['sh', '-c', enter, join(this.#folder, 'cgroup.procs'), ...words]
  }

  /** The most that the group ever took, file pages included, in bytes. */
  async peakBytes(): Promise<number> {
    const file = this.#isFirstVersion ? 'memory.max_usage_in_bytes' : 'memory.peak'
    return Number(await readFile(join(this.#folder, file), 'utf8'))
  }

  /** How often the limit was reached, so that the kernel had to free pages. */
  async failures(): Promise<string> {
    const file = this.#isFirstVersion ? 'memory.failcnt' : 'memory.events'
    return (await readFile(join(this.#folder, file), 'utf8')).trim().replaceAll('\n', ', ')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rmdir(this.#folder).catch(() => undefined)
  }
}
