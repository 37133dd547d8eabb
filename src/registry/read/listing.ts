/** Lists: reads page after page of one snapshot, and makes the continue token. */
import { setImmediate } from 'node:timers/promises'
import { StorageError } from '../../storage/errors.ts'
import { pathOf } from '../../storage/event-scope.ts'
import type { ReadStorage } from '../../storage/read-storage.ts'
import type { Version } from '../../storage/resource-version.ts'
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
} from '../../storage/storage.ts'
import { pageExpired, type ResourceNames, statusOfStorageError } from '../storage-errors.ts'
import { encodeContinue } from './continue-token.ts'
import type { ListPosition } from './list-position.ts'

/** The default number of events in a piece of a long list. */
const pieceItemsUsual = 500
/** The bytes of a piece; encoding it takes some ten milliseconds in the slowest format. */
const pieceBytesMax = 256 * 1024
/**
 * The bytes of a page that is read from the store, for a state that is no longer in memory. For a
 * limit beyond that, the end of the list is found first, and then everything is read page by page.
 */
const bytesEnough = 1024 * 1024
/** A limit up to this is read at once: the last key is needed before anything is sent. */
const wholePageItems = 10_000

export interface ListQuery extends ListPosition {
  readonly scope: EventScope
  /** The scope of the path: continue tokens are relative to it. */
  readonly tokenScope: EventScope
  readonly selector: EventSelector | undefined
  /** Undefined: no limit. */
  readonly limit: number | undefined
  /** Events in a piece; fewer for readers that hold a piece for long, or do much work per event. */
  readonly pieceItems?: number | undefined
  /** Set by readers that cache encoded runs. */
  readonly recall?: RunsOptions['recall'] | undefined
  /**
   * Called for each page that is read from the store for this list alone, with the bytes of its
   * events; what it throws ends the list.
   */
  readonly onStoreRead?: ((bytes: number) => void) | undefined
  readonly signal: AbortSignal
}

/** A list that has started: its metadata is known, and its items are read lazily. */
export interface EventListing {
  readonly version: Version
  /** Set when the limit was reached before the end. */
  readonly continueToken: string | undefined
  readonly remainingItemCount: number | undefined
  /** In order, at least one piece, all of one state. Can be iterated several times. */
  readonly pieces: AsyncIterable<readonly StoredEvent[]>
  /** The same as parts, for a reader with `recall` that wants all of a long list. */
  readonly parts?: AsyncIterable<readonly ListPart[]> | undefined
  /** The only piece, when there is one. */
  readonly whole: readonly StoredEvent[] | undefined
}

export class EventLister {
  readonly #storage: ReadStorage
  readonly #names: ResourceNames

  constructor(storage: ReadStorage, names: ResourceNames) {
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
    const { at, notOlderThan, after, versionText } = query
    try {
      return await this.#page(query, { at, notOlderThan, after, limit: size })
    } catch (error) {
      if (!(error instanceof StorageError)) throw error
      if (error.kind === 'compacted' && after !== undefined) {
        throw pageExpired(this.#token(query, after, undefined))
      }
      throw statusOfStorageError(await this.#withVersion(error, query.signal), this.#names, {
        wanted: at ?? notOlderThan,
        versionText,
        isRead: true,
      })
    }
  }

  /** The error about a future version, with the current version, which the error of etcd lacks. */
  async #withVersion(error: StorageError, signal: AbortSignal): Promise<StorageError> {
    if (error.kind !== 'future' || error.version !== undefined) return error
    // If the current version cannot be read, the error has none.
    const version = await this.#storage.currentVersion({ signal }).catch(() => undefined)
    return new StorageError({ kind: 'future', message: error.message, version, cause: error })
  }

  /** Finds the end of a list with a very large limit: reads up to it, and keeps nothing. */
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

  /** Undefined when runs are useless: only some of their events are listed, or none is cached. */
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
    let { after } = query
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

  async #page(
    { scope, selector, signal, onStoreRead }: ListQuery,
    options: Pick<ListOptions, 'at' | 'notOlderThan' | 'after' | 'limit'>,
  ): Promise<EventPage> {
    const page = await this.#storage.list(scope, { ...options, bytesEnough, selector, signal })
    if (page.connection !== undefined && onStoreRead !== undefined) {
      onStoreRead(page.items.reduce((sum, { body }) => sum + body.length, 0))
    }
    return page
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

/** Yields to the event loop between two pieces. */
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

/** A piece has at least one event, however long it is. */
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

/** Splits a run that is too long to be encoded at once; its pieces are not cached. */
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
  return pathOf(key) === pathOf(other)
}
