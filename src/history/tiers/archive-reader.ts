/** Reads states of the archive: chooses their files, makes them local, and queries them. */
import { badRequest, type StatusError } from '../../api/status.ts'
import { EtcdError } from '../../etcd/errors.ts'
import { LaneTurns } from '../../lib/lane-turns.ts'
import { StorageError } from '../../storage/errors.ts'
import type { Version } from '../../storage/resource-version.ts'
import type { ArchiveCut, EventScope, ListOrder, StoredEvent } from '../../storage/storage.ts'
import { fromServed } from '../../storage/stored-form.ts'
import { type EventHistogram, type TimeWindow, TooManyGroups } from '../../storage/summary.ts'
import { type Catalogue, stateOf } from '../catalogue.ts'
import { EngineDied, EngineError } from '../engine/engine-error.ts'
import type { EngineProcess } from '../engine/engine-process.ts'
import type { ArchivedEvent, ReaderJobs } from '../engine/protocol.ts'
import type { Bounds, Day, Manifest, Pointer } from '../manifest.ts'
import type { FileCache } from '../store/file-cache.ts'
import { StoreError } from '../store/object-store.ts'
import { InputFiles } from '../write/input-files.ts'
import type {
  Archive,
  ArchiveBucketsOptions,
  ArchiveGroups,
  ArchiveGroupsOptions,
  ArchivePage,
  ArchivePageOptions,
  ArchiveReading,
  ArchiveView,
} from './archive.ts'
import { LATE_MS_MAX, type Tiers } from './tiers.ts'

/** Queries at a time, of different users. The process runs fewer; the others wait in it. */
const QUERIES_MAX = 8
/** Queries of one user that run or wait; each holds a slot for requests. */
const QUERIES_PER_LANE = 4
/** Left of the time of a query for its answer. */
const ANSWER_MS = 500
/** Each attempt to fill a page from a bucket reads so many times the days of the one before. */
const DAYS_FACTOR = 4
const RETRY_AFTER_MS = 2_000
const GROUPS_MAX = 10_000
const GROUPS_BYTES_MAX = 16 * 1024 * 1024
/** Of more rows, only counts by the hour are read where they can tell: they know no objects. */
const COUNTED_ROWS_MAX = 5_000_000

export interface ArchiveReaderOptions {
  readonly catalogue: Catalogue
  readonly cache: FileCache
  readonly engine: EngineProcess<ReaderJobs>
  readonly timeoutMs: number
  readonly tiersOf: (scope: EventScope, pointer: Pointer) => Tiers
  readonly onQuery?: ((tookMs: number, result: QueryResult) => void) | undefined
}

/** `cut`: a part was served, since time ran out. `refused`: there were too many queries. */
export type QueryResult = 'served' | 'cut' | 'timeout' | 'refused' | 'failed' | 'cancelled'

export class ArchiveReader implements Archive {
  readonly #options: ArchiveReaderOptions
  readonly #turns = new LaneTurns(QUERIES_MAX)
  readonly #byLane = new Map<string, number>()

  constructor(options: ArchiveReaderOptions) {
    this.#options = options
  }

  async open(state: string | undefined, signal: AbortSignal): Promise<ArchiveView | undefined> {
    const { catalogue } = this.#options
    return inStorageTerms(async () => {
      if (state === undefined) {
        const current = await catalogue.read(signal).catch(withoutManifest)
        return current && this.#view(stateOf(current.pointer.manifest), current.manifest)
      }
      const manifest = await catalogue.manifestOf(state, signal)
      if (manifest === undefined) throw expired()
      return this.#view(state, manifest)
    })
  }

  async tiersOf(scope: EventScope, signal: AbortSignal): Promise<Tiers | undefined> {
    const { catalogue } = this.#options
    if (!catalogue.isKnown) await inStorageTerms(() => catalogue.readPointer(signal))
    return this.knownTiersOf(scope)
  }

  /** Undefined also while it is not known whether something is archived. */
  knownTiersOf(scope: EventScope): Tiers | undefined {
    const { catalogue, tiersOf } = this.#options
    const { pointer } = catalogue
    return pointer && tiersOf(scope, pointer)
  }

