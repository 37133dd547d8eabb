/**
 * Lists: which state is read, page after page of that one state, and where the next request goes on.
 */
import { setImmediate } from 'node:timers/promises'
import { StorageError } from '../storage/errors.ts'
import type { Version } from '../storage/resource-version.ts'
import type {
  EventKey,
  EventPage,
  EventScope,
  EventSelector,
  ListOptions,
  ListPart,
  RunsOptions,
  RunsPage,
  StoredEvent,
  WatchedStorage,
} from '../storage/storage.ts'
import { encodeContinue } from './continue-token.ts'
import type { ListPosition } from './list-position.ts'
import { pageExpired, type ResourceNames, statusOfStorageError } from './storage-errors.ts'

/** Events read at once, unless the reader wants fewer: a long list goes in pieces of this many. */
const pieceItemsUsual = 500
/** What is printed at once; in the slowest form that takes some ten milliseconds. */
const pieceBytesMax = 256 * 1024
/**
 * Of what is not in memory any more and is read from the store for this list alone. With a limit that
 * goes further, its end is looked for first, and then everything is read page by page.
 */
const bytesEnough = 1024 * 1024
/** A limit up to this many is read at once: the last key is needed before the first is sent. */
const wholePageItems = 10_000

export interface ListQuery {
  readonly scope: EventScope
  /** Of the path: tokens speak of places in it. */
  readonly tokenScope: EventScope
  readonly selector: EventSelector | undefined
  /** Which state, and from where on. */
  readonly position: ListPosition
  /** Undefined: everything. */
  readonly limit: number | undefined
  /** Events in a piece; for those who keep one for long, or have much to do with each event. */
  readonly pieceItems?: number | undefined
  /** For those who keep what they make of runs. */
  readonly recall?: RunsOptions['recall'] | undefined
  readonly signal: AbortSignal
}

/** A list that has been begun: what it says of itself is known, and its items come as they are read. */
export interface EventListing {
  readonly version: Version
  /** Set when the limit cut it short. */
  readonly continueToken: string | undefined
  readonly remainingItemCount: number | undefined
  /** In order, at least one piece; all of one state, and the same however often they are read. */
  readonly pieces: AsyncIterable<readonly StoredEvent[]>
  /** The same, some parts at a time, for who gave a `recall` and wants all of a long list. */
  readonly parts?: AsyncIterable<readonly ListPart[]> | undefined
  /** The only piece, when there is one. */
  readonly whole: readonly StoredEvent[] | undefined
}

export class EventLister {
  readonly #storage: WatchedStorage
  readonly #names: ResourceNames

  constructor(storage: WatchedStorage, names: ResourceNames) {
    this.#storage = storage
    this.#names = names
  }

  async list(query: ListQuery): Promise<EventListing> {
    const limit = query.limit ?? Number.POSITIVE_INFINITY
    const first = await this.#first(query, limit)
    const isCut = first.items.length >= limit
    if (isCut || !first.more) {
      return {
        version: first.version,
        ...this.#rest(query, first, isCut && first.more ? first.items.at(-1)?.key : undefined),
        pieces: repeatable(() => inPieces(first.items, pieceItemsOf(query))),
        whole: isOnePiece(first.items, query) ? first.items : undefined,
      }
    }
    const end = await this.#findEnd(query, first, limit)
    return {
      version: first.version,
      continueToken: end && this.#token(query, end.key, first.version),
      remainingItemCount: end?.remaining,
      pieces: repeatable(() => this.#pieces(query, first, end?.key)),
      parts: this.#parts(query, first.version),
      whole: undefined,
    }
  }

  async #first(query: ListQuery, limit: number): Promise<EventPage> {
    const size = limit <= wholePageItems ? limit : pieceItemsOf(query)
    const { asked, ...position } = query.position
    const { at, notOlderThan, after } = position
    try {
      return await this.#page(query, { ...position, limit: size })
    } catch (error) {
      if (!(error instanceof StorageError)) throw error
      if (error.kind === 'compacted' && after !== undefined) {
        throw pageExpired(this.#token(query, after, undefined))
      }
      throw statusOfStorageError(await this.#dated(error, query.signal), this.#names, {
        wanted: at ?? notOlderThan,
        asked,
        isRead: true,
      })
    }
  }

