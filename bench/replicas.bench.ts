/**
 * One, two and three replicas over one etcd: what creates, following the writes of other replicas
 * and frames of watches cost in CPU time, and what etcd uses. Prints the costs of the sizing model
 * (docs/how-to/size.md), what follows for three sizes of cluster, and how far a prediction is from a
 * run that the model does not know. A report: it exits with 0.
 *
 *   npm run bench -- replicas [--rounds 5]
 *
 * Needs h2load (of nghttp2). All share the cores of one machine, so rates by the clock do not grow
 * with replicas here; CPU time says what they would need.
 */
import { parseArgs } from 'node:util'
import { CostRounds, watch } from './replicas/costs.ts'
import { type Cost, type Costs, type Need, needOf, replicasFor } from './replicas/model.ts'
import { type Usage, World } from './replicas/world.ts'
import type { Readers } from './support/readers.ts'
import { median } from './support/request-costs.ts'

const { values: options } = parseArgs({ options: { rounds: { type: 'string', default: '5' } } })
const rounds = Number(options.rounds)
const CREATES = 9_000
/** Other rates and roles than those of the measured costs: both replicas serve, write and follow. */
const VERIFIED = { createsPerSecond: 160, watchersPerEvent: 100, replicas: 2 }
const VERIFIED_SECONDS = 8
const CLUSTERS = [
  { name: 'small', createsPerSecond: 10, watchersPerEvent: 20, storedHours: 1 },
  { name: 'medium', createsPerSecond: 100, watchersPerEvent: 50, storedHours: 1 },
  { name: 'large', createsPerSecond: 500, watchersPerEvent: 100, storedHours: 1 },
]

await scaleOut([1, 2, 3])
await using world = await World.start(VERIFIED.replicas)
const measured = await CostRounds.begin(world)
const verified: Need[] = []
// The two take turns, so that a change in the speed of the machine affects both.
for (let round = 0; round < rounds; round++) {
  await measured.add()
  verified.push(await verifiedNeed())
}
const costs = await measured.costs()
printCosts(costs)
printVerification()
printClusters()

/** All replicas of a world are written to as fast as they serve; the worlds take turns. */
async function scaleOut(sizes: readonly number[]): Promise<void> {
  await using cleanup = new AsyncDisposableStack()
  const worlds: { readonly all: World; readonly usages: Usage[] }[] = []
  for (const size of sizes) {
    worlds.push({ all: cleanup.use(await World.start(size)), usages: [] })
  }
  // The first round warms up.
  for (let round = 0; round <= rounds; round++) {
    for (const { all, usages } of worlds) {
      const usage = await all.measure(() => createAtAll(all))
      if (round > 0) usages.push(usage)
    }
  }
  for (const { all, usages } of worlds) await printScale(all, usages)
}

async function createAtAll(all: World): Promise<void> {
  const count = CREATES / all.size
  await Promise.all(Array.from({ length: all.size }, (_, at) => all.createMany(count, at)))
}

async function printScale(all: World, usages: readonly Usage[]): Promise<void> {
  const middle = (of: (usage: Usage) => number): string => median(usages.map(of)).toFixed(0)
  const sum = (values: readonly number[]): number => values.reduce((total, one) => total + one, 0)
  const { memoryMib, bytesPerEvent } = await all.etcdUse()
  print(
    `${all.size} replica${all.size === 1 ? ' ' : 's'}: ${middle(({ seconds }) => CREATES / seconds)} creates/s, ` +
      `${middle(({ replicas }) => CREATES / sum(replicas))} per CPU second of all replicas; ` +
      `etcd ${middle(({ etcd }) => (etcd * 1e6) / CREATES)} µs per create, ` +
      `${memoryMib.toFixed(0)} MiB, ${bytesPerEvent.toFixed(0)} bytes per event`,
  )
}

function printCosts({ create, follow, etcdCreate, ...rest }: Costs): void {
  const text = (cost: Cost): string =>
    cost
      .map(({ perSecond, micros }) => `${micros.toFixed(0)} µs at ${perSecond.toFixed(0)}/s`)
      .join(', ')
  print(`\nidle: replica ${rest.idleCores.toFixed(3)} cores, etcd ${rest.etcdIdleCores.toFixed(3)}`)
  print(`create: ${text(create)}`)
  print(`follow a change of another replica: ${text(follow)}`)
  print(`frame: ${rest.frame.toFixed(1)} µs`)
  print(`create, in etcd: ${text(etcdCreate)}; ${rest.etcdBytesPerEvent.toFixed(0)} bytes`)
}

/** Measures a load that none of the costs was taken from. */
async function verifiedNeed(): Promise<Need> {
  const { createsPerSecond, watchersPerEvent, replicas } = VERIFIED
  const numbers = Array.from({ length: replicas }, (_, at) => at)
  const crowd = { sessions: 2, streamsPerSession: watchersPerEvent / replicas / 2 }
  await using cleanup = new AsyncDisposableStack()
  const readers: Readers[] = []
  for (const at of numbers) readers.push(cleanup.use(await watch(world, at, crowd)))
  const perSecond = createsPerSecond / replicas
  const count = perSecond * VERIFIED_SECONDS
  const used = await world.measure(async () => {
    const frames = (count * replicas * watchersPerEvent) / replicas
    const received = readers.map((some) => some.received(frames))
    await Promise.all(numbers.map((at) => world.createAtPace({ count, perSecond }, at)))
    await Promise.all(received)
  })
  return {
    replicaCores: used.replicas.reduce((sum, one) => sum + one, 0) / replicas / used.seconds,
    etcdCores: used.etcd / used.seconds,
  }
}

function printVerification(): void {
  const { createsPerSecond, watchersPerEvent, replicas } = VERIFIED
  const need = needOf(VERIFIED, costs)
  print(
    `\n${createsPerSecond} creates/s over ${replicas} replicas, ${watchersPerEvent} watchers of all:`,
  )
  printPrediction(
    'cores of a replica',
    need.replicaCores,
    verified.map(({ replicaCores }) => replicaCores),
  )
  printPrediction(
    'cores of etcd',
    need.etcdCores,
    verified.map(({ etcdCores }) => etcdCores),
  )
}

function printPrediction(what: string, predicted: number, runs: readonly number[]): void {
  const middle = median(runs)
  const off = (100 * (predicted - middle)) / middle
  print(
    `  ${what}: predicted ${predicted.toFixed(3)}, measured ${middle.toFixed(3)} ` +
      `(${Math.min(...runs).toFixed(3)} to ${Math.max(...runs).toFixed(3)}): ` +
      `${Math.abs(off).toFixed(0)} % too ${off < 0 ? 'low' : 'high'}`,
  )
}

function printClusters(): void {
  print('')
  for (const { name, storedHours, ...load } of CLUSTERS) {
    const replicas = replicasFor(load, costs)
    const { replicaCores, etcdCores } = needOf({ ...load, replicas }, costs)
    const stored = load.createsPerSecond * storedHours * 3600
    print(
      `${name}: ${load.createsPerSecond} events/s, ${load.watchersPerEvent} watchers of each, ` +
        `${stored} stored: ${replicas} replicas with ${replicaCores.toFixed(2)} cores each, ` +
        `etcd ${etcdCores.toFixed(2)} cores, ${((stored * costs.etcdBytesPerEvent) / 1e6).toFixed(0)} MB`,
    )
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
