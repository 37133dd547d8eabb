/** Lists: reads page after page of one snapshot, and makes the continue token. */
import type { StatusError } from '../../api/status.ts'
import type { Lane } from '../../lib/run-queue.ts'
import { recorded, type Traced } from '../../lib/tracing/span.ts'
import { StorageError } from '../../storage/errors.ts'
import type { Version } from '../../storage/resource-version.ts'
import type {
  ArchiveCut,
  EventPage,
  EventScope,
  EventSelector,
  ListOptions,
  ReadStorage,
  StoredEvent,
} from '../../storage/storage.ts'
import { pageExpired, type ResourceNames, statusOfStorageError } from '../storage-errors.ts'
import { encodeContinue } from './continue-token.ts'
import {
  isOnePiece,
  ListCursor,
  type ListRest,
  type PieceSize,
  pieceItemsOf,
} from './list-cursor.ts'
import type { ListPosition } from './list-position.ts'

/**
 * The bytes of a page that is read from the store, for a state that is no longer in memory. For a
 * limit beyond that, the end of the list is found first, and then everything is read page by page.
 */
const bytesEnough = 1024 * 1024
/** A limit up to this is read at once: the last key is needed before anything is sent. */
const wholePageItems = 10_000
/** Each page that is read from the archive is a query, so long lists are read in large pages. */
const archivePageItems = 5_000
/** The page size for finding the end of a list. */
const searchItems = 500

const noMore: ListEnd = { continueToken: undefined, remainingItemCount: undefined }

export interface ListQuery extends ListPosition, PieceSize, Traced {
  readonly scope: EventScope
  /** The scope of the path: continue tokens are relative to it. */
  readonly tokenScope: EventScope
  readonly selector: EventSelector | undefined
  /** Undefined: no limit. */
  readonly limit: number | undefined
  /** The list ends with this page, even if more events follow. */
  readonly isOnlyPage?: boolean | undefined
  /** Whether the list may continue in the archive. Default false. */
  readonly readsArchive?: boolean | undefined
  /**
   * Called for each page that is read from the store or the archive for this list alone, with the
   * bytes of its events; what it throws ends the list.
   */
  readonly onStoreRead?: ((bytes: number) => void) | undefined
  readonly signal: AbortSignal
  /** Whose time the list uses. */
  readonly lane: Lane
}

/** A list that has started: its metadata is known, and its events are read as they are needed. */
export interface EventListing {
  readonly version: Version
  /** Set when the limit was reached before the end. */
  readonly continueToken: string | undefined
  readonly remainingItemCount: number | undefined
  /** Set when time ran out in the archive. */
  readonly cut?: ArchiveCut | undefined
  /** The events that were read to start the list. They stay in memory for as long as it is read. */
  readonly first: readonly StoredEvent[]
  /** Whether `first` is the whole list and small enough to be encoded at once. */
  readonly isShort: boolean
  /** Reads the list from its beginning, at one version. Can be called several times. */
  open(): ListCursor
}

/** A list of events that have all been read. */
export function listingOf(
  first: readonly StoredEvent[],
  meta: Pick<EventListing, 'version' | 'cut'> & Partial<ListEnd>,
  size: PieceSize,
): EventListing {
  return {
    version: meta.version,
    continueToken: meta.continueToken,
    remainingItemCount: meta.remainingItemCount,
    cut: meta.cut,
    first,
    isShort: isOnePiece(first, size),
    open: () => new ListCursor(first, undefined, size),
  }
}

