import type { Clock } from '../lib/clock.ts'
import type { Lane, Slices } from '../lib/run-queue.ts'
import type { EventMemory } from './memory/memory.ts'

/** The events of one cluster in memory. */
export interface ClusterActivity {
  readonly cluster: string
  readonly events: number
  /** The write times of the event that was written first, and of the one written last. */
  readonly oldestMs: number | undefined
  readonly newestMs: number | undefined
}

interface Span {
  readonly oldestMs: number
  readonly newestMs: number
}

/** A scan of a million events takes some 100 ms of CPU, so this is at most 2 % of a core. */
const spansMsMax = 5_000

/**
 * Finds the times of the oldest and the newest event of each cluster. There is no index of them, so
 * all rows are scanned, in time slices, at most once every few seconds however many requests there
 * are.
 */
export class ClusterActivities {
  readonly #memory: EventMemory
  readonly #clock: Clock
  readonly #lane: Lane
  #spans: ReadonlyMap<string, Span> = new Map()
  #scannedAtMs = Number.NEGATIVE_INFINITY
  #scan: Promise<void> | undefined

  constructor(memory: EventMemory, clock: Clock, lane: Lane) {
    this.#memory = memory
    this.#clock = clock
    this.#lane = lane
  }

  /** The clusters that have events. Counts are current; times are some seconds old at most. */
  async read(): Promise<readonly ClusterActivity[]> {
    if (this.#clock.now() - this.#scannedAtMs >= spansMsMax) {
      this.#scan ??= this.#scanAll().finally(() => {
        this.#scan = undefined
      })
      await this.#scan
    }
    return [...this.#memory.namespaces.events()].map(([cluster, events]) => {
      const span = this.#spans.get(cluster)
      return { cluster, events, oldestMs: span?.oldestMs, newestMs: span?.newestMs }
    })
  }

  async #scanAll(): Promise<void> {
    const memory = this.#memory
    const entered = this.#lane.enter()
    if (entered !== undefined) await entered
    const state = memory.peek()
    using slices = this.#lane.slices({ hold: () => memory.pin(state) })
    const spans = new Map<string, Span>()
    let from = 0
    for (const [cluster, events] of inKeyOrder(memory)) {
      spans.set(cluster, await this.#span(state.byKey, { from, to: from + events, slices }))
      from += events
    }
    this.#spans = spans
    this.#scannedAtMs = this.#clock.now()
  }

  async #span(
    byKey: ReturnType<EventMemory['peek']>['byKey'],
    { from, to, slices }: { from: number; to: number; slices: Slices },
  ): Promise<Span> {
    const { table } = this.#memory
    let oldestMs = Number.POSITIVE_INFINITY
    let newestMs = Number.NEGATIVE_INFINITY
    for (let index = from; index < to; ) {
      const { run, offset } = byKey.runAt(index)
      const end = Math.min(run.slots.length, offset + to - index)
      for (let at = offset; at < end; at++) {
        const writtenAtMs = table.writtenAtOf(run.slots[at] ?? 0)
        if (writtenAtMs < oldestMs) oldestMs = writtenAtMs
        if (writtenAtMs > newestMs) newestMs = writtenAtMs
      }
      index += end - offset
      if (slices.isOver()) await slices.next()
    }
    return { oldestMs, newestMs }
  }
}

/** Keys are sorted as `cluster/namespace/name`, and `a-b/` comes before `a/`. */
function inKeyOrder(memory: EventMemory): readonly (readonly [string, number])[] {
  return [...memory.namespaces.events()].sort(([one], [other]) =>
    `${one}/` < `${other}/` ? -1 : 1,
  )
}
