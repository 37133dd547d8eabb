import type {
  EventKey,
  EventPage,
  EventScope,
  ListOptions,
  StoredEvent,
} from '../storage/storage.ts'

const pageItems = 500
const pageBytesEnough = 1024 * 1024

/** Lists the stored events in the lane of mirrors. */
export interface ListedStorage {
  list(scope: EventScope, options: Omit<ListOptions, 'lane'>): Promise<EventPage>
}

/** A position in the order of events. */
export type Place = Pick<EventKey, 'namespace' | 'name'>

/**
 * Finds the stored events that are missing from a list of the origin. Both sides are read in key order,
 * a page at a time, so that no set of all keys is needed.
 */
export class MissingEvents {
  readonly #storage: ListedStorage
  readonly #scope: EventScope
  readonly #signal: AbortSignal
  #page: StoredEvent[] = []
  #after: EventKey | undefined
  #hasMore = true
  #last = ''
  #isOrdered = true

  constructor(storage: ListedStorage, scope: EventScope, signal: AbortSignal) {
    this.#storage = storage
    this.#scope = scope
    this.#signal = signal
  }

  /** Must be called for each page before its items. A page that is out of order ends the search. */
  check(page: readonly Place[]): void {
    for (const place of page) {
      const order = orderOf(place)
      if (order <= this.#last) this.#isOrdered = false
      this.#last = order
    }
  }

  /** The stored events between the previous listed event and this one, or the end of the list. */
  async *before(listed: Place | 'end'): AsyncGenerator<StoredEvent, void, undefined> {
    const limit = listed === 'end' ? undefined : orderOf(listed)
    if (!this.#isOrdered) return
    for (;;) {
      const next = this.#page[0] ?? (await this.#read())
      if (next === undefined) return
      const order = orderOf(next.key)
      if (limit !== undefined && order > limit) return
      this.#page.shift()
      if (order !== limit) yield next
    }
  }

  async #read(): Promise<StoredEvent | undefined> {
    if (!this.#hasMore) return undefined
    // Each page reads the latest state, since a later delete compares the version that was read.
    const { items, more } = await this.#storage.list(this.#scope, {
      after: this.#after,
      limit: pageItems,
      bytesEnough: pageBytesEnough,
      signal: this.#signal,
    })
    this.#page = [...items]
    this.#after = items.at(-1)?.key ?? this.#after
    this.#hasMore = more && items.length > 0
    return this.#page[0]
  }
}

function orderOf({ namespace, name }: Place): string {
  return `${namespace}/${name}`
}
