/**
 * Writes the archive. One elected replica follows the changes of all events and collects them in a
 * segment; a segment ends after some minutes or megabytes, and is then durable in this order: files,
 * lists of days, manifest, pointer in etcd. Everything before the pointer can be repeated: names are
 * never reused, and what no manifest names is deleted a day later. After any other failure the work
 * starts again from the position in etcd.
 *
 * When etcd no longer has the changes since the position, or there is no position yet, all events are
 * read instead, and those that changed since are archived. Nothing is committed before all of them
 * are written, so that a repeated attempt counts no occurrence twice.
 */
import { Leadership } from '../../election/leadership.ts'
import type { Term } from '../../election/term.ts'
import type { EtcdClient } from '../../etcd/client.ts'
import { EtcdError } from '../../etcd/errors.ts'
import { LinkedAbort, pause } from '../../lib/abort.ts'
import { Backoff } from '../../lib/backoff.ts'
import { type Clock, monotonicClock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log/log.ts'
import type { Lane } from '../../lib/run-queue.ts'
import { StorageError } from '../../storage/errors.ts'
import { controlKey } from '../../storage/etcd/keys.ts'
import { allEvents } from '../../storage/event-scope.ts'
import { isAfter } from '../../storage/resource-version.ts'
import type {
  EventKey,
  EventPage,
  EventStorage,
  StoredEvent,
  WatchItem,
} from '../../storage/storage.ts'
import { NO_TRAILER } from '../../storage/trailer.ts'
import {
  type AddedFile,
  type Catalogue,
  type CommitOutcome,
  type Current,
  NO_FILES,
  type Position,
} from '../catalogue.ts'
import { EngineError } from '../engine/engine-error.ts'
import type { ArchivedChange, WriteJobs, WrittenFile } from '../engine/protocol.ts'
import { type ObjectStore, StoreError } from '../store/object-store.ts'
import { checkNewest } from './newest-manifest.ts'
import type { Upkeep } from './upkeep.ts'
import type { Uploads } from './uploads.ts'

/** One message to the process that writes. */
const MESSAGE_BYTES = 1024 * 1024
const PAGE_EVENTS = 2_000
/** The writer has memory for that much of the largest events. */
const SEGMENT_BYTES_MIN = 2 * 1024 * 1024
const GROWTH = 1.1
const RETRY_FIRST_MS = 500
const RETRY_MOST_MS = 30_000

export interface ArchiverOptions {
  readonly client: EtcdClient
  readonly prefix: string
  readonly replica: string
  /** Preferably one that reads from memory. */
  readonly storage: Pick<EventStorage, 'list' | 'watch'>
  readonly catalogue: Catalogue
  readonly store: ObjectStore
  readonly jobs: WriteJobs
  readonly uploads: Uploads
  /** Other work of the replica that writes. */
  readonly upkeep: Pick<Upkeep, 'run'>
  /** Whether the retention policy wants it archived. */
  readonly isArchived: (stored: StoredEvent) => boolean
  readonly segmentMs: number
  readonly segmentBytes: number
  readonly lane: Lane
  readonly log: Log
  readonly leaseTtlSeconds?: number | undefined
  readonly clock?: Clock | undefined
  readonly wallTime?: (() => number) | undefined
}

export interface ArchiverStatus {
  readonly isWriter: boolean
  readonly archived: number
  readonly segments: number
  readonly bytes: number
  readonly rejected: number
  /** How often etcd no longer had the changes since the position. */
  readonly gaps: number
  readonly failures: ReadonlyMap<FailedStep, number>
  /** The age of the oldest change that is not archived yet; 0 when there is none. */
  readonly pendingMs: number
}

/** Of writing a segment: by the process, to the store, and in the catalogue. */
export type FailedStep = 'encode' | 'upload' | 'publish'

/** Aborts at the end of its scope as well, so that the watch ends. */
class EndingAbort extends LinkedAbort {
  override [Symbol.dispose](): void {
    this.abort()
    super[Symbol.dispose]()
  }
}

interface Segment {
  bytes: number
  /** By the clock; undefined until the first change. */
  beganAt: number | undefined
}

export class Archiver {
  readonly #options: ArchiverOptions
  readonly #clock: Clock
  readonly #wallTime: () => number
  readonly #leaderKey: string
  readonly #leadership: Leadership
  readonly #failures = new Map<FailedStep, number>()
  /** Names of objects that are not in a manifest yet. */
  readonly #unpublished = new Set<string>()
  #segment: Segment = emptySegment()
  /** Less than the setting after a segment did not fit into memory. */
  #segmentBytes: number
  #archived = 0
  #segments = 0
  #bytes = 0
  #rejected = 0
  #gaps = 0

  constructor(options: ArchiverOptions) {
    this.#options = options
    this.#clock = options.clock ?? monotonicClock
    this.#wallTime = options.wallTime ?? Date.now
    this.#segmentBytes = options.segmentBytes
    this.#leaderKey = controlKey(options.prefix, 'archiver')
    this.#leadership = new Leadership({
      client: options.client,
      key: this.#leaderKey,
      replica: options.replica,
      clock: this.#clock,
      log: options.log,
      leaseTtlSeconds: options.leaseTtlSeconds,
      task: 'writes the archive',
    })
  }

  get status(): ArchiverStatus {
    const { beganAt } = this.#segment
    return {
      isWriter: this.#leadership.term !== undefined,
      archived: this.#archived,
      segments: this.#segments,
      bytes: this.#bytes,
      rejected: this.#rejected,
      gaps: this.#gaps,
      failures: this.#failures,
      pendingMs: beganAt === undefined ? 0 : this.#clock.now() - beganAt,
    }
  }

  /** Runs until aborted, then commits nothing more. Rejects on a bug only. */
  run(signal: AbortSignal): Promise<void> {
    const { upkeep } = this.#options
    const fence = (term: Term) => ({ key: this.#leaderKey, revision: term.revision })
    return this.#leadership.run(async (term) => {
      await Promise.all([this.#work(term), upkeep.run(term, fence(term), this.#unpublished)])
    }, signal)
  }

  async #work(term: Term): Promise<void> {
    const backoff = new Backoff({ firstMs: RETRY_FIRST_MS, mostMs: RETRY_MOST_MS })
    while (term.isHeld()) {
      try {
        await this.#archive(term, () => backoff.reset())
        await pause(backoff.next(), term.signal)
      } catch (error) {
        if (term.signal.aborted) return
        this.#failed(error, 'The archive was interrupted; starting again from its position')
        if (error instanceof EngineError && error.kind === 'memory') this.#shrink()
        await pause(backoff.next(), term.signal)
      } finally {
        this.#segment = emptySegment()
        this.#unpublished.clear()
      }
    }
  }

  /** Archives until the term is over. Rejects when it has to start again. */
  async #archive(term: Term, onCommit: () => void): Promise<void> {
    const { catalogue, jobs, log } = this.#options
    await jobs.reset()
    let current = await catalogue.read(term.signal)
    await checkNewest(this.#options.store, current?.pointer, term.signal)
    while (term.isHeld()) {
      if (current !== undefined) {
        try {
          return await this.#follow(term, current, onCommit)
        } catch (error) {
          if (!(error instanceof StorageError) || error.kind !== 'compacted') throw error
          log.warn(
            'etcd no longer has the changes since the position of the archive: all events are read, and those that were deleted since are not in the archive',
            { position: current.pointer.position },
          )
          await jobs.reset()
          this.#segment = emptySegment()
          current = await catalogue.read(term.signal)
        }
      }
      current = await this.#scan(term, current)
      onCommit()
    }
  }

  /** Follows the changes after the position, and commits segment after segment. */
  async #follow(term: Term, from: Current, onCommit: () => void): Promise<void> {
    const { storage, lane, segmentMs } = this.#options
    using ending = new EndingAbort(term.signal)
    let current = from
    let position = from.pointer.position
    let readAtMs = from.pointer.positionAtMs
    const watch = storage.watch(allEvents, { from: position, signal: ending.signal, lane })
    const batches = watch[Symbol.asyncIterator]()
    const pull = () => {
      const pulled = batches.next()
      // Handled when it is awaited, which may be after an upload.
      pulled.catch(() => {})
      return pulled
    }
    let next = pull()
    let idleSince = this.#clock.now()
    while (term.isHeld()) {
      const dueAt = (this.#segment.beganAt ?? idleSince) + segmentMs
      const batch = await within(next, dueAt - this.#clock.now(), ending.signal)
      if (batch?.done === true) return
      if (batch !== undefined) {
        await this.#append(changesIn(batch.value.items), ending.signal)
        position = batch.value.version
        readAtMs = Math.min(this.#wallTime(), lastWrite(batch.value.items))
        next = pull()
      }
      if (!this.#isDue(dueAt)) continue
      const to = { position, positionAtMs: batch === undefined ? this.#wallTime() : readAtMs }
      current = await this.#commit(term, current, await this.#flush(term, current, []), to)
      idleSince = this.#clock.now()
      onCommit()
    }
  }

  /** Large events take more memory to write than others of the same size together. */
  #shrink(): void {
    this.#segmentBytes = Math.max(SEGMENT_BYTES_MIN, this.#segmentBytes / 2)
  }

  #grow(): void {
    this.#segmentBytes = Math.min(this.#options.segmentBytes, this.#segmentBytes * GROWTH)
  }

  #isDue(dueAt: number): boolean {
    return this.#segment.bytes >= this.#segmentBytes || this.#clock.now() >= dueAt
  }

  /** Archives every event that changed after the position, or all events when there is none. */
  async #scan(term: Term, current: Current | undefined): Promise<Current> {
    const written: AddedFile[] = []
    const { position, positionAtMs } = current?.pointer ?? {}
    const isNew = ({ version }: StoredEvent) => position === undefined || isAfter(version, position)
    const previous = positionAtMs === undefined ? undefined : { unknownBeforeMs: positionAtMs }
    const beganAtMs = this.#wallTime()
    let page: EventPage | undefined
    do {
      page = await this.#page(page, term.signal)
      const changes = page.items.filter(isNew).map((stored) => ({ stored, previous }))
      await this.#append(changes, term.signal)
      if (this.#segment.bytes >= this.#segmentBytes) {
        written.push(...(await this.#flush(term, current, [])))
      }
    } while (page.more && term.isHeld())
    const files = await this.#flush(term, current, written)
    const gap = position && { from: position, to: page.version }
    if (gap !== undefined) this.#gaps++
    const to = { position: page.version, positionAtMs: beganAtMs, gap }
    return this.#commit(term, current, files, to)
  }

  #page(before: EventPage | undefined, signal: AbortSignal): Promise<EventPage> {
    const { storage, lane } = this.#options
    const after: EventKey | undefined = before?.items.at(-1)?.key
    return storage.list(allEvents, {
      at: before?.version,
      after,
      limit: PAGE_EVENTS,
      bytesEnough: MESSAGE_BYTES,
      isReadOnce: true,
      signal,
      lane,
    })
  }

  async #append(changes: Iterable<Changed>, signal: AbortSignal): Promise<void> {
    let message: ArchivedChange[] = []
    let bytes = 0
    for (const { stored, previous } of changes) {
      if (signal.aborted) return
      if (!this.#options.isArchived(stored)) continue
      message.push(archivedChange(stored, previous))
      bytes += stored.body.length
      this.#segment.beganAt ??= this.#clock.now()
      this.#segment.bytes += stored.body.length
      if (bytes < MESSAGE_BYTES) continue
      await this.#send(message)
      message = []
      bytes = 0
    }
    if (message.length > 0) await this.#send(message)
  }

  async #send(message: readonly ArchivedChange[]): Promise<void> {
    const { rejected } = await this.#options.jobs.append(message)
    for (const { key, reason } of rejected) {
      this.#rejected++
      this.#options.log.warn('An event cannot be archived', { ...key, reason })
    }
  }

  /** Writes the segment to files, and these to the store; waits while the store is away. */
  async #flush(
    term: Term,
    current: Current | undefined,
    before: readonly AddedFile[],
  ): Promise<readonly AddedFile[]> {
    const written = await this.#options.jobs.flush((current?.pointer.sequence ?? 0) + 1)
    for (const { file } of written) this.#unpublished.add(file.name).add(file.rollup.name)
    try {
      await this.#upload(written, term)
    } catch (error) {
      await this.#options.uploads.discard(written)
      throw error
    }
    const { beganAt } = this.#segment
    this.#segment = { ...emptySegment(), beganAt }
    this.#count(written)
    return [...before, ...written]
  }

  async #upload(written: readonly WrittenFile[], term: Term): Promise<void> {
    const backoff = new Backoff({ firstMs: RETRY_FIRST_MS, mostMs: RETRY_MOST_MS })
    while (term.isHeld()) {
      try {
        await this.#options.uploads.all(written, term.signal)
        return
      } catch (error) {
        if (term.signal.aborted || !(error instanceof StoreError)) throw error
        this.#failed(error, 'Could not write to the store of the archive; will retry')
        await pause(backoff.next(), term.signal)
      }
    }
    throw new StoreError('unavailable', 'the term ended before the upload')
  }

  #count(written: readonly WrittenFile[]): void {
    for (const { file } of written) {
      this.#archived += file.rows
      this.#bytes += file.bytes + file.rollup.bytes
    }
  }

  /**
   * Retries while the store is away or a commit of files alone came first. Rejects when the term is
   * over, or the position was moved: by a commit of this term that failed here, and that etcd applied
   * later. It has the same changes.
   */
  async #commit(
    term: Term,
    from: Current | undefined,
    added: readonly AddedFile[],
    position: Position,
  ): Promise<Current> {
    const backoff = new Backoff({ firstMs: RETRY_FIRST_MS, mostMs: RETRY_MOST_MS })
    let current = from
    while (term.isHeld()) {
      try {
        const outcome = await this.#commitOnce(term, current, added, position)
        if (outcome === 'lost') break
        if (outcome !== 'moved') return outcome
        current = await this.#options.catalogue.read(term.signal)
        if (current?.pointer.position !== from?.pointer.position) break
      } catch (error) {
        if (term.signal.aborted || !(error instanceof StoreError)) throw error
        this.#failed(error, 'Could not write the manifest of the archive; will retry', 'publish')
        await pause(backoff.next(), term.signal)
      }
    }
    throw new EtcdError({ kind: 'outdated', message: 'another commit has moved the position' })
  }

  async #commitOnce(
    term: Term,
    current: Current | undefined,
    added: readonly AddedFile[],
    position: Position,
  ): Promise<CommitOutcome> {
    const { catalogue } = this.#options
    const { signal } = term
    const fence = { key: this.#leaderKey, revision: term.revision }
    const isEmpty = added.length === 0 && position.gap === undefined
    const outcome =
      isEmpty && current !== undefined
        ? await catalogue.advance(current, position, fence)
        : await catalogue.commit(current, { ...NO_FILES, added, position }, { signal, fence })
    if (typeof outcome !== 'string') {
      this.#segment = emptySegment()
      this.#unpublished.clear()
      if (added.length > 0) this.#segments++
      this.#grow()
    }
    return outcome
  }

  /** Throws what is a bug. */
  #failed(error: unknown, message: string, step = stepOf(error)): void {
    if (step === undefined) throw error
    this.#failures.set(step, (this.#failures.get(step) ?? 0) + 1)
    this.#options.log.warn(message, { err: error })
  }
}

