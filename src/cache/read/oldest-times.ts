import type { Clock } from '../../lib/clock.ts'
import type { Lane } from '../../lib/run-queue.ts'
import { scopePath } from '../../storage/event-scope.ts'
import type { EventScope } from '../../storage/storage.ts'
import type { EventMemory } from '../memory/memory.ts'
import { oldestTime } from './page.ts'

/** A scope is searched at most this often, however many requests ask for it. */
const freshMs = 1_000
const knownMax = 10_000

/** When the oldest event was last seen; a promise while it is searched. */
type OldestMs = number | undefined | Promise<number | undefined>

interface Known {
  oldestMs: OldestMs
  readonly askedAtMs: number
}

export interface OldestTimesOptions {
  readonly memory: EventMemory
  readonly clock: Clock
  /** Whether memory has all events of the store, which it does not while it is loaded. */
  readonly isLoaded: () => boolean
}

/** Finds when the oldest event of a scope was last seen. */
export class OldestTimes {
  readonly #options: OldestTimesOptions
  readonly #known = new Map<string, Known>()

  constructor(options: OldestTimesOptions) {
    this.#options = options
  }

  /**
   * Returns milliseconds since 1970, up to a second old; undefined when there are no events, or while
   * they are loaded. A search runs in the lane of the first request that asks for it.
   */
  in(scope: EventScope, lane: Lane): OldestMs {
    const { memory, clock, isLoaded } = this.#options
    if (!isLoaded()) return undefined
    const path = scopePath(scope)
    const now = clock.now()
    const known = this.#known.get(path)
    if (known !== undefined && now - known.askedAtMs < freshMs) return known.oldestMs
    const searched: Known = { oldestMs: undefined, askedAtMs: now }
    const search = oldestTime(memory, scope, lane).then((ms) => {
      searched.oldestMs = ms
      return ms
    })
    searched.oldestMs = search
    if (this.#known.size >= knownMax) this.#known.clear()
    this.#known.set(path, searched)
    return search
  }
}
