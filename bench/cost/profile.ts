/** Where the time and the allocations of a kind of work are, in a server of its own. */

import { existsSync, readFileSync } from 'node:fs'
import type { HeapProfiler, Profiler } from 'node:inspector'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { bytesByFolder, cpuByFolder } from './profile-by-folder.ts'
import { print } from './report.ts'
import type { Sides, TidingsSide } from './sides.ts'
import type { Work } from './work.ts'

const FOLDERS_SHOWN = 18
const POLL_MS = 20

export class ProfiledServer {
  readonly #side: TidingsSide
  readonly #folder: string
  #step = 0

  static async start(sides: Sides): Promise<ProfiledServer> {
    const preload = new URL('./profiled.ts', import.meta.url).href
    const env = { NODE_OPTIONS: `--import=${preload}`, PROFILE_FOLDER: sides.folder }
    return new ProfiledServer(await sides.tidings('profiled', undefined, env), sides.folder)
  }

  private constructor(side: TidingsSide, folder: string) {
    this.#side = side
    this.#folder = folder
  }

  async print(work: Work): Promise<void> {
    await work.load(this.#side)
    const cpu: Profiler.Profile = JSON.parse(await this.#profile(work))
    const heap: HeapProfiler.SamplingHeapProfile = JSON.parse(await this.#profile(work))
    const bytes = bytesByFolder(heap)
    print(`${work.name}: ${(sumOf(bytes) / work.units).toFixed(0)} bytes allocated for each`)
    printShares('µs of the main thread, by folder', cpuByFolder(cpu), work.units)
    printShares('bytes allocated, by folder', bytes, work.units)
    print('')
  }

  async #profile(work: Work): Promise<string> {
    await this.#next()
    await work.load(this.#side)
    return await this.#next()
  }

  /** Waits until the step is done. */
  async #next(): Promise<string> {
    const file = join(this.#folder, String(this.#step++))
    this.#side.server.kill('SIGUSR2')
    while (!existsSync(file)) await sleep(POLL_MS)
    return readFileSync(file, 'utf8')
  }
}

function printShares(title: string, sums: ReadonlyMap<string, number>, units: number): void {
  const total = sumOf(sums)
  print(`  ${title}: ${(total / units).toFixed(1)} in all`)
  const largest = [...sums].sort(([, one], [, other]) => other - one).slice(0, FOLDERS_SHOWN)
  for (const [name, sum] of largest) {
    const share = ((100 * sum) / total).toFixed(1)
    print(`  ${(sum / units).toFixed(2).padStart(9)} ${share.padStart(6)} %  ${name}`)
  }
}

function sumOf(sums: ReadonlyMap<string, number>): number {
  return [...sums.values()].reduce((sum, value) => sum + value, 0)
}
