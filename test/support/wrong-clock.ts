import { existsSync } from 'node:fs'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const libraries = ['x86_64-linux-gnu', 'aarch64-linux-gnu'].map(
  (machine) => `/usr/lib/${machine}/faketime/libfaketimeMT.so.1`,
)

/**
 * A wall clock for one process that shows the given time: `+2h`, `-1d`, or `+0s x100` for one that
 * runs a hundred times too fast. Uses libfaketime (Debian: `apt-get install libfaketime`).
 */
export class WrongClock implements AsyncDisposable {
  /** Environment for the process that gets this clock. */
  readonly env: Readonly<Record<string, string>>
  readonly #folder: string

  /**
   * `fakesMonotonic`: the monotonic clock is wrong too, which cannot happen by setting the clock.
   */
  static async make(shows: string, options?: { fakesMonotonic: boolean }): Promise<WrongClock> {
    const library = libraries.find((path) => existsSync(path))
    if (library === undefined) throw new Error('needs libfaketime: apt-get install libfaketime')
    const folder = await mkdtemp(join(tmpdir(), 'tidings-clock-'))
    const clock = new WrongClock(folder, {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: join(folder, 'shows'),
      FAKETIME_CACHE_DURATION: '1',
      ...(options?.fakesMonotonic === true ? {} : { DONT_FAKE_MONOTONIC: '1' }),
    })
    await clock.set(shows)
    return clock
  }

  private constructor(folder: string, env: Readonly<Record<string, string>>) {
    this.#folder = folder
    this.env = env
  }

  /** The process uses it within a second. */
  async set(shows: string): Promise<void> {
    await writeFile(join(this.#folder, 'next'), shows)
    await rename(join(this.#folder, 'next'), join(this.#folder, 'shows'))
  }

  /**
   * Removes shared memory that the library left behind of a process that was killed. A later
   * process with the same id would wait for it for ever.
   */
  static async cleanUp(pid: number | undefined): Promise<void> {
    const files = [`faketime_shm_${pid}`, `sem.faketime_sem_${pid}`]
    await Promise.all(files.map((file) => rm(join('/dev/shm', file), { force: true })))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true })
  }
}
