/** Lists: reads page after page of one snapshot, and makes the continue token. */
import type { StatusError } from '../../api/status.ts'
import type { Lane } from '../../lib/run-queue.ts'
import { recorded, type Traced } from '../../lib/tracing/span.ts'
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
  StoredEvent,
} from '../../storage/storage.ts'
import { pageExpired, type ResourceNames, statusOfStorageError } from '../storage-errors.ts'
import { encodeContinue } from './continue-token.ts'
import {
  asRuns,
  inBounds,
  inPieces,
  isOnePiece,
  type Piecewise,
  pieceItemsOf,
  pieceItemsUsual,
  repeatable,
} from './list-pieces.ts'
import type { ListPosition } from './list-position.ts'

/**
 * The bytes of a page that is read from the store, for a state that is no longer in memory. For a
 * limit beyond that, the end of the list is found first, and then everything is read page by page.
 */
const bytesEnough = 1024 * 1024
/** A limit up to this is read at once: the last key is needed before anything is sent. */
const wholePageItems = 10_000

export interface ListQuery extends ListPosition, Piecewise, Traced {
  readonly scope: EventScope
  /** The scope of the path: continue tokens are relative to it. */
  readonly tokenScope: EventScope
  readonly selector: EventSelector | undefined
  /** Undefined: no limit. */
  readonly limit: number | undefined
  /** The list ends with this page, also if more would follow. */
  readonly isOnlyPage?: boolean | undefined
  /** Set by readers that cache encoded runs. */
  readonly recall?: RunsOptions['recall'] | undefined
  /**
   * Called for each page that is read from the store for this list alone, with the bytes of its
   * events; what it throws ends the list.
   */
  readonly onStoreRead?: ((bytes: number) => void) | undefined
  readonly signal: AbortSignal
  /** Whose time the list uses. */
  readonly lane: Lane
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
  /** How many events stay in memory for as long as the pieces are read. */
  readonly retainedItems: number
}

export class EventLister {
  readonly #storage: ReadStorage
  readonly #names: ResourceNames

  constructor(storage: ReadStorage, names: ResourceNames) {
    this.#storage = storage
    this.#names = names
  }

