/**
 * Lists over both tiers: the events in memory, and behind them those of the archive. Both are read in
 * the order of the list from the same place, and merged. An event that is in both appears once, with
 * the state in memory, if that state is in the list; otherwise with the newest archived state that is.
 * Events that had the same key are in the order of their uids.
 */
import { exactly } from '../../api/selectors/value-pattern.ts'
import { StorageError } from '../../storage/errors.ts'
import { pathOf } from '../../storage/event-scope.ts'
import type { Version } from '../../storage/resource-version.ts'
import type {
  ArchiveCut,
  EventKey,
  EventPage,
  EventScope,
  EventSelector,
  ListOptions,
  ListOrder,
  PulledWatch,
  ReadOptions,
  ReadStorage,
  RunsOptions,
  RunsPage,
  StoredEvent,
  WatchOptions,
} from '../../storage/storage.ts'
import { compareBytes } from '../read/byte-order.ts'
import type { Archive, ArchiveView } from './archive.ts'

/** Bodies that a page reads from the archive. */
const PAGE_BYTES_MAX = 8 * 1024 * 1024
/** How long one page may search for events that match. */
const SEARCH_MS_MAX = 10_000

/** Memory, and behind it the archive, for lists that ask for it. Everything else is memory's. */
export class TieredStorage implements ReadStorage {
  readonly #memory: ReadStorage
  readonly #archive: Archive

  constructor(memory: ReadStorage, archive: Archive) {
    this.#memory = memory
    this.#archive = archive
  }

  get(key: EventKey, options: ReadOptions): Promise<StoredEvent> {
    return this.#memory.get(key, options)
  }

  watch(scope: EventScope, options: WatchOptions): PulledWatch {
    return this.#memory.watch(scope, options)
  }

  runs(scope: EventScope, options: RunsOptions): RunsPage | undefined {
    return this.#memory.runs?.(scope, options)
  }

  currentVersion(options: { readonly signal: AbortSignal }): Promise<Version> {
    return this.#memory.currentVersion(options)
  }