  completeUntil(): number {
    const { positionAtMs = 0 } = this.#options.catalogue.pointer ?? {}
    return positionAtMs - LATE_MS_MAX
  }

  #view(state: string, manifest: Manifest): ArchiveView {
    return {
      state,
      page: (scope, options) => this.#page(manifest, scope, options),
      groups: (scope, options) => this.#groups(manifest, scope, options),
      buckets: (scope, options) => this.#buckets(manifest, scope, options),
    }
  }

  async #page(
    { days }: Manifest,
    scope: EventScope,
    options: ArchivePageOptions,
  ): Promise<ArchivePage> {
    const { requires, order } = options
    const inWindow = days.filter((day) => isInScope(day, scope) && isIn(day.seen, requires))
    // A newer state may be on a later day, so only this order can do without some of the days.
    const isByDay = order === 'newest' && !this.#options.cache.isInPlace
    const sorted = inWindow.sort((one, other) => other.seen[1] - one.seen[1])
    return this.#query(options, async (reading) => {
      const read = async (count: number) =>
        this.#pageOf(await reading.open(sorted.slice(0, count)), scope, options, reading.leftMs())
      if (!isByDay) return read(sorted.length)
      for (let known = 1; ; known *= DAYS_FACTOR) {
        const found = await read(known)
        // An event of a day that was not read may come before these: days overlap.
        const unreadMs = sorted[known]?.seen[1] ?? Number.NEGATIVE_INFINITY
        const items = found.items.filter(({ fields }) => fields.lastSeenMs > unreadMs)
        const isSure = items.length === found.items.length
        if (known >= sorted.length || (isSure && (found.more || found.cut !== undefined))) {
          return found
        }
        if (reading.leftMs() < ANSWER_MS) {
          return { items, more: true, cut: cutAt(unreadMs + 1, scope, order) }
        }
      }
    })
  }

  async #pageOf(
    files: InputFiles['files'],
    scope: EventScope,
    options: ArchivePageOptions,
    timeoutMs: number,
  ): Promise<ArchivePage> {
    const { requires, order, after, afterMs, afterUid, limit, bytesMax, signal } = options
    const budgetMs = Math.max(ANSWER_MS, timeoutMs - ANSWER_MS)
    const query = { ...scope, requires, order, after, afterMs, afterUid, limit, bytesMax }
    const { events, isEnd, cutMs } = await this.#options.engine.call(
      'page',
      { ...query, files, budgetMs },
      { signal, timeoutMs },
    )
    return {
      items: events.map(storedEvent),
      more: !isEnd,
      cut: cutMs === undefined ? undefined : cutAt(cutMs, scope, order),
    }
  }

  async #groups(
    { days }: Manifest,
    scope: EventScope,
    options: ArchiveGroupsOptions,
  ): Promise<ArchiveGroups> {
    const { requires, window, groupBy } = options
    const inWindow = days.filter((day) => isInScope(day, scope) && isIn(day.occurred, window))
    const query = {
      ...scope,
      requires,
      window,
      newSince: undefined,
      groupBy,
      groupsMax: GROUPS_MAX,
      bytesMax: GROUPS_BYTES_MAX,
      rowsMax: COUNTED_ROWS_MAX,
    }
    const { signal } = options
    return this.#query(options, async (reading) => {
      const files = await reading.open(inWindow)
      const limits = { signal, timeoutMs: reading.leftMs() }
      const found = await this.#options.engine.call('groups', { ...query, files }, limits)
      if (!found.isExact) throw uncountable()
      return found
    })
  }

  async #buckets(
    { days }: Manifest,
    scope: EventScope,
    options: ArchiveBucketsOptions,
  ): Promise<EventHistogram['buckets']> {
    const { requires, bounds, by } = options
    const window = { sinceMs: bounds[0], untilMs: bounds.at(-1) }
    const inWindow = days.filter((day) => isInScope(day, scope) && isIn(day.occurred, window))
    const query = { ...scope, requires, bounds, by, namesMax: undefined }
    const { signal } = options
    return this.#query(options, async (reading) => {
      const files = await reading.open(inWindow)
      const limits = { signal, timeoutMs: reading.leftMs() }
      const found = await this.#options.engine.call('buckets', { ...query, files }, limits)
      if (!found.isExact) throw uncountable()
      if (found.buckets === undefined) throw new TooManyGroups()
      return found.buckets
    })
  }

  /** One query of a user at a time. The time to make files local counts as well. */
  async #query<T>(
    { lane, signal }: ArchiveReading,
    ask: (reading: Reading) => Promise<T>,
  ): Promise<T> {
    using _place = this.#enter(lane.name)
    return await this.#turns.take(lane, () => {
      const began = performance.now()
      const done = (result: QueryResult) =>
        this.#options.onQuery?.(performance.now() - began, result)
      return inStorageTerms(async () => {
        using reading = new Reading(this.#options, signal)
        const answer = await reading.inTime(ask(reading))
        done(isCut(answer) ? 'cut' : 'served')
        return answer
      }).catch((error: unknown) => {
        done(signal.aborted ? 'cancelled' : resultOf(error))
        throw error
      })
    })
  }

  #enter(lane: string): Disposable {
    const count = this.#byLane.get(lane) ?? 0
    if (count >= QUERIES_PER_LANE) {
      this.#options.onQuery?.(0, 'refused')
      throw tooMany()
    }
    this.#byLane.set(lane, count + 1)
    return {
      [Symbol.dispose]: () => {
        const left = (this.#byLane.get(lane) ?? 1) - 1
        if (left === 0) this.#byLane.delete(lane)
        else this.#byLane.set(lane, left)
      },
    }
  }
}

