/** A world of a few lines, in which tests decide what etcd commits and what clients are told. */

import type { EventKey, StoredEvent } from '../../../src/storage/storage.ts'
import type { Change, Cluster } from '../../simulation/etcd/contract.ts'
import { Scheduler } from '../../simulation/kernel/scheduler.ts'
import { Random } from '../../support/random.ts'
import { Checks } from '../../worlds/checker/checks.ts'
import { immediately, type Journal } from '../../worlds/checker/journal.ts'
import { stateVersion, versionOf } from '../../worlds/checker/stored-text.ts'
import type { PolicyStep } from '../../worlds/retention/policy-plan.ts'
import { PolicyReign } from '../../worlds/retention/policy-reign.ts'
import { storedBody } from '../../worlds/workload/bodies.ts'
import type { ClientWorld, ReplicaParts, WorldReplica } from '../../worlds/workload/contract.ts'
import { keyOf } from '../../worlds/workload/key-space.ts'

const root = '/tidings/events/local/'
const uniform = [{ at: 0, policy: { rules: [], budgets: [], lifetime: 60_000 } }]

export interface FakeStats {
  version: number
  initializations: number
  historyChanges: number
  historyBytes: number
  statesKept: number
  watchersWaiting: number
}

export class FakeWorld implements ClientWorld {
  readonly violations: {
    readonly guarantee: string
    readonly what: string
    readonly evidence: readonly string[]
  }[] = []
  readonly limits = {
    eventTtlMs: 60_000,
    compactionIntervalMs: 60_000,
    driftMax: 0,
    historyChangesMax: 100,
    stallMsMax: 1_000,
  }
  readonly journal: Journal
  readonly policies: PolicyReign
  readonly replicas: WorldReplica[] = []
  readonly stats: FakeStats = {
    version: stateVersion(1),
    initializations: 1,
    historyChanges: 0,
    historyBytes: 0,
    statesKept: 0,
    watchersWaiting: 0,
  }
  readonly waiting = { operations: 0, bytes: 0 }
  readonly cluster: Cluster
  readonly checks: Checks
  readonly etcd: Map<string, Change & { readonly modRevision: number }> = new Map()
  calmSince: number | undefined
  revision = 1
  compactedRevision = 0
  readonly #scheduler = new Scheduler()
  readonly #onEnd: ((replica: number, incarnation: number) => void)[] = []

  constructor(policies: readonly PolicyStep[] = uniform, journal: Journal = immediately) {
    this.journal = journal
    this.policies = new PolicyReign(policies, () => this.now())
    this.checks = new Checks(this)
    const world = this
    this.cluster = {
      state: () => this.etcd,
      get revision() {
        return world.revision
      },
      get compactedRevision() {
        return world.compactedRevision
      },
    } as unknown as Cluster
    for (const index of [0, 1]) this.replicas.push(this.#replica(index))
    this.checks.start()
  }

  #replica(index: number): WorldReplica & { incarnation: number } {
    const storage = {
      // Resolves at once: time must not pass before the reply.
      list: () => ({
        // biome-ignore lint/suspicious/noThenProperty: it stands for a promise.
        then: (onPage: (page: unknown) => void) =>
          onPage({ items: [], version: this.stats.version, more: false, remaining: 0 }),
      }),
    }
    const stats = () => this.stats
    const waitingWrites = () => this.waiting
    const parts = { storage, stats, waitingWrites } as unknown as ReplicaParts
    return { index, incarnation: 1, parts, after: (ms, work) => this.after(ms, work) }
  }

  now(): number {
    return this.#scheduler.now
  }

  after(ms: number, work: () => void): void {
    this.#scheduler.at(this.now() + ms, work)
  }

  /** Lets time pass. */
  pass(ms: number): void {
    const until = this.now() + ms
    for (;;) {
      const work = this.#scheduler.next(until)
      if (work === undefined) return
      work()
    }
  }

  random(): Random {
    return new Random(1)
  }

  onReplicaEnd(run: (replica: number, incarnation: number) => void): void {
    this.#onEnd.push(run)
  }

  endReplica(index: number): void {
    const replica = this.replicas[index] as { incarnation: number }
    for (const run of this.#onEnd) run(index, replica.incarnation)
    replica.incarnation++
  }

  violation(guarantee: string, what: string, evidence: readonly string[] = []): void {
    this.violations.push({ guarantee, what, evidence })
  }

  trace(): void {}
  digest(): void {}

  /** The names of all violations so far. */
  get broken(): readonly string[] {
    return this.violations.map(({ guarantee }) => guarantee)
  }

  /** Commits puts (path and operation) and deletes (path) as one revision. */
  commit(...changes: readonly (readonly [string, number] | readonly [string])[]): number {
    const revision = ++this.revision
    this.commitRaw(
      revision,
      changes.map(([path, operation], index) =>
        operation === undefined
          ? this.change('delete', path, Buffer.alloc(0))
          : this.change('put', path, value(path, operation, index)),
      ),
    )
    return revision
  }

  change(type: 'put' | 'delete', path: string, bytes: Buffer): Change {
    const key = Buffer.from(`${root}${path}`)
    return { type, key, value: bytes, version: 1, createRevision: 1, lease: 0n }
  }

  commitRaw(revision: number, changes: readonly Change[]): void {
    this.revision = revision
    for (const change of changes) {
      const key = change.key.toString()
      if (change.type === 'delete') this.etcd.delete(key)
      else this.etcd.set(key, { ...change, modRevision: revision })
    }
    this.checks.onCommit({ revision, at: this.now(), changes })
  }

  /** Goes back to a state that was copied from `etcd` before. */
  restore(
    state: ReadonlyMap<string, Change & { readonly modRevision: number }>,
    kept: number,
  ): void {
    this.etcd.clear()
    for (const [key, change] of state) this.etcd.set(key, change)
    this.revision = kept
    this.checks.onRestore({ kept, revision: kept, at: this.now() })
    this.pass(0)
  }

  /** A create that is committed, and acknowledged. */
  created(path: string): { readonly id: number; readonly version: number } {
    const operation = this.checks.writes.begin(this.checks.view(0), 'create', path)
    const version = versionOf(this.commit([path, operation.id]), 0)
    this.checks.writes.acknowledged(operation, stored(path, operation.id, version))
    return { id: operation.id, version }
  }

  /** A delete that is committed, and acknowledged. */
  deleted(path: string, last: { readonly id: number; readonly version: number }): number {
    const operation = this.checks.writes.begin(this.checks.view(0), 'delete', path)
    operation.decidesOn(stored(path, last.id, last.version))
    const version = versionOf(this.commit([path]), 0)
    this.checks.writes.acknowledged(operation, {
      version,
      body: storedBody(path, last.id, facetOf(last.id)),
    })
    return version
  }
}

export function facetOf(operation: number): number {
  return operation % 10
}

export function value(path: string, operation: number, index: number): Buffer {
  const body = storedBody(path, operation, facetOf(operation))
  return Buffer.concat([Buffer.from(`{"w":5,"i":${index}}\n`), body])
}

export function stored(path: string, operation: number, version: number): StoredEvent {
  const key: EventKey = keyOf(path)
  const body = storedBody(path, operation, facetOf(operation))
  return { key, body, version, writtenAtMs: 5, versionOffset: 13 } as unknown as StoredEvent
}