  async list(scope: EventScope, options: ListOptions): Promise<EventPage> {
    if (options.archive === undefined || !(await this.#reachesBack(scope, options))) {
      return this.#memory.list(scope, options)
    }
    const page = await this.#memory.list(scope, { ...options, isContinued: true })
    if (page.connection !== undefined) throw notInMemory(options)
    const live = { ...page, items: [...(await this.#sameKey(options, page)), ...page.items] }
    // Read after the version: what was deleted before it is in this state of the archive.
    const view = await this.#archive.open(options.archive.state, options.signal)
    if (view === undefined) return live
    return this.#merged(scope, options, live, view)
  }

  /** A page of a list that has read the archive reads it as well, whatever has changed since. */
  async #reachesBack(
    scope: EventScope,
    { archive, selector, signal }: ListOptions,
  ): Promise<boolean> {
    const { sinceMs, untilMs } = selector?.requires ?? {}
    if (sinceMs === undefined && untilMs === undefined) return false
    if (archive?.state !== undefined) return true
    const tiers = await this.#archive.tiersOf(scope, signal)
    return tiers !== undefined && (sinceMs ?? Number.NEGATIVE_INFINITY) < tiers.memoryFromMs
  }

  async #merged(
    scope: EventScope,
    options: ListOptions,
    live: EventPage,
    view: ArchiveView,
  ): Promise<EventPage> {
    const { order = 'key', limit } = options
    const found = await this.#archived(scope, options, { live, view })
    const compare = comparison(order)
    // What comes after the end of one of the two parts is not known yet.
    const ends = [lastOf(live), found.end].flatMap((end) => (end === undefined ? [] : placeOf(end)))
    if (found.cut !== undefined) ends.push(placeOfCut(found.cut))
    const isKnown = (stored: StoredEvent) => ends.every((end) => compare(placeOf(stored), end) <= 0)
    const all = [...live.items, ...found.items]
      .filter(isKnown)
      .sort((one, other) => compare(placeOf(one), placeOf(other)))
    const items = all.slice(0, limit)
    const more = ends.length > 0 || all.length > items.length
    const last = lastOf(live)
    const isCut =
      found.cut !== undefined &&
      all.length === items.length &&
      (last === undefined || compare(placeOf(last), placeOfCut(found.cut)) > 0)
    const { version } = live
    const archive = { state: view.state, cut: isCut ? found.cut : undefined }
    return { items, version, more, remaining: undefined, archive }
  }

  /** Reads on until the page is full: the archive may return events that do not match. */
  async #archived(
    scope: EventScope,
    options: ListOptions,
    { live, view }: { readonly live: EventPage; readonly view: ArchiveView },
  ): Promise<Found> {
    const { order = 'key', selector, limit, signal, lane } = options
    const items: StoredEvent[] = []
    let bytes = 0
    const untilMs = performance.now() + SEARCH_MS_MAX
    let { after, afterMs, afterUid } = options
    for (;;) {
      const page = await view.page(scope, {
        requires: selector?.requires ?? {},
        order,
        after,
        afterMs,
        afterUid,
        limit,
        bytesMax: PAGE_BYTES_MAX,
        signal,
        lane,
      })
      items.push(...(await this.#onlyArchived(page.items, options, live.version)))
      bytes += bytesOf(page.items)
      if (page.cut !== undefined) return { items, end: undefined, cut: page.cut }
      const last = page.items.at(-1)
      if (!page.more || last === undefined) return { items, end: undefined, cut: undefined }
      if (isEnough(items, limit, bytes)) return { items, end: last, cut: undefined }
      after = last.key
      afterMs = order === 'key' ? undefined : last.fields.lastSeenMs
      afterUid = last.fields.uid || undefined
      if (performance.now() > untilMs) {
        return { items, end: undefined, cut: { after, afterMs, afterUid } }
      }
    }
  }

  /** Those that match, without what memory has in this list. */
  async #onlyArchived(
    items: readonly StoredEvent[],
    { selector, signal, lane }: ListOptions,
    version: Version,
  ): Promise<readonly StoredEvent[]> {
    const left: StoredEvent[] = []
    for (const stored of items) {
      if (selector?.matches(stored) === false) continue
      const live = await this.#liveAt(stored.key, { version, signal, lane })
      const isSame = live !== undefined && live.fields.uid === stored.fields.uid
      if (isSame && selector?.matches(live) !== false) continue
      left.push(stored)
    }
    return left
  }

  /** The event in memory with the key of the last event of the page before, if it comes after that. */
  async #sameKey(
    { after, afterMs, afterUid, order = 'key', selector, signal, lane }: ListOptions,
    { version }: EventPage,
  ): Promise<readonly StoredEvent[]> {
    if (after === undefined || afterUid === undefined) return []
    const live = await this.#liveAt(after, { version, signal, lane })
    if (live === undefined || selector?.matches(live) === false) return []
    const isThere = order === 'key' || live.fields.lastSeenMs === afterMs
    const { uid } = live.fields
    return isThere && (order === 'newest' ? uid < afterUid : uid > afterUid) ? [live] : []
  }

  async #liveAt(
    key: EventKey,
    { version, signal, lane }: Pick<ListOptions, 'signal' | 'lane'> & Pick<EventPage, 'version'>,
  ): Promise<StoredEvent | undefined> {
    const { cluster, namespace } = key
    const { items } = await this.#memory.list(
      { cluster, namespace },
      { at: version, selector: named(key), limit: 1, isOnlyPage: true, signal, lane },
    )
    return items[0]
  }
}

interface Found {
  readonly items: readonly StoredEvent[]
  /** The last event that was read, if others follow: what comes after it is not known yet. */
  readonly end: StoredEvent | undefined
  readonly cut: ArchiveCut | undefined
}

function bytesOf(items: readonly StoredEvent[]): number {
  return items.reduce((sum, { body }) => sum + body.length, 0)
}

/** `bytes` were read for these items. */
function isEnough(items: readonly StoredEvent[], limit: number, bytes: number): boolean {
  return items.length >= limit || (items.length > 0 && bytes >= PAGE_BYTES_MAX)
}

function named({ name }: EventKey): EventSelector {
  return { matches: ({ key }) => key.name === name, requires: { names: exactly(name) } }
}

/** The last event of a page, if others follow. */
function lastOf({ items, more }: EventPage): StoredEvent | undefined {
  return more ? items.at(-1) : undefined
}

/** Where an event is in a list. */
interface Place {
  readonly ms: number
  readonly path: string
  readonly uid: string
}

function placeOf({ key, fields }: StoredEvent): Place {
  return { ms: fields.lastSeenMs, path: pathOf(key), uid: fields.uid }
}

function placeOfCut({ after, afterMs = 0, afterUid = '' }: ArchiveCut): Place {
  return { ms: afterMs, path: pathOf(after), uid: afterUid }
}

function comparison(order: ListOrder): (one: Place, other: Place) => number {
  const sign = order === 'newest' ? -1 : 1
  return (one, other) =>
    sign *
    ((order === 'key' ? 0 : one.ms - other.ms) ||
      compareBytes(one.path, other.path) ||
      compareBytes(one.uid, other.uid))
}

/** To look up each archived event in etcd would take thousands of reads. */
function notInMemory({ at }: ListOptions): StorageError {
  const reason = 'history is listed only while all events are in memory'
  const kind = at === undefined ? 'unavailable' : 'compacted'
  return new StorageError({ kind, message: reason, reason })
}
