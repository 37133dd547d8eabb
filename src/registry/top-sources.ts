/**
 * Tracks who currently writes most: the top controllers, namespaces and reasons of each cluster, and
 * the top users. Events are counted when the cache receives them, so every replica counts all writes;
 * a user is known only to the replica that it writes to.
 *
 * Deletes do not count: many events that expire at once are not a flood.
 */
import { type Clock, monotonicClock } from '../lib/clock.ts'
import { byRate, type HeavyHitter, HeavyHitters } from '../lib/heavy-hitters.ts'
import type { StoredEvent } from '../storage/storage.ts'

export const SOURCE_DIMENSIONS = ['controller', 'namespace', 'reason', 'user'] as const
export type SourceDimension = (typeof SOURCE_DIMENSIONS)[number]

/** A name and its writes per second, over about the last minute. */
export interface SourceRate {
  readonly value: string
  readonly rate: number
}

/** A value with more than one in 256 of all writes is likely to have an entry. */
const ENTRIES_MAX = 256
/** Hits within this time have the same weight, which saves most of the arithmetic. */
const TICK_MS = 100
/** Clusters with their own sketches; the others share one that is visible only in sums over all. */
const CLUSTERS_MAX = 64
/** How often clusters without recent writes are dropped to make space for others. */
const FORGET_EVERY_MS = 10_000

type Sketches = Readonly<Record<SourceDimension, HeavyHitters>>

/** Selects all clusters in `top`. */
export const EVERY_CLUSTER = '*'

export class TopSources {
  readonly #clock: Clock
  readonly #clusters = new Map<string, Sketches>()
  #others: Sketches | undefined
  /** The last lookup: changes arrive in batches of one cluster. */
  #newest: { readonly cluster: string; readonly sketches: Sketches } | undefined
  #forgetAtMs = Number.NEGATIVE_INFINITY

  constructor(clock: Clock = monotonicClock) {
    this.#clock = clock
  }

  /**
   * Counts an event that any replica created or updated. `atMs` is a time of the same clock. Takes
   * less than a microsecond.
   */
  changed({ key, fields }: Pick<StoredEvent, 'key' | 'fields'>, atMs: number): void {
    const nowMs = tickOf(atMs)
    const { controller, namespace, reason } = this.#sketchesOf(key.cluster, nowMs)
    // New events have their source in one field and old ones in another.
    controller.hit(fields.reportingController || fields.sourceComponent, nowMs)
    namespace.hit(key.namespace, nowMs)
    reason.hit(fields.reason, nowMs)
  }

  /** Counts a client's write that this replica admitted. */
  wrote(user: string, cluster: string): void {
    const nowMs = tickOf(this.#clock.now())
    this.#sketchesOf(cluster, nowMs).user.hit(user, nowMs)
  }

  /**
   * Up to 256 rates of one cluster, or the sums for EVERY_CLUSTER, highest first. Omits empty values.
   * Empty for a cluster beyond the first 64.
   */
  top(dimension: SourceDimension, cluster: string): readonly SourceRate[] {
    const nowMs = tickOf(this.#clock.now())
    if (cluster !== EVERY_CLUSTER) {
      return shown(this.#clusters.get(cluster)?.[dimension].top(nowMs) ?? [])
    }
    const sums = new Map<string, number>()
    for (const sketches of this.#all()) {
      sketches[dimension].each(nowMs, (key, rate) => sums.set(key, (sums.get(key) ?? 0) + rate))
    }
    return shown(highest(sums))
  }

  /** The rate of all writes in all clusters, including those with empty values. */
  totalRate(dimension: SourceDimension): number {
    const nowMs = tickOf(this.#clock.now())
    let sum = 0
    for (const sketches of this.#all()) sum += sketches[dimension].totalRate(nowMs)
    return sum
  }

  *#all(): Iterable<Sketches> {
    yield* this.#clusters.values()
    if (this.#others !== undefined) yield this.#others
  }

  #sketchesOf(cluster: string, nowMs: number): Sketches {
    if (this.#newest?.cluster === cluster) return this.#newest.sketches
    const sketches = this.#clusters.get(cluster) ?? this.#opened(cluster, nowMs)
    // Not cached for the others: a cluster gets its own sketches as soon as there is space.
    if (sketches !== this.#others) this.#newest = { cluster, sketches }
    return sketches
  }

  #opened(cluster: string, nowMs: number): Sketches {
    if (this.#clusters.size >= CLUSTERS_MAX) this.#forgetIdle(nowMs)
    if (this.#clusters.size >= CLUSTERS_MAX) {
      this.#others ??= newSketches(nowMs)
      return this.#others
    }
    const sketches = newSketches(nowMs)
    this.#clusters.set(cluster, sketches)
    return sketches
  }

  /** Runs only now and then, since it reads all sketches. */
  #forgetIdle(nowMs: number): void {
    if (nowMs < this.#forgetAtMs) return
    this.#forgetAtMs = nowMs + FORGET_EVERY_MS
    for (const [cluster, sketches] of this.#clusters) {
      if (isIdle(sketches, nowMs)) this.#clusters.delete(cluster)
    }
  }
}

/** A mirror that follows its origin is not this late. */
const LATE_MS = 60_000

/**
 * Whether a mirror copied the event so late that nothing happens now: a first copy, or what was missed
 * during an outage, is not a flood.
 */
export function isCopiedLate(stored: Pick<StoredEvent, 'fields' | 'writtenAtMs'>): boolean {
  const { lastSeenMs } = stored.fields
  return lastSeenMs > 0 && stored.writtenAtMs - lastSeenMs > LATE_MS
}

/** The 256 highest. Sorts only the numbers first, since there may be 16,000 names. */
function highest(sums: ReadonlyMap<string, number>): readonly HeavyHitter[] {
  const lowest = Float64Array.from(sums.values()).sort().at(-ENTRIES_MAX) ?? 0
  const found: HeavyHitter[] = []
  for (const [key, rate] of sums) if (rate >= lowest) found.push({ key, rate })
  return found.sort(byRate).slice(0, ENTRIES_MAX)
}

function isIdle({ namespace, user }: Sketches, nowMs: number): boolean {
  return namespace.top(nowMs).length === 0 && user.top(nowMs).length === 0
}

function tickOf(ms: number): number {
  return Math.floor(ms / TICK_MS) * TICK_MS
}

function newSketches(nowMs: number): Sketches {
  const sketch = (): HeavyHitters => new HeavyHitters({ entriesMax: ENTRIES_MAX, nowMs })
  return { controller: sketch(), namespace: sketch(), reason: sketch(), user: sketch() }
}

function shown(hitters: readonly HeavyHitter[]): readonly SourceRate[] {
  return hitters.filter(({ key }) => key !== '').map(({ key, rate }) => ({ value: key, rate }))
}
