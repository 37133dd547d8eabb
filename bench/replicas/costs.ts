/** Measures the costs of the sizing model, with two replicas of which one is written to. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Readers } from '../support/readers.ts'
import { median } from '../support/request-costs.ts'
import type { Cost, Costs } from './model.ts'
import type { Usage, World } from './world.ts'

/** The pause in which work left over from the warm-up ends. */
const REST_MS = 10_000
const IDLE_MS = 8_000
const TOGETHER = 8_000
const PACES = [
  { perSecond: 25, count: 150 },
  { perSecond: 250, count: 1_000 },
]
const WATCHED_PACE = { count: 200, perSecond: 50 }
const WATCHERS = { sessions: 4, streamsPerSession: 50 }
const SETTLE_MS = 500
const WRITER = 0
const FOLLOWER = 1

/** What one write costs each of them, in microseconds of CPU, without what they use idle. */
interface Sample {
  readonly perSecond: number
  readonly create: number
  readonly follow: number
  readonly etcd: number
}

/** Measures in rounds; each figure is the median of its rounds. */
export class CostRounds {
  readonly #world: World
  readonly #idle: Usage
  readonly #loads: readonly { readonly count: number; run(): Promise<void> }[]
  readonly #samples: readonly Sample[][]
  readonly #frames: number[] = []

  /** Warms up, and measures the idle replicas. */
  static async begin(world: World): Promise<CostRounds> {
    for (const replica of [WRITER, FOLLOWER]) await world.createMany(TOGETHER, replica)
    await sleep(REST_MS)
    return new CostRounds(world, await world.measure(() => sleep(IDLE_MS)))
  }

  private constructor(world: World, idle: Usage) {
    this.#world = world
    this.#idle = idle
    this.#loads = [
      ...PACES.map((pace) => ({ count: pace.count, run: () => world.createAtPace(pace, WRITER) })),
      { count: TOGETHER, run: () => world.createMany(TOGETHER, WRITER) },
    ]
    this.#samples = this.#loads.map(() => [])
  }

  async add(): Promise<void> {
    for (const [at, { count, run }] of this.#loads.entries()) {
      this.#samples[at]?.push(sampleOf(await this.#world.measure(run), this.#idle, count))
    }
    this.#frames.push(await frameCost(this.#world, this.#idle))
  }

  async costs(): Promise<Costs> {
    const { replicas, etcd, seconds } = this.#idle
    const cost = (of: keyof Sample): Cost =>
      this.#samples.map((some) => ({
        perSecond: median(some.map(({ perSecond }) => perSecond)),
        micros: median(some.map((sample) => sample[of])),
      }))
    return {
      idleCores: (replicas[FOLLOWER] ?? 0) / seconds,
      etcdIdleCores: etcd / seconds,
      create: cost('create'),
      follow: cost('follow'),
      etcdCreate: cost('etcd'),
      frame: median(this.#frames),
      etcdBytesPerEvent: (await this.#world.etcdUse()).bytesPerEvent,
    }
  }
}

/**
 * At the replica that is not written to, so that it does nothing else: following with watchers, less
 * following without, right after it.
 */
async function frameCost(world: World, idle: Usage): Promise<number> {
  const { count } = WATCHED_PACE
  const publish = (): Promise<void> => world.createAtPace(WATCHED_PACE, WRITER)
  const alone = sampleOf(await world.measure(publish), idle, count).follow
  await using readers = await watch(world, FOLLOWER, WATCHERS)
  const watchers = WATCHERS.sessions * WATCHERS.streamsPerSession
  const usage = await world.measure(async () => {
    const received = readers.received(count * watchers)
    await publish()
    await received
  })
  return (sampleOf(usage, idle, count).follow - alone) / watchers
}

/** Watchers of the events that are created from now on. */
export async function watch(
  world: World,
  replica: number,
  crowd: { readonly sessions: number; readonly streamsPerSession: number },
): Promise<Readers> {
  const { url, path, headers } = world.address(replica)
  const from = `resourceVersion=${await world.version()}`
  const readers = await Readers.open({ url, path: `${path}?watch=true&${from}`, headers, ...crowd })
  await sleep(SETTLE_MS)
  return readers
}

function sampleOf({ replicas, etcd, seconds }: Usage, idle: Usage, count: number): Sample {
  const cost = (used: number, idleUsed: number): number =>
    ((used - (idleUsed / idle.seconds) * seconds) * 1e6) / count
  return {
    perSecond: count / seconds,
    create: cost(replicas[WRITER] ?? 0, idle.replicas[WRITER] ?? 0),
    follow: cost(replicas[FOLLOWER] ?? 0, idle.replicas[FOLLOWER] ?? 0),
    etcd: cost(etcd, idle.etcd),
  }
}
