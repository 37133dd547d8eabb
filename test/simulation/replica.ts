/** A replica in the simulated world: the production engine in a simulated process. */
import { Registry } from '@prometheus-io/client'
import { coreGroup, eventsGroup } from '../../src/api/event-groups.ts'
import type { CachedStorage } from '../../src/cache/cached-storage.ts'
import type { ClustersSource } from '../../src/clusters/clusters-file.ts'
import type { Log } from '../../src/lib/log/log.ts'
import type { Options } from '../../src/options/options.ts'
import { EventLister } from '../../src/registry/read/listing.ts'
import { EventRegistry } from '../../src/registry/registry.ts'
import { Engine } from '../../src/server/engine.ts'
import type { Random } from '../support/random.ts'
import type { PolicyFileCopy, PolicyReign } from '../worlds/retention/policy-reign.ts'
import type { ReplicaParts, WorldReplica } from '../worlds/workload/contract.ts'
import { attachArchive } from './history/archive-host.ts'
import type { Bucket } from './history/bucket.ts'
import { SimulatedEngines } from './history/engines.ts'
import { runAs } from './kernel/current.ts'
import { SimulatedProcess, type WallTime } from './kernel/process.ts'
import type { Scheduler } from './kernel/scheduler.ts'
import { attachOrigin } from './mirror/http-origin.ts'
import type { OriginServer } from './mirror/origin-server.ts'
import { attach } from './network/host.ts'
import type { Network } from './network/network.ts'

const GROUP = 'events.k8s.io'
/** A supervisor starts an ended process again after this long, at least and at most. */
const restartMs = { least: 200, most: 3_000 }
/** The largest offset of a wall clock. */
const wallOffsetMsUsual = 3_600_000

export interface ReplicaOptions {
  readonly index: number
  readonly scheduler: Scheduler
  readonly network: Network
  readonly random: Random
  readonly options: Options
  /** Largest share by which its monotonic clock runs fast or slow. */
  readonly driftMax: number
  /** The largest offset of its wall clock; default an hour. */
  readonly wallOffsetMsMax?: number | undefined
  readonly wall?: WallTime | undefined
  /** The store of the archive, if there is one. */
  readonly bucket?: Bucket | undefined
  /** The origin of the mirrored cluster, if there is one. */
  readonly origin?: { readonly server: OriginServer; readonly clusters: ClustersSource } | undefined
  readonly policies: PolicyReign
  readonly trace: (who: string, text: () => string) => void
  /** A process ended, by whatever cause. */
  readonly onEnd: (replica: Replica, why: string, startedAt: number) => void
  /** Production code failed in a way that is a bug, whatever happened to the process. */
  readonly onBug: (what: string) => void
}

export class Replica implements WorldReplica {
  readonly index: number
  readonly #options: ReplicaOptions
  #incarnation = 0
  #process: SimulatedProcess | undefined
  #engine: Engine | undefined
  #parts: ReplicaParts | undefined
  #policyFile: PolicyFileCopy | undefined
  #engines: SimulatedEngines | undefined

  constructor(options: ReplicaOptions) {
    this.#options = options
    this.index = options.index
  }

  get name(): string {
    return `replica-${this.index}`
  }

  get incarnation(): number {
    return this.#incarnation
  }

  get parts(): ReplicaParts | undefined {
    return this.#parts
  }

  get process(): SimulatedProcess | undefined {
    return this.#process
  }

  /** Its processes that write files of the archive, if there is one. */
  get engines(): SimulatedEngines | undefined {
    return this.#engines
  }

  get isUp(): boolean {
    return this.#process !== undefined
  }

  after(ms: number, work: () => void): void {
    this.#process?.after(ms, work)
  }