  /** Who asked for a version of the future is told how far we are; etcd's own refusal does not say. */
  async #dated(error: StorageError, signal: AbortSignal): Promise<StorageError> {
    if (error.kind !== 'future' || error.version !== undefined) return error
    // Where that cannot be found out, it is refused without it.
    const version = await this.#storage.currentVersion({ signal }).catch(() => undefined)
    return new StorageError({ kind: 'future', message: error.message, version, cause: error })
  }

  /** Where a list with a very great limit ends: found by going there, without keeping anything. */
  async #findEnd(
    query: ListQuery,
    first: EventPage,
    limit: number,
  ): Promise<{ readonly key: EventKey; readonly remaining: number | undefined } | undefined> {
    if (limit === Number.POSITIVE_INFINITY) return undefined
    let seen = first.items.length
    let page = first
    while (page.more) {
      const after = page.items.at(-1)?.key
      page = await this.#next(query, first.version, {
        after,
        limit: Math.min(pieceItemsUsual, limit - seen),
      })
      seen += page.items.length
      const key = page.items.at(-1)?.key
      if (seen === limit && page.more && key !== undefined)
        return { key, remaining: page.remaining }
    }
    return undefined
  }

  async *#pieces(
    query: ListQuery,
    first: EventPage,
    end: EventKey | undefined,
  ): AsyncGenerator<readonly StoredEvent[]> {
    const limit = pieceItemsOf(query)
    let page = first
    yield* inPieces(page.items, limit)
    while (page.more) {
      const after = page.items.at(-1)?.key
      page = await this.#next(query, first.version, { after, limit })
      const last = end && page.items.findIndex(({ key }) => isSame(key, end))
      if (last !== undefined && last !== -1) {
        yield* inPieces(page.items.slice(0, last + 1), limit)
        return
      }
      yield* inPieces(page.items, limit)
    }
  }

  /** Undefined when runs are of no use: not all of their events are wanted, or nobody keeps anything. */
  #parts(query: ListQuery, version: Version): EventListing['parts'] {
    const { recall, selector, limit } = query
    if (recall === undefined || selector !== undefined || limit !== undefined) return undefined
    return repeatable(() => this.#partsAt(query, version, recall))
  }

  async *#partsAt(
    query: ListQuery,
    at: Version,
    recall: RunsOptions['recall'],
  ): AsyncGenerator<readonly ListPart[]> {
    const limit = pieceItemsOf(query)
    let { after } = query.position
    for (let more = true; more; ) {
      const page =
        this.#storage.listRuns(query.scope, { at, after, limit, recall }) ??
        asRuns(await this.#next(query, at, { after, limit }))
      yield page.parts.flatMap((part) => inBounds(part, query))
      after = page.last
      more = page.more
    }
  }

  async #next(
    query: ListQuery,
    at: Version,
    options: { readonly after: EventKey | undefined; readonly limit: number },
  ): Promise<EventPage> {
    try {
      return await this.#page(query, { ...options, at })
    } catch (error) {
      if (!(error instanceof StorageError)) throw error
      throw statusOfStorageError(error, this.#names, { wanted: at, isRead: true })
    }
  }

  #page(
    { scope, selector, signal }: ListQuery,
    options: Pick<ListOptions, 'at' | 'notOlderThan' | 'after' | 'limit'>,
  ): Promise<EventPage> {
    return this.#storage.list(scope, { ...options, bytesEnough, selector, signal })
  }

  #token({ tokenScope }: ListQuery, after: EventKey, version: Version | undefined): string {
    return encodeContinue(tokenScope, { after, version })
  }

  #rest(
    query: ListQuery,
    page: EventPage,
    last: EventKey | undefined,
  ): Pick<EventListing, 'continueToken' | 'remainingItemCount'> {
    if (last === undefined) return { continueToken: undefined, remainingItemCount: undefined }
    return {
      continueToken: this.#token(query, last, page.version),
      remainingItemCount: page.remaining,
    }
  }
}

function pieceItemsOf({ pieceItems = pieceItemsUsual }: ListQuery): number {
  return pieceItems
}

/** Others have their turn between two pieces. */
async function* inPieces(
  items: readonly StoredEvent[],
  itemsMax: number,
): AsyncGenerator<readonly StoredEvent[]> {
  let from = 0
  do {
    if (from > 0) await setImmediate()
    const end = pieceEnd(items, from, itemsMax)
    yield items.slice(from, end)
    from = end
  } while (from < items.length)
}

/** At least one, however long it is. */
function pieceEnd(items: readonly StoredEvent[], from: number, itemsMax: number): number {
  let bytes = items[from]?.body.length ?? 0
  let end = from + 1
  while (end < items.length && end - from < itemsMax) {
    bytes += items[end]?.body.length ?? 0
    if (bytes > pieceBytesMax) break
    end += 1
  }
  return end
}

function isOnePiece(items: readonly StoredEvent[], query: ListQuery): boolean {
  return pieceEnd(items, 0, pieceItemsOf(query)) >= items.length
}

/** A run too long to be printed at once is none. */
function inBounds(part: ListPart, query: ListQuery): readonly ListPart[] {
  if (part.known !== undefined) return [part]
  const { events } = part
  const parts: ListPart[] = []
  for (let from = 0; from < events.length; ) {
    const end = pieceEnd(events, from, pieceItemsOf(query))
    if (end - from === events.length) return [part]
    parts.push(withoutRun(events.slice(from, end)))
    from = end
  }
  return parts
}

function asRuns({ items, more }: EventPage): RunsPage {
  return { parts: items.length === 0 ? [] : [withoutRun(items)], last: items.at(-1)?.key, more }
}

function withoutRun(events: readonly StoredEvent[]): ListPart {
  return { run: undefined, events, count: events.length }
}

function repeatable<T>(open: () => AsyncGenerator<T>): AsyncIterable<T> {
  return { [Symbol.asyncIterator]: open }
}

function isSame(key: EventKey, other: EventKey): boolean {
  return key.name === other.name && key.namespace === other.namespace
}
