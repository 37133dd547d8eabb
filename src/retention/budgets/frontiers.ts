import type { Clock } from '../../lib/clock.ts'
import type { ListOptions, StoredEvent } from '../../storage/storage.ts'

/** An older event that is written after the search has passed its place waits for this long. */
const validMs = 2_000

/** Where a list continues. */
export type Place = Pick<ListOptions, 'after' | 'afterMs'>

interface Frontier {
  readonly searchedAt: number
  readonly place: Place
}

/**
 * How far namespaces and clusters have been searched for events that are not Warnings, in the order
 * of time: the next search need not begin with hundreds of thousands of Warnings that are older.
 */
export class Frontiers {
  readonly #clock: Clock
  readonly #frontiers = new Map<string, Frontier>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Undefined: the next search begins at the start. */
  of(scope: string): Place | undefined {
    const found = this.#frontiers.get(scope)
    if (found === undefined) return undefined
    if (this.#clock.now() < found.searchedAt + validMs) return found.place
    this.#frontiers.delete(scope)
    return undefined
  }

  /** A search began at the start at this time. There is nothing up to `last`, if it is given. */
  begin(scope: string, searchedAt: number, last: StoredEvent | undefined): void {
    this.#frontiers.set(scope, { searchedAt, place: last === undefined ? {} : placeOf(last) })
  }

  /** Everything up to `last` has been deleted. */
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