/** The files of one query, and its time. */
class Reading implements Disposable {
  readonly #options: Pick<ArchiveReaderOptions, 'catalogue' | 'cache' | 'timeoutMs'>
  readonly #signal: AbortSignal
  readonly #limit: AbortSignal
  readonly #untilMs: number
  readonly #inputs = new InputFiles()
  readonly #opened = new Set<Day>()

  constructor(
    options: Pick<ArchiveReaderOptions, 'catalogue' | 'cache' | 'timeoutMs'>,
    signal: AbortSignal,
  ) {
    this.#options = options
    this.#limit = AbortSignal.timeout(options.timeoutMs)
    this.#signal = AbortSignal.any([signal, this.#limit])
    this.#untilMs = performance.now() + options.timeoutMs
  }

  /** The files of these days, and of those that were opened before. */
  async open(days: readonly Day[]): Promise<InputFiles['files']> {
    const { catalogue, cache } = this.#options
    for (const day of days) {
      if (this.#opened.has(day)) continue
      const { files } = await catalogue.files(day, this.#signal)
      for (const file of files) await this.#inputs.add(cache, day, file, this.#signal)
      this.#opened.add(day)
    }
    return this.#inputs.files
  }

  /** At least 1 unless the time is over. */
  leftMs(): number {
    return Math.max(this.#limit.aborted ? 0 : 1, Math.floor(this.#untilMs - performance.now()))
  }

  async inTime<T>(work: Promise<T>): Promise<T> {
    try {
      return await work
    } catch (error) {
      if (this.leftMs() === 0) throw tookTooLong(this.#options.timeoutMs, error)
      throw error
    }
  }

  [Symbol.dispose](): void {
    this.#inputs[Symbol.dispose]()
  }
}

function isCut(answer: unknown): boolean {
  return (
    typeof answer === 'object' && answer !== null && 'cut' in answer && answer.cut !== undefined
  )
}

function resultOf(error: unknown): QueryResult {
  if (!(error instanceof StorageError)) return 'failed'
  if (error.kind === 'exhausted') return 'timeout'
  return error.kind === 'overloaded' ? 'refused' : 'failed'
}

/** The place in the list at which the events of that time begin, or with `newest` end. */
function cutAt(ms: number, { cluster, namespace }: EventScope, order: ListOrder): ArchiveCut {
  const isNewest = order === 'newest'
  const [part, afterMs] = isNewest ? [FIRST_PART, ms] : [LAST_PART, ms - 1]
  return { after: { cluster: cluster ?? part, namespace: namespace ?? part, name: part }, afterMs }
}

/** Sorts before and after all names. */
const FIRST_PART = '!'
const LAST_PART = '~'

function isInScope({ cluster }: Day, scope: EventScope): boolean {
  return scope.cluster === undefined || scope.cluster === cluster
}

function isIn([from, to]: Bounds<number>, { sinceMs, untilMs }: TimeWindow): boolean {
  return (sinceMs === undefined || to >= sinceMs) && (untilMs === undefined || from < untilMs)
}

function storedEvent({ key, json, trailer, version, writtenAtMs }: ArchivedEvent): StoredEvent {
  const known = { key, trailer: bufferOf(trailer), version: version as Version, writtenAtMs }
  return fromServed(known, bufferOf(json))
}

function bufferOf({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, length)
}

/** What fails in the archive, as failures of a storage. */
async function inStorageTerms<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw storageError(error)
  }
}

function storageError(error: unknown): unknown {
  if (error instanceof StoreError) return ofStore(error)
  if (error instanceof EngineError) return ofEngine(error)
  return error instanceof EtcdError ? unavailable('etcd does not respond', error) : error
}

function ofStore(error: StoreError): StorageError {
  // A state that is older than a day, or was purged.
  if (error.kind === 'missing') return expired(error)
  if (error.kind === 'full') return tooLarge(error)
  return unavailable('the store of the history cannot be read', error)
}

function ofEngine(error: EngineError): StorageError {
  if (error instanceof EngineDied) return unavailable('the process that reads history ended', error)
  if (error.kind === 'timeout') return tookTooLong(undefined, error)
  if (error.kind === 'memory') return tooLarge(error)
  if (error.kind === 'busy') return tooMany(error)
  if (isMissingFile(error)) return expired(error)
  return unavailable('history cannot be read now', error)
}

/** The manifest that etcd names is not of an earlier state. */
function withoutManifest(error: unknown): never {
  if (!(error instanceof StoreError && error.kind === 'missing')) throw error
  const reason =
    'the store of the history does not have the manifest that etcd names: all replicas need the same --history'
  throw unavailable(reason, error)
}

/** A file in a directory that was purged, or replaced more than a day ago. */
function isMissingFile({ message }: EngineError): boolean {
  return /No files found|No such file/.test(message)
}

function tooMany(cause?: Error): StorageError {
  const reason = 'too many queries of the history wait'
  const retryAfterMs = RETRY_AFTER_MS
  return new StorageError({ kind: 'overloaded', message: reason, reason, retryAfterMs, cause })
}

function unavailable(reason: string, cause: Error): StorageError {
  const message = `${reason}: ${cause.message}`
  const retryAfterMs = RETRY_AFTER_MS
  return new StorageError({ kind: 'unavailable', message, reason, retryAfterMs, cause })
}

function expired(cause?: unknown): StorageError {
  return new StorageError({
    kind: 'compacted',
    message: 'this state of the archive is gone',
    cause,
  })
}

function uncountable(): StatusError {
  return badRequest(
    'history cannot be counted by labels or shards: select by fields, or a time that memory has',
  )
}

const NARROW =
  'narrow it by namespace, object or reason, or ask for a shorter time with since and until'

function tookTooLong(timeoutMs: number | undefined, cause: unknown): StorageError {
  const time = timeoutMs === undefined ? 'its time' : `${Math.round(timeoutMs / 1000)} s`
  const reason = `the query of the history took longer than ${time}: ${NARROW}`
  return new StorageError({ kind: 'exhausted', message: reason, reason, cause })
}

function tooLarge(cause: Error): StorageError {
  const reason = `the query of the history needs more memory than it has: ${NARROW}`
  return new StorageError({
    kind: 'exhausted',
    message: `${reason}: ${cause.message}`,
    reason,
    cause,
  })
}
