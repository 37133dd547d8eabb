/**
 * Keeps memory and history up with the store: reads everything once, page by page at one version,
 * then follows every change after it.
 *
 * Following survives failures: it goes on from the last version it has. Only when the store says
 * that what comes next is gone does it read everything again, and makes of what it has what it
 * finds. In between memory is a mixture of two states, and `isCurrent` is false: nobody may read
 * the present from it then. States that were kept before stay good.
 */
import { pause } from '../lib/abort.ts'
import { Backoff } from '../lib/backoff.ts'
import type { Clock } from '../lib/clock.ts'
import { Latch } from '../lib/latch.ts'
import type { Log } from '../lib/log.ts'
import { StorageError } from '../storage/errors.ts'
import { revisionOf, type Version, versionOfState } from '../storage/resource-version.ts'
import type {
  EventKey,
  EventPage,
  EventWatch,
  FollowItem,
  StoredEvent,
  Unreadable,
  WatchItem,
} from '../storage/storage.ts'
import { StoredBody, withVersion } from '../storage/stored-form.ts'
import type { FanOut } from './fan-out.ts'
import type { FollowedStorage } from './followed-storage.ts'
import type { History } from './history.ts'
import type { EventMemory } from './memory.ts'
import { orderKey, viewOf } from './order-key.ts'
import { Progress } from './progress.ts'
import { Turns } from './turns.ts'

/** Two megabytes: etcd walks over all keys for each page, so small ones cost it dearly. */
const pageSize = 2_000
const retryFirstMs = 100
const retryMostMs = 5_000

export interface ReflectorOptions {
  readonly source: FollowedStorage
  readonly memory: EventMemory
  readonly history: History
  readonly fanOut: FanOut
  readonly clock: Clock
  readonly log: Log
}

export class Reflector {
  readonly progress: Progress = new Progress(() => this.askForProgress())
  readonly #options: ReflectorOptions
  readonly #backoff = new Backoff({ firstMs: retryFirstMs, mostMs: retryMostMs })
  readonly #everSynced = new Latch()
  #isCurrent = false
  #watch: EventWatch<FollowItem> | undefined
  #heardAtMs = Number.NEGATIVE_INFINITY
  #initializations = 0
  #received = 0
  /** Keys whose values are not events, by namespace and name. Mostly there are none. */
  #unreadable = new Map<string, Unreadable>()

  constructor(options: ReflectorOptions) {
    this.#options = options
  }

  /** Memory is a state of the store, and is being kept up with it. */
  get isCurrent(): boolean {
    return this.#isCurrent
  }

  /** Resolves when that is so for the first time, or never will be. */
  get synced(): Promise<void> {
    return this.#everSynced.opened
  }

  /** How long ago the store last said how far it is. The watch asks after a second of silence. */
  get silentMs(): number {
    return this.#options.clock.now() - this.#heardAtMs
  }

  /** How often everything was read. */
  get initializations(): number {
    return this.#initializations
  }

  /** Changes taken in while following. */
  get received(): number {
    return this.#received
  }

  /** What is left out of memory, as it is not an event. */
  get unreadable(): Iterable<Unreadable> {
    return this.#unreadable.values()
  }

  unreadableAt(key: EventKey): Unreadable | undefined {
    return this.#unreadable.size === 0 ? undefined : this.#unreadable.get(pathOf(key))
  }

  askForProgress(): void {
    this.#watch?.requestProgress()
  }

  /** Runs until aborted. Rejects on a bug only: a store that is down is waited for. */
  async run(signal: AbortSignal): Promise<void> {
    const { log } = this.#options
    try {
      while (!signal.aborted) {
        try {
          if (!this.isCurrent) await this.#load(signal)
          await this.#follow(signal)
        } catch (error) {
          if (signal.aborted) break
          if (!(error instanceof StorageError)) throw error
          if (error.kind === 'compacted') this.#lose()
          log.warn('Following events was interrupted', { err: error, isCurrent: this.isCurrent })
          await pause(this.#backoff.next(), signal)
        }
      }
    } finally {
      this.#lose()
      this.#everSynced.open()
    }
  }

  #lose(): void {
    this.#isCurrent = false
    this.progress.giveUp()
  }

