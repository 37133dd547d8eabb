/**
 * The events of a namespace in order of their last writes, oldest first, Warnings last. Unlike the
 * times in an event, this order is not under the writer's control.
 *
 * No index has this order. A search reads the whole namespace and finds the oldest thousands, which
 * stay the oldest: whatever is written later is newer.
 */
import type { Clock } from '../../lib/clock.ts'
import type { Lane } from '../../lib/run-queue.ts'
import type { Version } from '../../storage/resource-version.ts'
import type { EventKey, EventSelector, EventStorage } from '../../storage/storage.ts'
import { storedBytes } from '../../storage/trailer.ts'

const pageMax = 2_000
/** Events retained from one search, since a search reads the whole namespace. */
const foundMax = 20_000
/** Events found may be changed or deleted, so they are searched for again after this long. */
const validMs = 30_000
/** Shorter for Warnings, since other events, which go first, may have been written. */
const warningsValidMs = 2_000

export interface OldWrite {
  readonly key: EventKey
  readonly version: Version
  readonly bytes: number
}

interface Found {
  readonly writes: OldWrite[]
  /** Monotonic milliseconds. */
  readonly validUntil: number
}

export type NamespaceOfCluster = Pick<EventKey, 'cluster' | 'namespace'>

export interface OldestWritesOptions {
  readonly storage: Pick<EventStorage, 'list'>
  readonly clock: Clock
  readonly lane: Lane
}

export class OldestWrites {
  readonly #storage: Pick<EventStorage, 'list'>
  readonly #clock: Clock
  readonly #lane: Lane
  readonly #selectors: readonly [others: EventSelector, warnings: EventSelector]
  readonly #found = new Map<string, Found>()

  constructor(
    { storage, clock, lane }: OldestWritesOptions,
    selectors: readonly [others: EventSelector, warnings: EventSelector],
  ) {
    this.#storage = storage
    this.#clock = clock
    this.#lane = lane
    this.#selectors = selectors
  }

  clear(): void {
    this.#found.clear()
  }

  /** The oldest events that have not been taken. */
  async of(scope: NamespaceOfCluster, signal: AbortSignal): Promise<readonly OldWrite[]> {
    const name = nameOf(scope)
    const known = this.#found.get(name)
    if (known !== undefined && known.writes.length > 0 && this.#clock.now() < known.validUntil) {
      return known.writes
    }
    const [others, warnings] = this.#selectors
    const begunAt = this.#clock.now()
    const first = await this.#search(scope, others, signal)
    const isOfWarnings = first.length === 0
    const writes = isOfWarnings ? await this.#search(scope, warnings, signal) : first
    const validUntil = begunAt + (isOfWarnings ? warningsValidMs : validMs)
    // Bounds what all namespaces retain together to little more than one search.
    if (this.#retained() + writes.length > foundMax) this.#found.clear()
    this.#found.set(name, { writes, validUntil })
    return writes
  }

  /** Removes and returns the first `count` events, which are about to be deleted. */
  take(scope: NamespaceOfCluster, count: number): readonly OldWrite[] {
    const name = nameOf(scope)
    const found = this.#found.get(name)
    const taken = found?.writes.splice(0, count) ?? []
    if (found?.writes.length === 0) this.#found.delete(name)
    return taken
  }

  #retained(): number {
    let count = 0
    for (const { writes } of this.#found.values()) count += writes.length
    return count
  }

  async #search(
    scope: NamespaceOfCluster,
    selector: EventSelector,
    signal: AbortSignal,
  ): Promise<OldWrite[]> {
    const found: OldWrite[] = []
    let after: EventKey | undefined
    for (;;) {
      // Each page reads the latest state, since a delete compares the version that was read.
      const page = await this.#storage.list(scope, {
        selector,
        after,
        limit: pageMax,
        isOnlyPage: true,
        signal,
        lane: this.#lane,
      })
      for (const stored of page.items) {
        const { key, version } = stored
        found.push({ key, version, bytes: storedBytes(stored) })
      }
      if (found.length > 2 * foundMax) keepOldest(found)
      after = page.items.at(-1)?.key
      if (!page.more || after === undefined) break
    }
    keepOldest(found)
    return found
  }
}

function keepOldest(found: OldWrite[]): void {
  found.sort((one, other) => one.version - other.version)
  found.length = Math.min(found.length, foundMax)
}

function nameOf({ cluster, namespace }: NamespaceOfCluster): string {
  return `${cluster}/${namespace}`
}
