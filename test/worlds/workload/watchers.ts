/**
 * Clients that watch: from a list or from where they were, at any replica; that read at once, late,
 * or not at all for a while; that ask for their progress, and that leave.
 */
import { aLane } from '../../../src/lib/run-queue.fixture.ts'
import { StorageError } from '../../../src/storage/errors.ts'
import type { Version } from '../../../src/storage/resource-version.ts'
import type { PulledWatch, WatchBatch } from '../../../src/storage/storage.ts'
import type { Random } from '../../support/random.ts'
import { failureOf } from '../checker/failures.ts'
import type { Holder, Operation } from '../checker/operations.ts'
import { firstRevisionFrom, revisionIn } from '../checker/stored-text.ts'
import type { WatchCheck } from '../checker/watches.ts'
import type { At, Clients } from './clients.ts'
import { namespaces, pathOf, quietNamespace } from './key-space.ts'

/** How long a client without a connection waits before the next attempt. */
const retryMs = { least: 5, most: 500 }
const hurryMs = 300

interface Watching {
  readonly check: WatchCheck
  readonly watch: PulledWatch
  readonly end: AbortController
}

export class Watcher implements Holder {
  readonly #clients: Clients
  readonly #random: Random
  readonly #namespace: string | undefined
  /** Reads at once in the wakeup, as the HTTP server does; others read a moment later. */
  readonly #isEager: boolean
  readonly #isFirst: boolean
  /** Where it resumes; undefined: with a list. */
  #from: number | undefined
  #fromEpoch = 0
  #replica = 0
  #current: Watching | undefined
  /** Counts watches: work that was scheduled for an earlier one is void. */
  #generation = 0
  #isHurried = false

  constructor(clients: Clients, random: Random, number: number) {
    this.#clients = clients
    this.#random = random
    this.#isFirst = number === 0
    this.#isEager = number % 2 === 0
    const scopes = [undefined, namespaces[0], undefined, quietNamespace, namespaces[1], undefined]
    this.#namespace = scopes[number % scopes.length]
  }

  get epoch(): number {
    return this.#from === undefined ? this.#clients.checks.truth.epoch : this.#fromEpoch
  }

  get floor(): number {
    const from = this.#from
    return from === undefined ? this.#clients.checks.truth.newest : firstRevisionFrom(from) - 1
  }

  /** The version that it has reached. */
  get version(): number {
    return this.#current?.check.version ?? this.#from ?? 0
  }

  /** Makes it neither stall nor leave any more, and ask for its progress all the time. */
  hurry(): void {
    this.#isHurried = true
    const current = this.#current
    if (current !== undefined) {
      this.#goOn(current)
      this.#requestProgress(current)
    }
    this.#clients.world.after(hurryMs, () => this.hurry())
  }

