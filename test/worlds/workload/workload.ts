/**
 * The traffic of the simulation. Requests come in clumps, since most bugs need requests that
 * overlap: a few at one replica within milliseconds, a few at others, on the same events; and reads
 * elsewhere right after an acknowledged write.
 */
import { Random } from '../../support/random.ts'
import type { Checks } from '../checker/checks.ts'
import { Clients } from './clients.ts'
import type { ClientWorld } from './contract.ts'
import { Listers } from './listers.ts'
import { Readers } from './readers.ts'
import { Watcher } from './watchers.ts'
import { Writers } from './writers.ts'

/** What clients do. */
export interface Mix {
  /** Long-lived watches over all replicas. */
  readonly watchers: number
  /** The share of writes and of lists; the rest are reads of single events. */
  readonly writeShare: number
  readonly listShare: number
}

export interface WorkloadOptions {
  /** True seconds, over all replicas. Default 50. */
  readonly operationsPerSecond?: number | undefined
  readonly mix?: Mix | undefined
  /** Names in each namespace; by default there are always new ones. */
  readonly fixedNames?: number | undefined
  /** Which operations run, by their number; default all. For making a failing run smaller. */
  readonly keeps?: ((operation: number) => boolean) | undefined
}

export interface Workload {
  /** No new operations. Watches go on. */
  stop(): void
  /** Requests sent to replicas that were up, further pages of lists included. */
  readonly requests: number
  /** Operations begun; they are numbered from 1. */
  readonly operations: number
  /** How often each kind of operation ended how. */
  readonly outcomes: ReadonlyMap<string, number>
}

export interface EventWorkload extends Workload {
  /** Makes all watchers hurry, and counts those that have not reached this version yet. */
  watchersBehind(version: number): number
}

const operationsPerSecondDefault = 50
const mixDefault: Mix = { watchers: 15, writeShare: 0.25, listShare: 0.07 }
/** Operations in a clump, on average. */
const clumpMean = 5
/** Reads of an event right after it was written. */
const followShare = 0.25

export function startWorkload(
  world: ClientWorld,
  checks: Checks,
  options: WorkloadOptions = {},
): EventWorkload {
  checks.start()
  return new Traffic(world, checks, options)
}

class Traffic implements EventWorkload {
  readonly #world: ClientWorld
  readonly #clients: Clients
  readonly #writers: Writers
  readonly #readers: Readers
  readonly #listers: Listers
  readonly #arrivals: Random
  readonly #seed: number
  readonly #clumpEveryMs: number
  readonly #mix: Mix
  readonly #keeps: (operation: number) => boolean
  readonly #watchers: Watcher[] = []
  #isHurried = false
  #operations = 0
  #isStopped = false

  constructor(world: ClientWorld, checks: Checks, options: WorkloadOptions) {
    const {
      operationsPerSecond = operationsPerSecondDefault,
      mix = mixDefault,
      keeps = () => true,
    } = options
    this.#world = world
    this.#keeps = keeps
    this.#mix = mix
    this.#clients = new Clients(world, checks, options.fixedNames)
    this.#writers = new Writers(this.#clients)
    this.#readers = new Readers(this.#clients)
    this.#listers = new Listers(this.#clients, this.#readers)
    this.#arrivals = world.random()
    this.#seed = this.#arrivals.below(2 ** 32)
    this.#clumpEveryMs = (1_000 * clumpMean) / operationsPerSecond
    for (let number = 0; number < mix.watchers; number++) {
      const watcher = new Watcher(this.#clients, world.random(), number)
      this.#watchers.push(watcher)
      watcher.start()
    }
    world.after(0, this.#clump)
  }

  get operations(): number {
    return this.#operations
  }

  get requests(): number {
    return this.#clients.requests
  }

  get outcomes(): ReadonlyMap<string, number> {
    return this.#clients.outcomes
  }

  stop(): void {
    this.#isStopped = true
  }

  watchersBehind(version: number): number {
    if (!this.#isHurried) for (const watcher of this.#watchers) watcher.hurry()
    this.#isHurried = true
    return this.#watchers.filter((watcher) => watcher.version < version).length
  }

  readonly #clump = (): void => {
    if (this.#isStopped) return
    const random = this.#arrivals
    this.#world.after(-Math.log(1 - random.next()) * this.#clumpEveryMs, this.#clump)
    const size = 1 + random.below(2 * clumpMean - 1)
    const home = this.#clients.anyReplica(random)
    // One tick, so that writes share a transaction; or spread over the time of a few calls.
    const spreadMs = random.chance(0.3) ? 0 : random.between(0.5, 12)
    for (let index = 0; index < size; index++) {
      const replica = random.chance(0.7) ? home : this.#clients.anyReplica(random)
      this.#operate(replica, random.next() * spreadMs)
    }
  }

  /** Each operation has its own random numbers: leaving some out does not change the others. */
  #operate(replica: number, ms: number): void {
    const number = ++this.#operations
    if (!this.#keeps(number)) return
    const random = new Random(Math.imul(this.#seed ^ number, 0x9e3779b1))
    this.#clients.send(replica, ms, (at) => {
      const { writeShare, listShare } = this.#mix
      const kind = random.next()
      if (kind < writeShare) this.#writers.write(at, random, (path) => this.#follow(path, random))
      else if (kind < writeShare + listShare) this.#listers.list(at, random)
      else this.#readers.read(at, random)
    })
  }

  /** The client reads what it wrote, from any replica: it must be there. */
  #follow(path: string, random: Random): void {
    if (!random.chance(followShare)) return
    const replica = this.#clients.anyReplica(random)
    this.#clients.send(replica, random.next() * 2, (at) =>
      this.#readers.get(at, path, undefined, random),
    )
  }
}
