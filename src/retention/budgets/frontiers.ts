import type { Clock } from '../../lib/clock.ts'
import type { ListOptions, StoredEvent } from '../../storage/storage.ts'

/** How long an older event may be overlooked if it is written after the search has passed it. */
const validMs = 2_000

/** A position to continue a list from. */
export type Place = Pick<ListOptions, 'after' | 'afterMs'>

interface Frontier {
  readonly searchedAt: number
  readonly place: Place
}

/**
 * How far each namespace and cluster has been searched, in order of time, for events that are not
 * Warnings. The next search need not begin with hundreds of thousands of older Warnings.
 */
export class Frontiers {
  readonly #clock: Clock
  readonly #frontiers = new Map<string, Frontier>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Undefined when the next search must begin at the start. */
  of(scope: string): Place | undefined {
    const found = this.#frontiers.get(scope)
    if (found === undefined) return undefined
    if (this.#clock.now() < found.searchedAt + validMs) return found.place
    this.#frontiers.delete(scope)
    return undefined
  }

  /** Records a search from the start at `searchedAt` that found nothing up to `last`, if given. */
  begin(scope: string, searchedAt: number, last: StoredEvent | undefined): void {
    this.#frontiers.set(scope, { searchedAt, place: last === undefined ? {} : placeOf(last) })
  }

  /** Records that everything up to `last` has been deleted. */
  advance(scope: string, last: StoredEvent | undefined): void {
    const found = this.#frontiers.get(scope)
    if (found !== undefined) this.begin(scope, found.searchedAt, last)
  }

  clear(): void {
    this.#frontiers.clear()
  }
}

function placeOf({ key, fields }: StoredEvent): Place {
  return { after: key, afterMs: fields.lastSeenMs }
}
