import type { Clock } from '../../lib/clock.ts'
import type { Lane } from '../../lib/run-queue.ts'
import { scopePath } from '../../storage/event-scope.ts'
import type { EventScope } from '../../storage/storage.ts'
import type { EventMemory } from '../memory/memory.ts'
import { endTime } from './page.ts'

/** A scope is searched at most this often, however many requests ask for it. */
const freshMs = 1_000
const knownMax = 10_000

/** Milliseconds since 1970; a promise while it is searched. */
type SeenMs = number | undefined | Promise<number | undefined>

interface Known {
  seenMs: SeenMs
  readonly askedAtMs: number
}

export interface SeenTimesOptions {
  readonly memory: EventMemory
  readonly clock: Clock
  /** Whether memory has all events of the store, which it does not while it is loaded. */
  readonly isLoaded: () => boolean
  readonly order: 'oldest' | 'newest'
  /**
   * The wall clock: events that were last seen after its time are ignored. The clock of a reporter
   * may be wrong, and its event would be the newest for hours. Default: none is ignored.
   */
  readonly wallTime?: (() => number) | undefined
}

/** Finds when the oldest, or the newest, event of a scope was last seen. */
export class SeenTimes {
  readonly #options: SeenTimesOptions
  readonly #known = new Map<string, Known>()

  constructor(options: SeenTimesOptions) {
    this.#options = options
  }

  /**
   * Returns milliseconds since 1970, up to a second old; undefined when there are no events, or while
   * they are loaded. A search runs in the lane of the first request that asks for it.
   */
  in(scope: EventScope, lane: Lane): SeenMs {
    const { memory, clock, isLoaded, order, wallTime } = this.#options
    if (!isLoaded()) return undefined
    const path = scopePath(scope)
    const now = clock.now()
    const known = this.#known.get(path)
    if (known !== undefined && now - known.askedAtMs < freshMs) return known.seenMs
    const searched: Known = { seenMs: undefined, askedAtMs: now }
    const untilMs = wallTime?.()
    const search = endTime(memory, { scope, lane, order, untilMs }).then((ms) => {
      searched.seenMs = ms
      return ms
    })
    searched.seenMs = search
    if (this.#known.size >= knownMax) this.#known.clear()
    this.#known.set(path, searched)
    return search
  }
}
