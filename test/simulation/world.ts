/**
 * The simulated world: members of an etcd cluster, replicas, the network between them, clients, and
 * the faults that happen to them; all from one seed.
 */
import { crc32 } from 'node:zlib'
import { Random } from '../support/random.ts'
import { Checks } from '../worlds/checker/checks.ts'
import { immediately, type Journal } from '../worlds/checker/journal.ts'
import { PolicyReign } from '../worlds/retention/policy-reign.ts'
import type { ClientWorld, WorldLimits } from '../worlds/workload/contract.ts'
import { startWorkload, type Workload } from '../worlds/workload/workload.ts'
import { createCluster } from './etcd/cluster.ts'
import type { Cluster, ClusterObserver, MemberWorld, Snapshot } from './etcd/contract.ts'
import { healWorld } from './faults/heal.ts'
import type { FaultTarget } from './faults/kinds.ts'
import { beginFault, type PlannedFault } from './faults/plan.ts'
import type { Bucket } from './history/bucket.ts'
import { HistorySide } from './history/history-side.ts'
import { runWorld } from './kernel/current.ts'
import { releaseSignals } from './kernel/interception.ts'
import { Scheduler } from './kernel/scheduler.ts'
import { MirrorSide } from './mirror/mirror-side.ts'
import type { OriginServer } from './mirror/origin-server.ts'
import { Network } from './network/network.ts'
import { Peers } from './network/peers.ts'
import { Replica } from './replica.ts'
import { optionsOf, setBounds } from './replica-options.ts'
import type { Setting } from './setting.ts'
import { TraceHash } from './trace-hash.ts'

/** How long after a storm a replica may still find that etcd was restored, and end for that. */
const noticeMs = 30_000

/** How wrong wall clocks are in a world that needs them. */
const clockErrorMsMax = 1_000

/** The invariants of a world. */
interface WorldChecks extends ClusterObserver {
  /** How long the world has to be calm before the final checks. */
  readonly calmNeededMs: number
  atEnd(): void
  /** The replicas have had time to answer the final reads. */
  hasEnded(): void
}

/** Replicas look at their files this often. */
const pollMs = 1_000

/** More entries than this at one point of time are a loop. */
const entriesAtOnceMax = 1_000_000

export interface Violation {
  readonly guarantee: string
  readonly what: string
  readonly evidence: readonly string[]
  readonly atMs: number
}

/** A line of the trace. */
export interface TraceLine {
  readonly atMs: number
  readonly who: string
  readonly text: string
}

export interface WorldOptions {
  readonly setting: Setting
  readonly faults: readonly PlannedFault[]
  /** Which operations of the workload run; default all. */
  readonly keeps?: ((operation: number) => boolean) | undefined
  readonly onTrace?: ((line: TraceLine) => void) | undefined
  /** Traces messages too; they are most of a trace. */
  readonly tracesMessages?: boolean | undefined
}

export interface RunResult {
  readonly hash: string
  readonly simulatedMs: number
  readonly operations: number
  /** The last number of an operation, for leaving out some. */
  readonly numbered: number
  readonly faults: ReadonlyMap<string, number>
  readonly violation: Violation | undefined
  readonly outcomes: ReadonlyMap<string, number>
}

/** How wrong the wall clocks of replicas are; undefined: by hours. */
function clockErrorMsIn({ mirror, history }: Setting): number | undefined {
  if (mirror?.needsClocks) return clockErrorMsMax
  return history?.areClocksExact ? 0 : undefined
}

export class World implements ClientWorld, FaultTarget {
  readonly replicas: readonly Replica[]
  readonly cluster: Cluster
  readonly network: Network
  readonly peers: Peers
  readonly limits: WorldLimits
  readonly policies: PolicyReign
  readonly setting: Setting
  readonly journal: Journal = immediately
  readonly #options: WorldOptions
  readonly #scheduler = new Scheduler()
  readonly #random: Random
  readonly #hash = new TraceHash()
  readonly #checks: WorldChecks
  readonly #mirror: MirrorSide | undefined
  readonly #history: HistorySide | undefined
  readonly #workload: Workload
  readonly #onReplicaEnd: ((replica: number, incarnation: number) => void)[] = []
  readonly #faultCounts = new Map<string, number>()
  #calmSince: number | undefined = 0
  #snapshot: Snapshot | undefined
  #restoredAt: number | undefined
  #storms = 0
  /** Watches of the past that were opened in storms. */
  #pastWatches = 0
  #violation: Violation | undefined