  start(): void {
    if (this.#process !== undefined) return
    const { scheduler, random, network, driftMax, index, origin, bucket, wall } = this.#options
    const { wallOffsetMsMax = wallOffsetMsUsual } = this.#options
    this.#incarnation++
    const process = new SimulatedProcess({
      name: this.name,
      pid: this.#incarnation,
      scheduler,
      seed: random.below(2 ** 32),
      rate: 1 + random.between(-driftMax, driftMax),
      wall,
      wallOffsetMs: random.chance(0.5) ? 0 : random.between(-wallOffsetMsMax, wallOffsetMsMax),
    })
    this.#process = process
    attach(process, { network, replica: index })
    if (origin !== undefined) attachOrigin(process, { server: origin.server, replica: index })
    if (bucket !== undefined) {
      this.#engines = new SimulatedEngines()
      attachArchive(process, { replica: index, bucket, engines: this.#engines })
    }
    this.#options.trace(this.name, () => `starts, process ${process.pid}`)
    runAs(process, () => this.#open(process))
  }

  /** SIGKILL. */
  crash(why: string): void {
    const process = this.#process
    if (process === undefined) return
    process.end()
    this.#process = undefined
    this.#engine = undefined
    this.#parts = undefined
    this.#policyFile = undefined
    this.#engines = undefined
    this.#options.policies.ended(this.index)
    this.#options.network.replicaEnded(this.index)
    this.#options.origin?.server.replicaEnded(this.index)
    this.#options.trace(this.name, () => `ends: ${why}`)
    this.#options.onEnd(this, why, process.startedAt)
  }

  /** Looks at the policy file after this long, as all replicas do each second. */
  reloadPolicy(ms: number): void {
    const file = this.#policyFile
    this.#process?.after(ms, () => file?.reload())
  }

  /** SIGTERM: the engine closes, then the process ends. */
  stopGracefully(): void {
    const process = this.#process
    const engine = this.#engine
    if (process === undefined || engine === undefined) return
    this.#options.trace(this.name, () => 'is asked to end')
    process.after(0, () => {
      const end = () => {
        // A process cannot end inside its own continuation.
        process.setImmediate(() => {
          if (this.#process === process) this.crash('closed')
        })
      }
      engine.close().then(end, end)
    })
  }

  /** Starts again after a while, as under a supervisor. */
  restartSoon(): void {
    const { scheduler, random } = this.#options
    const at = scheduler.now + random.between(restartMs.least, restartMs.most)
    scheduler.at(at, () => this.start())
  }

  #open(process: SimulatedProcess): void {
    const { options, onBug, network, origin } = this.#options
    const registry = new Registry()
    const engine = new Engine(this.#rotated(options), this.#log(), registry)
    this.#engine = engine
    const onFatal = (error: unknown) => {
      // The server ends its process then.
      const { scheduler } = network
      scheduler.at(scheduler.now, () => {
        if (this.#process === process) this.crash(`fatal: ${message(error)}`)
      })
    }
    const policy = this.#options.policies.open(this.index)
    this.#policyFile = policy
    engine.open(onFatal, { clusters: origin?.clusters, policy }).then(
      () => {
        const storage = engine.storage as CachedStorage
        const { writes } = engine.forClients
        const events = new EventRegistry({
          storage,
          writes,
          group: eventsGroup(GROUP),
          servedVersions: [coreGroup.apiVersion],
          eventBytesMax: options.maxEventBytes,
        })
        const lister = new EventLister(storage, events.names)
        const waitingWrites = waitingWritesOf(registry)
        const { mirrors } = engine
        const stats = () => storage.stats()
        this.#parts = { storage, writes, registry: events, lister, stats, waitingWrites, mirrors }
      },
      (error) => onBug(`the engine did not open: ${message(error)}`),
    )
  }

  /** Each replica prefers another member. */
  #rotated(options: Options): Options {
    const { etcdServers } = options
    const first = this.index % etcdServers.length
    const rotated = [...etcdServers.slice(first), ...etcdServers.slice(0, first)]
    return { ...options, etcdServers: rotated }
  }

  #log(): Log {
    const { trace } = this.#options
    const write = (level: string) => (msg: string, fields?: Readonly<Record<string, unknown>>) =>
      trace(this.name, () => `log ${level}: ${msg}${format(fields)}`)
    const log: Log = {
      info: write('info'),
      warn: write('warn'),
      error: write('error'),
      v: (_level, msg, fields) => write('verbose')(msg, fields),
      enabled: () => false,
      child: () => log,
    }
    return log
  }
}

/** The engine shows its queue only as metrics: they are read without their registry, which is asynchronous. */
function waitingWritesOf(registry: Registry): NonNullable<ReplicaParts['waitingWrites']> {
  const read = (name: string): number => {
    const gauge = registry.getSingleMetric(name) as unknown as { collect(): void }
    let found = 0
    gauge.collect.call({ set: (value: number) => (found = value) } as never)
    return found
  }
  return () => ({
    operations: read('tidings_waiting_writes'),
    bytes: read('tidings_waiting_writes_bytes'),
  })
}

function format(fields: Readonly<Record<string, unknown>> | undefined): string {
  if (fields === undefined) return ''
  return Object.entries(fields)
    .map(([name, value]) => ` ${name}=${value instanceof Error ? message(value) : String(value)}`)
    .join('')
}

export function message(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
}