  async #load(signal: AbortSignal): Promise<void> {
    const { source, memory, history, fanOut, clock, log } = this.#options
    const beganAtMs = clock.now()
    const scope = { namespace: undefined }
    const common = { limit: pageSize, signal, isPatient: true }
    let next = source.list(scope, common)
    const isFirst = memory.count === 0
    let after: Buffer = Buffer.alloc(0)
    const unreadable = new Map<string, Unreadable>()
    using turns = new Turns()
    for (;;) {
      const page = await next
      turns.begin()
      const last = page.items.at(-1)?.key
      const { more, version } = page
      // The next page is on its way while this one is taken in.
      if (more) {
        next = source.list(scope, { ...common, at: version, after: last })
        // Handled where it is awaited, which an error in between would keep us from.
        next.catch(() => {})
      }
      for (const value of page.unreadable ?? []) unreadable.set(pathOf(value.key), value)
      if (isFirst) await this.#add(page, turns)
      else after = await this.#takeIn(page, after, turns)
      if (more) continue
      memory.reach(version)
      history.restart(version)
      this.#unreadable = unreadable
      this.#initializations++
      this.#heard()
      this.#isCurrent = true
      this.#everSynced.open()
      fanOut.restarted()
      const seconds = Math.round(clock.now() - beganAtMs) / 1000
      log.info('Following events', { count: memory.count, seconds, revision: revisionOf(version) })
      return
    }
  }

  async #add(page: EventPage, turns: Turns): Promise<void> {
    const { memory } = this.#options
    for (const stored of page.items) {
      memory.put(stored)
      if (turns.isOver()) await turns.yield()
    }
  }

  /** Makes memory what the page says it is, between `after` and the last key of the page. */
  async #takeIn(page: EventPage, after: Buffer, turns: Turns): Promise<Buffer> {
    const { memory } = this.#options
    const { table } = memory
    let passed = after
    for (const stored of page.items) {
      const key = orderKey(stored.key)
      await this.#removeBetween(passed, key, turns)
      const known = memory.find(key)
      if (known === undefined || table.versionOf(known) !== stored.version) memory.put(stored)
      passed = key
      if (turns.isOver()) await turns.yield()
    }
    if (!page.more) await this.#removeBetween(passed, undefined, turns)
    return passed
  }

  /** Removes what lies after one key and before another. */
  async #removeBetween(after: Buffer, before: Buffer | undefined, turns: Turns): Promise<void> {
    const { memory } = this.#options
    const { table } = memory
    const from = viewOf(after)
    const to = before === undefined ? undefined : viewOf(before)
    for (;;) {
      const { byKey } = memory.peek()
      const index = byKey.rank((slot) => (table.compareKey(slot, from) <= 0 ? -1 : 1))
      if (index === byKey.size) return
      const { run, offset } = byKey.runAt(index)
      const slot = run.slots[offset] ?? 0
      if (to !== undefined && table.compareKey(slot, to) >= 0) return
      memory.remove(slot)
      if (turns.isOver()) await turns.yield()
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { source, memory } = this.#options
    const watch = source.follow({ from: memory.version, signal })
    this.#watch = watch
    if (this.progress.waiting > 0) watch.requestProgress()
    try {
      using turns = new Turns()
      for await (const { items, version } of watch) {
        this.#backoff.reset()
        this.#heard()
        turns.begin()
        await this.#apply(items, turns)
        this.#reach([], version)
      }
    } finally {
      this.#watch = undefined
    }
  }

  /** Transaction by transaction: whoever reads in between sees whole ones. */
  async #apply(items: readonly FollowItem[], turns: Turns): Promise<void> {
    let changes: WatchItem[] = []
    for (const [index, item] of items.entries()) {
      const change = this.#change(item)
      if (change !== undefined) changes.push(change)
      const revision = revisionOf(versionOf(item))
      const next = items[index + 1]
      if (next !== undefined && revisionOf(versionOf(next)) === revision) continue
      this.#reach(changes, versionOfState(revision))
      changes = []
      if (turns.isOver()) await turns.yield()
    }
  }

  /** Makes the change in memory; undefined when there was nothing to delete. */
  #change(item: FollowItem): WatchItem | undefined {
    const { memory } = this.#options
    this.#received++
    this.#noteUnreadable(item)
    if (item.type === 'put') {
      const { stored } = item
      const previous = memory.put(stored)
      // Without its fields, which are most of what it takes: memory has taken what it needs of them,
      // and whoever selects by them reads them again.
      const kept = withVersion(stored, stored.version)
      return { type: 'put', stored: kept, previous: previous && copied(previous) }
    }
    const last = memory.delete(item.key)
    return last && { type: 'delete', stored: withVersion(copied(last), item.version) }
  }

  #noteUnreadable(item: FollowItem): void {
    if (item.type === 'unreadable') this.#unreadable.set(pathOf(item.key), item.value)
    else if (this.#unreadable.size > 0) {
      this.#unreadable.delete(pathOf(item.type === 'put' ? item.stored.key : item.key))
    }
  }

  #reach(changes: readonly WatchItem[], version: Version): void {
    const { memory, history, fanOut } = this.#options
    memory.reach(version)
    history.append(changes, version)
    fanOut.changed()
    this.progress.reached(version)
  }

  #heard(): void {
    this.#heardAtMs = this.#options.clock.now()
  }
}

function pathOf({ namespace, name }: EventKey): string {
  return `${namespace}/${name}`
}

function versionOf(item: FollowItem): Version {
  return item.type === 'put' ? item.stored.version : item.version
}

/** The history outlives what it would otherwise keep a whole slab alive for. */
function copied(stored: StoredEvent): StoredEvent {
  const { key, versionOffset, version, writtenAtMs } = stored
  const body = Buffer.from(stored.body)
  return new StoredBody({ key, body, versionOffset, version, writtenAtMs })
}