  constructor(options: WorldOptions) {
    const { setting } = options
    this.#options = options
    this.setting = setting
    this.limits = setting.limits
    this.policies = new PolicyReign(setting.policies, () => this.now())
    this.#random = new Random(setting.seed)
    this.peers = new Peers(setting.members, this.#random.fork())
    setBounds(setting)
    this.#mirror = this.#mirrorSide()
    const checks = new Checks(this)
    this.#history = this.#historySide()
    this.#checks = this.#mirror?.checks ?? this.#history?.checks ?? checks
    this.cluster = createCluster({
      size: setting.members,
      world: () => this.#memberWorld(),
      network: this.peers,
      observer: this.#checks,
      quotaBytes: setting.quotaBytes,
      watchFragmentBytes: setting.watchFragmentBytes,
      watchLacksPrevious: () => this.#nextWatchLacksPrevious(),
      rangeStreamShare: setting.rangeStreamShare,
    })
    this.network = new Network({
      scheduler: this.#scheduler,
      random: this.#random.fork(),
      members: () => this.cluster.members,
      replicas: setting.replicas,
      onMessage: ({ replica, member, toMember, what, bytes }) => {
        const arrow = toMember ? '->' : '<-'
        this.#hash.add(this.now())
        if (bytes !== undefined) this.#hash.add(crc32(bytes))
        if (options.tracesMessages !== true) return
        this.trace(
          'network',
          () => `replica-${replica} ${arrow} etcd-${member} ${what} ${bytes?.length ?? 0} bytes`,
        )
      },
    })
    const engineOptions = optionsOf(setting)
    this.replicas = Array.from(
      { length: setting.replicas },
      (_, index) =>
        new Replica({
          index,
          scheduler: this.#scheduler,
          network: this.network,
          random: this.#random.fork(),
          options: engineOptions,
          driftMax: setting.limits.driftMax,
          wallOffsetMsMax: clockErrorMsIn(setting),
          wall: setting.history?.wall,
          bucket: this.#history?.bucket,
          origin: this.#mirror,
          policies: this.policies,
          trace: (who, text) => this.trace(who, text),
          onEnd: (replica, why, startedAt) => this.#replicaEnded(replica, why, startedAt),
          onBug: (what) => this.violation('no internal errors', what),
        }),
    )
    const { keeps } = options
    const { operationsPerSecond, mix } = setting
    this.#workload =
      this.#mirror?.startWriters(keeps) ??
      this.#history?.startWriters(keeps) ??
      startWorkload(this, checks, { operationsPerSecond, mix, keeps })
  }

  #mirrorSide(): MirrorSide | undefined {
    const { mirror, replicas } = this.setting
    if (mirror === undefined) return undefined
    const random = this.#random.fork()
    return new MirrorSide({
      world: this,
      setting: mirror,
      replicas,
      scheduler: this.#scheduler,
      random,
    })
  }

