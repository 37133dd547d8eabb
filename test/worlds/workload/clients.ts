/** What all clients share: the world, the checks, the versions that they know, and the counters. */
import type { Random } from '../../support/random.ts'
import type { Checks } from '../checker/checks.ts'
import type { Failure } from '../checker/failures.ts'
import type { Operation, ReplicaView } from '../checker/operations.ts'
import { revisionIn } from '../checker/stored-text.ts'
import type { ClientWorld, ReplicaParts } from './contract.ts'
import { KeySpace } from './key-space.ts'
import { KnownStates } from './known-states.ts'

/** Versions that clients remember. */
const knownMax = 64

/** Where a request runs: in the process of one replica. */
export interface At {
  readonly view: ReplicaView
  readonly parts: ReplicaParts
}

export class Clients {
  readonly world: ClientWorld
  readonly checks: Checks
  readonly keys: KeySpace
  readonly states: KnownStates = new KnownStates()
  /** Keyed by kind and outcome. */
  readonly outcomes: Map<string, number> = new Map()
  #requests = 0
  /** Versions that some client has seen, of the current epoch; a ring. */
  readonly #known: number[] = []
  #knownEpoch = 0
  #knownAt = 0

  constructor(world: ClientWorld, checks: Checks, fixedNames?: number) {
    this.world = world
    this.checks = checks
    this.keys = new KeySpace(this.states, fixedNames)
  }

  get requests(): number {
    return this.#requests
  }

  /** Runs a request in a process; not at all if the replica is down when it arrives. */
  send(replica: number, ms: number, request: (at: At) => void): void {
    const target = this.world.replicas[replica]
    if (target === undefined) return
    if (target.parts === undefined) {
      this.count('connect', 'refused')
      return
    }
    this.#requests++
    target.after(ms, () => {
      const { parts } = target
      if (parts !== undefined) request({ view: this.checks.view(replica), parts })
    })
  }

  anyReplica(random: Random): number {
    return random.below(this.world.replicas.length)
  }

  count(kind: string, outcome: string): void {
    const name = `${kind} ${outcome}`
    this.outcomes.set(name, (this.outcomes.get(name) ?? 0) + 1)
  }

  /** An operation has ended; its result was checked. */
  settled(operation: Operation, name: string, failure: Failure | undefined, version = 0): void {
    const { checks, world } = this
    this.count(name, failure?.kind ?? 'ok')
    world.digest(version)
    world.trace(
      `client of replica-${operation.view.index}`,
      () => `${name} (${operation.describe()}): ${failure?.kind ?? `ok, version ${version}`}`,
    )
    checks.settled(operation, failure)
    if (version > 0) this.learn(version)
  }

  learn(version: number): void {
    this.#forgetLost()
    this.#known[this.#knownAt++ % knownMax] = version
  }

  /** A version that a client has seen; undefined when there is none. */
  known(random: Random): number | undefined {
    this.#forgetLost()
    return this.#known[random.below(Math.max(1, this.#known.length))]
  }

  /** After a restore of etcd, clients have to be restarted: see docs/how-to/back-up-and-restore.md. */
  #forgetLost(): void {
    const { current } = this.checks.truth
    if (current.epoch === this.#knownEpoch) return
    this.#knownEpoch = current.epoch
    this.states.clear()
    const kept = this.#known.filter((version) => revisionIn(version) <= current.kept)
    this.#known.splice(0, this.#known.length, ...kept)
    this.#knownAt = kept.length
  }
}