/** How a list ends: both are undefined when there are no more events. */
type ListEnd = Pick<EventListing, 'continueToken' | 'remainingItemCount'>

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
    const { version, items } = first
    const cut = first.archive?.cut
    if (cut !== undefined) {
      const continueToken = query.isOnlyPage ? undefined : this.#token(query, cut, first)
      return listingOf(items, { version, continueToken, cut }, query)
    }
    const isCut = items.length >= limit
    if (isCut || !first.more) {
      return listingOf(items, { version, ...this.#endOf(query, first, isCut) }, query)
    }
    const end = await this.#findEnd(query, first, limit)
    const rest = this.#rest(query, first, limit)
    return {
      version,
      ...end,
      first: items,
      isShort: false,
      open: () => new ListCursor(items, rest, query),
    }
  }

  /** Only memory has the order of time. Without it, a list that did not request that order is by key. */
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
    const { at, notOlderThan, after, afterMs, afterUid } = query
    return this.#page(query, { at, notOlderThan, after, afterMs, afterUid, limit: size })
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
      return pageExpired(this.#token(query, { after, afterMs }, {}))
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

  /** Finds the end of a list with a very large limit: reads up to it, and retains nothing. */
  async #findEnd(query: ListQuery, first: EventPage, limit: number): Promise<ListEnd> {
    if (limit === Number.POSITIVE_INFINITY) return noMore
    let seen = first.items.length
    let page = first
    while (page.more && seen < limit) {
      page = await this.#next(query, first, {
        ...placeOf(page.items.at(-1), query, page),
        limit: Math.min(searchItems, limit - seen),
      })
      seen += page.items.length
    }
    return this.#endOf(query, page, seen === limit)
  }

  #rest(query: ListQuery, first: EventPage, limit: number): ListRest {
    const { scope, selector, order = 'key' } = query
    const { version: at } = first
    const isWhole = selector === undefined && query.limit === undefined && order === 'key'
    const isDivided = isWhole && first.connection === undefined
    const isEndless = first.archive !== undefined && query.limit === undefined
    return {
      limit,
      page: (last, limit) =>
        this.#next(query, first, {
          ...placeOf(last, query, first),
          limit: isEndless ? Math.max(limit, archivePageItems) : limit,
        }),
      runs: (last, limit) =>
        isDivided
          ? this.#storage.runs?.(scope, { at, after: placeOf(last, query, first).after, limit })
          : undefined,
    }
  }

  /** Has events unless the list ends: if time runs out in the archive, it goes on from there. */
  async #next(
    query: ListQuery,
    { version: at, archive }: Pick<EventPage, 'version' | 'archive'>,
    options: PlaceInList & { readonly limit: number },
  ): Promise<EventPage> {
    try {
      let page: EventPage
      let place: PlaceInList | undefined = options
      do {
        page = await this.#page(query, { ...options, ...place, at, archive })
        place = page.archive?.cut
      } while (place !== undefined && page.items.length === 0)
      return page
    } catch (error) {
      if (!(error instanceof StorageError)) throw error
      throw statusOfStorageError(error, this.#names, { wanted: at, isRead: true })
    }
  }

  async #page(
    query: ListQuery,
    options: PlaceInList & Pick<ListOptions, 'at' | 'notOlderThan' | 'limit' | 'archive'>,
  ): Promise<EventPage> {
    const { scope, selector, order, signal, lane, onStoreRead, span: within } = query
    const archive = query.readsArchive
      ? (options.archive ?? { state: query.archiveState })
      : undefined
    const reading = { ...options, order, bytesEnough, selector, signal, lane, archive }
    const page = await recorded(within, 'storage list', (span) =>
      this.#storage.list(scope, { ...reading, span }),
    )
    const isOwn = page.connection !== undefined || page.archive !== undefined
    if (isOwn && onStoreRead !== undefined) {
      onStoreRead(page.items.reduce((sum, { body }) => sum + body.length, 0))
    }
    return page
  }

  #token(
    query: ListQuery,
    place: PlaceInList,
    { version, archive }: Partial<Pick<EventPage, 'version' | 'archive'>>,
  ): string {
    const { tokenScope, order, selector, nowMs } = query
    const { sinceMs, untilMs } = selector?.requires ?? {}
    const isTimed = sinceMs !== undefined || untilMs !== undefined
    const { after, afterMs, afterUid } = place
    if (after === undefined) throw new RangeError('a token needs the last event of its page')
    return encodeContinue(tokenScope, {
      after,
      afterMs,
      version,
      order,
      nowMs: isTimed ? nowMs : undefined,
      archive: archive?.state,
      afterUid: archive && afterUid,
    })
  }

  /** `isCut`: the list ends with this page because of its limit. */
  #endOf(query: ListQuery, page: EventPage, isCut: boolean): ListEnd {
    const last = page.items.at(-1)
    if (!isCut || !page.more || last === undefined || query.isOnlyPage === true) return noMore
    return {
      continueToken: this.#token(query, placeOf(last, query, page), page),
      remainingItemCount: page.remaining,
    }
  }
}

/** Where the next page begins. */
type PlaceInList = Pick<ListOptions, 'after' | 'afterMs' | 'afterUid'>

/** `last` is undefined at the start of the list, which may be a later page itself. */
function placeOf(
  last: StoredEvent | undefined,
  query: ListQuery,
  { archive }: Pick<EventPage, 'archive'>,
): PlaceInList {
  if (last === undefined) {
    return { after: query.after, afterMs: query.afterMs, afterUid: query.afterUid }
  }
  const isByKey = (query.order ?? 'key') === 'key'
  return {
    after: last.key,
    afterMs: isByKey ? undefined : last.fields.lastSeenMs,
    // Events of the store have different keys; to read their fields takes time.
    afterUid: archive && (last.fields.uid || undefined),
  }
}