  #historySide(): HistorySide | undefined {
    const { history: setting, operationsPerSecond } = this.setting
    if (setting === undefined) return undefined
    const random = this.#random.fork()
    const scheduler = this.#scheduler
    return new HistorySide({ world: this, setting, operationsPerSecond, scheduler, random })
  }

  get bucket(): Bucket | undefined {
    return this.#history?.bucket
  }

  noteFull(): void {
    this.#history?.checks.isFull()
  }

  get origin(): OriginServer | undefined {
    return this.#mirror?.server
  }

  get electedReplica(): number | undefined {
    return this.#mirror?.checks.elected ?? this.#history?.checks.elected
  }

  get originBackup(): number | undefined {
    return this.#mirror?.backup
  }

  get mayRestore(): boolean {
    return this.#mirror?.mayRestoreEtcd !== false
  }

  restoreOrigin(version: number): boolean {
    return this.#mirror?.restore(version) === true
  }

  get snapshot(): Snapshot | undefined {
    return this.#snapshot
  }

  get calmSince(): number | undefined {
    return this.#calmSince
  }

  now(): number {
    return this.#scheduler.now
  }

  after(ms: number, work: () => void): void {
    this.#scheduler.at(this.#scheduler.now + ms, work)
  }

  random(): Random {
    return this.#random.fork()
  }

  onReplicaEnd(run: (replica: number, incarnation: number) => void): void {
    this.#onReplicaEnd.push(run)
  }

  violation(guarantee: string, what: string, evidence: readonly string[] = []): void {
    this.#violation ??= { guarantee, what, evidence, atMs: this.now() }
  }

  trace(who: string, text: () => string): void {
    this.#options.onTrace?.({ atMs: this.now(), who, text: text() })
  }

  digest(value: number): void {
    this.#hash.add(value)
  }

  /** Ends a member's process, and with it its connections. */
  crashMember(member: number): void {
    this.cluster.crash(member)
    this.network.memberEnded(member)
  }

  endAllMembers(): void {
    this.#restoredAt = this.now()
    for (const member of this.cluster.members.keys()) this.network.memberEnded(member)
  }

  /** Runs everything: the storms with calm between them, then a last calm and the final checks. */
  run(): RunResult {
    const { setting } = this
    const onRejection = (reason: unknown) =>
      this.violation(
        'no internal errors',
        `a promise was rejected and not handled: ${String(reason)}`,
      )
    process.on('unhandledRejection', onRejection)
    process.setUncaughtExceptionCaptureCallback((error) =>
      this.violation('no internal errors', `uncaught: ${error.stack ?? error.message}`),
    )
    try {
      runWorld(() => {
        for (const replica of this.replicas) replica.start()
        this.#schedulePlan()
        this.#runUntil(setting.durationMs)
        this.#workload.stop()
        this.#heal()
        this.#runUntil(this.now() + this.#checks.calmNeededMs)
        if (this.#violation === undefined) this.#checks.atEnd()
        // The final checks read from the replicas.
        this.#runUntil(this.now() + setting.finalMs)
        if (this.#violation === undefined) this.#checks.hasEnded()
      })
    } catch (error) {
      this.violation(
        'no internal errors',
        `uncaught: ${error instanceof Error ? error.stack : error}`,
      )
    } finally {
      process.off('unhandledRejection', onRejection)
      process.setUncaughtExceptionCaptureCallback(null)
      releaseSignals()
    }
    return {
      hash: this.#hash.digest(),
      simulatedMs: this.now(),
      operations: this.#workload.requests,
      numbered: this.#workload.operations,
      outcomes: this.#workload.outcomes,
      faults: this.#faultCounts,
      violation: this.#violation,
    }
  }

  #runUntil(until: number): void {
    let at = -1
    let entries = 0
    while (this.#violation === undefined) {
      const work = this.#scheduler.next(until)
      if (work === undefined) return
      work()
      if (this.now() > at) {
        at = this.now()
        entries = 0
      } else if (++entries > entriesAtOnceMax) {
        this.violation('time goes on', `${entries} events followed each other without any delay`)
      }
    }
  }

  #schedulePlan(): void {
    for (const { begin, end } of this.setting.storms) {
      this.#scheduler.at(begin, () => {
        this.#calmSince = undefined
        this.#storms++
        this.#snapshot = this.cluster.snapshot()
        this.#mirror?.beginStorm()
        this.trace('world', () => 'a storm begins')
      })
      this.#scheduler.at(end, () => this.#heal())
    }
    for (const [index, { at }] of this.setting.policies.entries()) {
      if (index > 0) this.#scheduler.at(at, () => this.#replacePolicy(index))
    }
    for (const fault of this.#options.faults) this.#scheduler.at(fault.at, () => this.#begin(fault))
  }

  #replacePolicy(index: number): void {
    this.policies.wrote(index)
    this.trace('world', () => `policy: ${JSON.stringify(this.policies.newest)}`)
    const random = this.#random.fork()
    for (const replica of this.replicas) replica.reloadPolicy(random.between(0, pollMs))
  }

  #begin(fault: PlannedFault): void {
    const begun = beginFault(this, fault)
    if (begun === undefined) return
    this.#faultCounts.set(fault.kind, (this.#faultCounts.get(fault.kind) ?? 0) + 1)
    this.trace('fault', () => `${fault.kind}: ${begun.what}`)
    const { end } = begun
    if (end === undefined) return
    const storm = this.#storms
    this.after(fault.ms, () => {
      // The storm is over, and with it every fault: see `#heal`.
      if (this.#calmSince !== undefined || this.#storms !== storm) return
      this.trace('fault', () => `${fault.kind} ends: ${begun.what}`)
      end()
    })
  }

  #heal(): void {
    healWorld(this)
    this.#calmSince = this.now()
    this.trace('world', () => 'the storm is over')
  }

  #replicaEnded(replica: Replica, why: string, startedAt: number): void {
    for (const run of this.#onReplicaEnd) run(replica.index, replica.incarnation)
    const calmMs = this.now() - (this.#calmSince ?? this.now())
    const isFatal = why.startsWith('fatal')
    if (isFatal && (this.#restoredAt ?? -1) < startedAt) {
      this.violation('replicas stay up', `${replica.name} ended, but etcd was not restored: ${why}`)
    } else if (calmMs > noticeMs) {
      this.violation('replicas stay up', `${replica.name} ended while the world was calm: ${why}`)
    }
    replica.restartSoon()
  }

  /** Members are busy in storms only. */
  #nextWatchLacksPrevious(): boolean {
    const every = this.setting.watchLacksPreviousEvery
    if (every === undefined || this.#calmSince !== undefined) return false
    return ++this.#pastWatches % every === 0
  }

  #memberWorld(): MemberWorld {
    const random = this.#random.fork()
    const scheduler = this.#scheduler
    return {
      now: () => scheduler.now,
      random: () => random.next(),
      after: (ms, run) => {
        const entry = scheduler.at(scheduler.now + ms, run)
        return () => scheduler.cancel(entry)
      },
    }
  }
}