  async list(wanted: ListQuery): Promise<EventListing> {
    const limit = wanted.limit ?? Number.POSITIVE_INFINITY
    const { query, first } = await this.#firstInOrder(wanted, limit)
    const isCut = first.items.length >= limit
    if (isCut || !first.more) {
      return {
        version: first.version,
        ...this.#rest(query, first, isCut && first.more ? first.items.at(-1) : undefined),
        pieces: repeatable(() => inPieces(first.items, query)),
        whole: isOnePiece(first.items, query) ? first.items : undefined,
        retainedItems: first.items.length,
      }
    }
    const end = await this.#findEnd(query, first, limit)
    return {
      version: first.version,
      continueToken: end && this.#token(query, placeOf(end.last, query), first.version),
      remainingItemCount: end?.remaining,
      pieces: repeatable(() => this.#pieces(query, first, end?.last.key)),
      parts: this.#parts(query, first.version),
      whole: undefined,
      retainedItems: first.items.length,
    }
  }

  /** Only memory has the order of time: without it, a list that did not ask for it is by key. */
  async #firstInOrder(
    query: ListQuery,
    limit: number,
  ): Promise<{ readonly query: ListQuery; readonly first: EventPage }> {
    if (query.isOrderOptional !== true || (query.order ?? 'key') === 'key') {
      return { query, first: await this.#first(query, limit) }
    }
    try {
      return { query, first: await this.#firstPage(query, limit) }
    } catch (error) {
      if (!(error instanceof StorageError)) throw error
      // Memory does not have the state. Other failures are those of the list itself.
      if (error.kind !== 'unavailable' && error.kind !== 'compacted') {
        throw await this.#inApiTerms(error, query)
      }
      const byKey = { ...query, order: 'key' as const }
      return { query: byKey, first: await this.#first(byKey, limit) }
    }
  }

  #firstPage(query: ListQuery, limit: number): Promise<EventPage> {
    const size = limit <= wholePageItems ? limit : pieceItemsOf(query)
    const { at, notOlderThan, after, afterMs } = query
    return this.#page(query, { at, notOlderThan, after, afterMs, limit: size })
  }

  async #first(query: ListQuery, limit: number): Promise<EventPage> {
    try {
      return await this.#firstPage(query, limit)
    } catch (error) {
      if (!(error instanceof StorageError)) throw error
      throw await this.#inApiTerms(error, query)
    }
  }

  async #inApiTerms(error: StorageError, query: ListQuery): Promise<StatusError> {
    const { at, notOlderThan, after, afterMs, versionText } = query
    if (error.kind === 'compacted' && after !== undefined) {
      return pageExpired(this.#token(query, { after, afterMs }, undefined))
    }
    return statusOfStorageError(await this.#withVersion(error, query.signal), this.#names, {
      wanted: at ?? notOlderThan,
      versionText,
      isRead: true,
    })
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
  ): Promise<{ readonly last: StoredEvent; readonly remaining: number | undefined } | undefined> {
    if (limit === Number.POSITIVE_INFINITY) return undefined
    let seen = first.items.length
    let page = first
    while (page.more) {
      page = await this.#next(query, first.version, {
        ...placeOf(page.items.at(-1), query),
        limit: Math.min(pieceItemsUsual, limit - seen),
      })
      seen += page.items.length
      const last = page.items.at(-1)
      if (seen === limit && page.more && last !== undefined)
        return { last, remaining: page.remaining }
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
    yield* inPieces(page.items, query)
    while (page.more) {
      page = await this.#next(query, first.version, {
        ...placeOf(page.items.at(-1), query),
        limit,
      })
      const last = end && page.items.findIndex(({ key }) => isSame(key, end))
      if (last !== undefined && last !== -1) {
        yield* inPieces(page.items.slice(0, last + 1), query)
        return
      }
      yield* inPieces(page.items, query)
    }
  }

  /** Undefined when runs are useless: only some of their events are listed, or none is cached. */
  #parts(query: ListQuery, version: Version): EventListing['parts'] {
    const { recall, selector, limit, order } = query
    if (recall === undefined || selector !== undefined || limit !== undefined) return undefined
    if ((order ?? 'key') !== 'key') return undefined
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
    options: PlaceInList & { readonly limit: number },
  ): Promise<EventPage> {
    try {
      return await this.#page(query, { ...options, at })
    } catch (error) {
      if (!(error instanceof StorageError)) throw error
      throw statusOfStorageError(error, this.#names, { wanted: at, isRead: true })
    }
  }

  async #page(
    { scope, selector, order, signal, lane, onStoreRead, span: within }: ListQuery,
    options: Pick<ListOptions, 'at' | 'notOlderThan' | 'after' | 'afterMs' | 'limit'>,
  ): Promise<EventPage> {
    const page = await recorded(within, 'storage list', (span) =>
      this.#storage.list(scope, { ...options, order, bytesEnough, selector, signal, lane, span }),
    )
    if (page.connection !== undefined && onStoreRead !== undefined) {
      onStoreRead(page.items.reduce((sum, { body }) => sum + body.length, 0))
    }
    return page
  }

  #token(query: ListQuery, place: PlaceInList, version: Version | undefined): string {
    const { tokenScope, order, selector, nowMs } = query
    const { sinceMs, untilMs } = selector?.requires ?? {}
    const isTimed = sinceMs !== undefined || untilMs !== undefined
    const { after, afterMs } = place
    if (after === undefined) throw new RangeError('a token needs the last event of its page')
    return encodeContinue(tokenScope, {
      after,
      afterMs,
      version,
      order,
      nowMs: isTimed ? nowMs : undefined,
    })
  }

  #rest(
    query: ListQuery,
    page: EventPage,
    last: StoredEvent | undefined,
  ): Pick<EventListing, 'continueToken' | 'remainingItemCount'> {
    if (last === undefined || query.isOnlyPage === true) {
      return { continueToken: undefined, remainingItemCount: undefined }
    }
    return {
      continueToken: this.#token(query, placeOf(last, query), page.version),
      remainingItemCount: page.remaining,
    }
  }
}

/** Where the next page begins. */
type PlaceInList = Pick<ListOptions, 'after' | 'afterMs'>

function placeOf(last: StoredEvent | undefined, { order = 'key' }: ListQuery): PlaceInList {
  const afterMs = order === 'key' ? undefined : last?.fields.lastSeenMs
  return { after: last?.key, afterMs }
}

function isSame(key: EventKey, other: EventKey): boolean {
  return pathOf(key) === pathOf(other)
}