  start(): void {
    this.#clients.checks.hold(this)
    this.#clients.world.onReplicaEnd((replica) => {
      if (replica === this.#replica && this.#current !== undefined) this.#broken()
    })
    this.#connectLater()
  }

  #connectLater(): void {
    const { world } = this.#clients
    const ms = this.#random.between(retryMs.least, retryMs.most)
    const generation = this.#generation
    world.after(ms, () => {
      // Unless it has connected otherwise meanwhile.
      if (generation === this.#generation && this.#current === undefined) this.#connect()
    })
  }

  #connect(): void {
    const random = this.#random
    this.#forgetLost()
    this.#replica = this.#clients.anyReplica(random)
    const generation = ++this.#generation
    const { world } = this.#clients
    if (world.replicas[this.#replica]?.parts === undefined) {
      this.#connectLater()
      return
    }
    this.#clients.send(this.#replica, random.between(0, 5), (at) => {
      if (generation === this.#generation) this.#begin(at)
    })
    // If the process ends before the request arrives, it never runs.
    world.after(10_000, () => {
      if (generation === this.#generation && this.#current === undefined) this.#connect()
    })
  }

  /** After a restore, a client that knows versions of the lost history has to begin again. */
  #forgetLost(): void {
    const { current } = this.#clients.checks.truth
    if (this.#from === undefined || this.#fromEpoch === current.epoch) return
    if (this.#fromEpoch === current.epoch - 1 && revisionIn(this.#from) <= current.kept) {
      this.#fromEpoch = current.epoch
    } else this.#from = undefined
  }

  #begin(at: At): void {
    this.#forgetLost()
    if (this.#from !== undefined) this.#watch(at, this.#from, this.#fromEpoch)
    else this.#list(at)
  }

  /** A list to begin with, of which only the version is used; other clients check its content. */
  #list(at: At): void {
    const { checks } = this.#clients
    const { view, parts } = at
    const generation = this.#generation
    const isAny = this.#random.chance(0.5)
    if (isAny) checks.calm.observe(view, parts)
    const operation = checks.reads.begin(view, {
      kind: 'list',
      notOlderThan: isAny ? 0 : undefined,
    })
    const { signal } = new AbortController()
    const notOlderThan = isAny ? (0 as Version) : undefined
    parts.storage
      .list(
        { cluster: 'local', namespace: this.#namespace },
        { lane: aLane(), limit: 5, notOlderThan, signal },
      )
      .then(
        ({ items, version, more, remaining }) => {
          if (!operation.isOpen) return
          const page = { after: undefined, limit: 5, version, items, isCut: more, remaining }
          checks.lists.sawPage(operation, { namespace: this.#namespace }, page)
          this.#clients.settled(operation, 'list to watch', undefined, version)
          if (generation === this.#generation) {
            this.#watch(at, version, operation.seenEpoch ?? checks.truth.epoch)
          }
        },
        (error: unknown) => this.#listFailed(operation, error, generation),
      )
  }

  #listFailed(operation: Operation, error: unknown, generation: number): void {
    if (!operation.isOpen) return
    const failure = failureOf(error)
    this.#clients.checks.reads.failed(operation, failure, undefined)
    this.#clients.settled(operation, 'list to watch', failure)
    if (generation === this.#generation) this.#connectLater()
  }

  #watch({ view, parts }: At, from: number, epoch: number): void {
    const { checks } = this.#clients
    const end = new AbortController()
    const namespace = this.#namespace
    const stats = parts.stats?.()
    const initializations = stats?.initializations ?? 0
    const memoryRevision =
      stats === undefined ? Number.POSITIVE_INFINITY : revisionIn(stats.version)
    const options = { namespace, from, epoch, initializations, memoryRevision }
    const check = checks.beginWatch(view, options)
    const watch = parts.storage.watch(
      { cluster: 'local', namespace },
      { from: from as Version, signal: end.signal },
    )
    this.#from = from
    this.#fromEpoch = epoch
    const current = { check, watch, end }
    this.#current = current
    this.#clients.count('watch', 'begun')
    this.#pump(current)
    this.#planEnd(current)
  }

  /** Takes batches until there is none, or until the client stalls. */
  #pump(current: Watching): void {
    if (this.#current !== current) return
    const { check, watch } = current
    check.isPulled = true
    try {
      for (;;) {
        const batch = watch.take(() => this.#woken(current))
        if (batch === undefined) break
        check.saw(batch)
        this.#noteBatch(check, batch)
        if (this.#stalls(current)) return
        if (this.#current !== current) return
      }
    } catch (error) {
      this.#failed(current, error)
      return
    }
    if (!watch.isOver) return
    check.ended()
    this.#leave()
  }

  #woken(current: Watching): void {
    if (this.#current !== current) return
    if (this.#isEager) this.#pump(current)
    else current.check.view.replica.after(this.#random.between(0, 3), () => this.#pump(current))
  }

  #noteBatch(check: WatchCheck, { items, version }: WatchBatch): void {
    this.#clients.count('watch', items.length === 0 ? 'progress' : 'batch')
    this.#clients.world.digest(version)
    if (this.#isFirst) this.#learn(items)
    // Some clients resume after a change in the middle of a batch, and get the rest again.
    const middle = items[items.length >> 1]
    const isInside = middle !== undefined && this.#random.chance(0.2)
    this.#from = isInside ? middle.stored.version : check.version
    this.#fromEpoch = check.epoch
  }

  /** One watcher of all events is enough to know what became of them. */
  #learn(items: WatchBatch['items']): void {
    const { states } = this.#clients
    for (const { type, stored } of items) {
      if (type === 'put') states.saw(pathOf(stored.key), stored)
      else states.gone(pathOf(stored.key), stored.version)
    }
  }

  /** Returns whether the client stops reading for a while, or leaves. */
  #stalls(current: Watching): boolean {
    if (this.#isHurried) return false
    const random = this.#random
    const kind = random.next()
    const { check } = current
    if (kind < 0.004) {
      const { stallMsMax } = this.#clients.world.limits
      const ms = random.chance(0.6)
        ? random.between(0.007, 0.1) * stallMsMax
        : random.between(0.1, 1) * stallMsMax
      check.isPulled = false
      check.view.replica.after(ms, () => this.#goOn(current))
      this.#clients.count('watch', 'stalled')
      return true
    }
    if (kind < 0.01) {
      this.#leave()
      return true
    }
    if (kind < 0.03) this.#requestProgress(current)
    return false
  }

  /** Ends a stall. */
  #goOn(current: Watching): void {
    const { check } = current
    if (check.isPulled) return
    check.pulledSince = this.#clients.world.now()
    this.#pump(current)
  }

  #requestProgress({ check, watch }: Watching): void {
    check.progressWantedSince ??= this.#clients.world.now()
    watch.requestProgress()
  }

  /** Watches have a lifetime, and clients ask for their progress now and then. */
  #planEnd(current: Watching): void {
    const random = this.#random
    const { replica } = current.check.view
    replica.after(random.between(2_000, 180_000), () => {
      if (this.#current === current && !this.#isHurried) this.#leave()
    })
    const ask = (): void => {
      if (this.#current !== current) return
      this.#requestProgress(current)
      replica.after(random.between(3_000, 20_000), ask)
    }
    replica.after(random.between(0, 10_000), ask)
  }

  /** The client cancels, by its signal or by stopping the source. */
  #leave(): void {
    const current = this.#end()
    if (current === undefined) return
    if (this.#random.chance(0.5)) current.end.abort()
    current.watch.stop()
    this.#clients.count('watch', 'left')
    this.#connectLater()
  }

  #failed(current: Watching, error: unknown): void {
    const { checks } = this.#clients
    const failure = failureOf(error)
    const { check } = current
    const { parts } = check.view.replica
    const isCalm = checks.calm.recoveredSince !== undefined
    check.failed(failure, parts?.stats?.().initializations ?? 0, isCalm)
    this.#end()
    this.#clients.count('watch', failure.kind)
    if (failure.kind === 'compacted') this.#from = undefined
    if (!(error instanceof StorageError)) {
      checks.reporter.report('no internal errors', `a watch failed: ${String(error)}`, [
        check.describe(),
      ])
    }
    this.#connectLater()
  }

  /** The process of the replica has ended. */
  #broken(): void {
    this.#end()
    this.#clients.count('watch', 'broken')
    this.#connectLater()
  }

  #end(): Watching | undefined {
    const current = this.#current
    this.#current = undefined
    this.#generation++
    if (current !== undefined) this.#clients.checks.endWatch(current.check)
    return current
  }
}
