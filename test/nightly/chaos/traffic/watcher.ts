import { pause } from '../../../../src/lib/abort.ts'
import { StorageError } from '../../../../src/storage/errors.ts'
import type { Version } from '../../../../src/storage/resource-version.ts'
import type { EventWatch, WatchBatch } from '../../../../src/storage/storage.ts'
import type { Violation } from '../model/history.ts'
import type { Random } from './random.ts'
import type { Replica } from './replica.ts'
import { cluster } from './storages.ts'
import type { DeliveredChanges, WatchLog, WatchSegment } from './watch-log.ts'

/** How likely it is to stop after a batch; between the changes of one, where that is possible. */
const stopAfterBatch = 0.01
const stopInsideBatch = 0.04
const progressIntervalMs = { least: 1_000, most: 4_000 }
const hurriedIntervalMs = 300
/** Longer than the longest fault; a replica may have to be restarted first. */
const resumePauseMs = 200
/** How likely it is to wait after a stop, and for how long at most: it then has to catch up. */
const absence = 0.1
const absenceMostMs = 3_000

/**
 * Follows all changes, at any replica, and moves often: it stops at any position, also in the
 * middle of a transaction, and resumes from there at another replica.
 */
export class Watcher {
  readonly log: WatchLog
  readonly violations: Violation[] = []
  readonly #segments: WatchSegment[] = []
  readonly #replicas: readonly Replica[]
  readonly #random: Random
  readonly #delivered: DeliveredChanges
  #position: number
  #end = Number.POSITIVE_INFINITY
  #current: { readonly watch: EventWatch; readonly stop: AbortController } | undefined

  constructor(options: {
    readonly id: number
    readonly namespace: string | undefined
    readonly from: number
    readonly replicas: readonly Replica[]
    readonly random: Random
    readonly delivered: DeliveredChanges
  }) {
    this.log = { id: options.id, namespace: options.namespace, segments: this.#segments }
    this.#replicas = options.replicas
    this.#random = options.random
    this.#delivered = options.delivered
    this.#position = options.from
  }

  get position(): number {
    return this.#position
  }

  /** Lets it receive everything up to here, and then end. */
  finishAt(version: number): void {
    this.#end = version
    // Without new changes etcd sends nothing to a watch that is up to date.
    if (this.#position >= version) this.#current?.stop.abort()
  }

  /** Resolves when it has reached its end, or the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const ended = new AbortController()
    const asking = this.#keepAsking(AbortSignal.any([signal, ended.signal]))
    while (!this.#isDone(signal)) {
      try {
        await this.#watchOnce(signal)
        if (this.#random.chance(absence))
          await pause(this.#random.between(0, absenceMostMs), signal)
      } catch (error) {
        this.#note(error)
        await pause(resumePauseMs * this.#random.between(0.5, 2), signal)
      }
    }
    ended.abort()
    await asking
  }

  #isDone(signal: AbortSignal): boolean {
    return signal.aborted || this.#position >= this.#end
  }

  /** One watch, from its beginning to where it is stopped. */
  async #watchOnce(signal: AbortSignal): Promise<void> {
    const index = this.#random.below(this.#replicas.length)
    const replica = this.#replicas[index]
    if (replica === undefined) throw new Error(`there is no replica ${index}`)
    if (replica.life.aborted) {
      throw new StorageError({ kind: 'unavailable', message: 'the replica is down' })
    }
    const stop = new AbortController()
    const ending = AbortSignal.any([signal, replica.life, stop.signal])
    const segment: WatchSegment = { from: this.#position, replica: index, heard: [] }
    this.#segments.push(segment)
    try {
      const { namespace } = this.log
      const from = this.#position as Version
      const watch = replica.storage.watch({ cluster, namespace }, { from, signal: ending })
      this.#current = { watch, stop }
      for await (const batch of watch) {
        if (this.#hear(batch, segment) || this.#isDone(signal)) return
      }
      if (!ending.aborted) throw new Error('the watch ended by itself')
    } finally {
      this.#current = undefined
      stop.abort()
    }
  }

  /** Takes a batch, or the beginning of it; returns whether it stops there. */
  #hear(batch: WatchBatch, segment: WatchSegment): boolean {
    const { items, version } = batch
    const isInside = items.length > 1 && this.#random.chance(stopInsideBatch)
    const most = isInside ? 1 + this.#random.below(items.length - 1) : items.length
    for (const item of items.slice(0, most)) {
      this.#position = this.#delivered.add(item, this.log.id)
      segment.heard.push(this.#position)
    }
    if (isInside) return true
    segment.heard.push(-version)
    this.#position = version
    return this.#random.chance(stopAfterBatch)
  }

  /** Without new changes, only a progress response advances it. */
  async #keepAsking(signal: AbortSignal): Promise<void> {
    const { least, most } = progressIntervalMs
    while (!signal.aborted) {
      const isHurried = this.#end !== Number.POSITIVE_INFINITY
      await pause(isHurried ? hurriedIntervalMs : this.#random.between(least, most), signal)
      this.#current?.watch.requestProgress()
    }
  }

  /** A replica that ends also ends its watches; any other end is an error. */
  #note(error: unknown): void {
    if (error instanceof StorageError && error.kind === 'unavailable') return
    const reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
    const message = `watcher ${this.log.id} at ${this.#position}: ${reason}`
    this.violations.push({ kind: 'unexpected-error', message })
  }
}
