/** What clients and checks get from a world, simulated or real. */
import type { CachedStorage } from '../../../src/cache/cached-storage.ts'
import type { MirrorManager } from '../../../src/mirror/mirror-manager.ts'
import type { EventLister } from '../../../src/registry/read/listing.ts'
import type { EventRegistry } from '../../../src/registry/registry.ts'
import type { EventWrites, ReadStorage } from '../../../src/storage/storage.ts'
import type { Random } from '../../support/random.ts'
import type { EtcdState } from '../checker/commit.ts'
import type { Journal } from '../checker/journal.ts'
import type { PolicyReign } from '../retention/policy-reign.ts'

/** The production parts of one replica. */
export interface ReplicaParts {
  readonly storage: ReadStorage
  readonly writes: EventWrites
  readonly registry: EventRegistry
  readonly lister: EventLister
  /** Undefined without a memory: then every read is served by etcd. */
  readonly stats?: (() => ReturnType<CachedStorage['stats']>) | undefined
  /** Writes queued for etcd, where that is known. */
  readonly waitingWrites?:
    | (() => { readonly operations: number; readonly bytes: number })
    | undefined
  /** Undefined in a world without mirrored clusters. */
  readonly mirrors?: MirrorManager | undefined
}

export interface WorldReplica {
  readonly index: number
  /** Counts its processes: rises with each restart. */
  readonly incarnation: number
  /** Undefined while it is down. Each incarnation has its own parts. */
  readonly parts: ReplicaParts | undefined
  /**
   * Runs work as this replica's process after `ms` of true time, as a request from the network
   * does: late if the process is paused, never if it ends before. All calls of production code,
   * `using` signals included, must be made inside such work. Promise continuations of those calls
   * run as this process too: they may record results and schedule, but must not call another
   * replica directly.
   */
  after(ms: number, work: () => void): void
}

export interface WorldLimits {
  readonly eventTtlMs: number
  readonly compactionIntervalMs: number
  /** Largest share by which a monotonic clock of a replica runs fast or slow. */
  readonly driftMax: number
  /** Bounds of each replica's ring of changes. */
  readonly historyChangesMax: number
  /** The longest that a watcher stops reading. */
  readonly stallMsMax: number
}

export interface ClientWorld {
  readonly replicas: readonly WorldReplica[]
  readonly cluster: { readonly compactedRevision: number; state(): EtcdState }
  /** When the checks see what clients were told. */
  readonly journal: Journal
  readonly limits: WorldLimits
  /** Which retention policies are in force. */
  readonly policies: PolicyReign
  /** True time in milliseconds since the world began. */
  now(): number
  /** Runs client or checker code, which belongs to no process, after `ms` of true time. */
  after(ms: number, work: () => void): void
  /** A generator of its own for each caller. */
  random(): Random
  /**
   * Since when there has been no fault of any kind (crash, pause, partition, delay, clock jump,
   * election, restore, full etcd), and all members and replicas are up. Undefined during a fault.
   */
  readonly calmSince: number | undefined
  /** Called when a process of a replica ends, with its incarnation: its open operations are lost. */
  onReplicaEnd(run: (replica: number, incarnation: number) => void): void
  /** Reports the violation of a guarantee: the run ends. `evidence` is printed line by line. */
  violation(guarantee: string, what: string, evidence?: readonly string[]): void
  /** Adds a line to the trace; `text` is only called when a trace is wanted. */
  trace(who: string, text: () => string): void
  /** Mixes a number into the hash of the run: outcomes, versions. */
  digest(value: number): void
}