interface Changed {
  readonly stored: StoredEvent
  readonly previous: StoredEvent | { readonly unknownBeforeMs: number } | undefined
}

/** Deletes are not archived: the state before is. */
function* changesIn(items: readonly WatchItem[]): Iterable<Changed> {
  for (const item of items) if (item.type === 'put') yield item
}

/** When the last of the changes was written: others may follow that were written since. */
function lastWrite(items: readonly WatchItem[]): number {
  return items.at(-1)?.stored.writtenAtMs ?? Number.POSITIVE_INFINITY
}

function archivedChange(stored: StoredEvent, previous: Changed['previous']): ArchivedChange {
  const { key, body, trailer = NO_TRAILER, version, writtenAtMs } = stored
  return {
    key,
    body,
    trailer,
    version,
    writtenAtMs,
    previous:
      previous === undefined || 'unknownBeforeMs' in previous
        ? previous
        : { body: previous.body, trailer: previous.trailer ?? NO_TRAILER },
  }
}

function stepOf(error: unknown): FailedStep | undefined {
  if (error instanceof StoreError) return 'upload'
  if (error instanceof EtcdError || error instanceof StorageError) return 'publish'
  return error instanceof EngineError ? 'encode' : undefined
}

function emptySegment(): Segment {
  return { bytes: 0, beganAt: undefined }
}

/** Undefined when the promise has not resolved in that time. The promise itself goes on. */
async function within<T>(
  promise: Promise<T>,
  ms: number,
  signal: AbortSignal,
): Promise<T | undefined> {
  using waiting = new LinkedAbort(signal)
  try {
    return await Promise.race([
      promise,
      pause(Math.max(0, ms), waiting.signal).then(() => undefined),
    ])
  } finally {
    waiting.abort()
  }
}
