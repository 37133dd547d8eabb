import { soleValue } from '../../api/selectors/value-pattern.ts'
import type { KeyValue, ScanChunk, ScanRequest } from '../../etcd/client.ts'
import { throwIfAborted } from '../aborted-read.ts'
import { StorageError } from '../errors.ts'
import { allEvents, isPart } from '../event-scope.ts'
import { revisionOf, type Version, versionOfState } from '../resource-version.ts'
import type {
  EventScope,
  ListOptions,
  ReadOptions,
  StoredEvent,
  StoredPage,
  Unreadable,
} from '../storage.ts'
import { BadValue } from '../stored-form.ts'
import { decodeEvent, unreadableAt } from './event-decoding.ts'
import type { EventKeys, KeyRange } from './keys.ts'

export interface ListReaderOptions {
  readonly keys: EventKeys
  readonly scan: (request: ScanRequest, options: ReadOptions) => AsyncIterable<ScanChunk>
  /** Called for each key that a list leaves out because its value is not an event of ours. */
  readonly onCorrupt: (etcdKey: Buffer, value: BadValue) => void
}

interface PageSoFar {
  readonly items: StoredEvent[]
  readonly unreadable: Unreadable[]
}

/** Reads pages of events from etcd. */
export class ListReader {
  readonly #options: ListReaderOptions

  constructor(options: ListReaderOptions) {
    this.#options = options
  }

  async read(scope: EventScope, options: ListOptions): Promise<StoredPage> {
    const { selector, limit, bytesEnough = Number.POSITIVE_INFINITY } = options
    const { signal, isPatient, notOlderThan, span } = options
    check(options)
    const page: PageSoFar = { items: [], unreadable: [] }
    const { items } = page
    const at = options.at === undefined ? undefined : readableRevision(options.at)
    const request = {
      ...this.#rangeOf(scope, options),
      revision: at,
      limit: selector === undefined ? limit : undefined,
      chunkBytes: bytesEnough,
    }
    let bytes = 0
    let last: ScanChunk | undefined
    let remaining = 0
    for await (const chunk of this.#options.scan(request, {
      signal,
      isPatient,
      notOlderThan,
      span,
    })) {
      const before = items.length
      last = chunk
      remaining = chunk.count - (await this.#decodeInto(page, chunk.kvs, options))
      for (const { body } of items.slice(before)) bytes += body.length
      if (items.length === limit || (items.length > 0 && bytes >= bytesEnough)) break
    }
    return {
      ...page,
      version: versionOfState(at ?? last?.revision ?? 0),
      more: remaining > 0,
      remaining: selector === undefined ? remaining : undefined,
      connection: last?.connection ?? Number.POSITIVE_INFINITY,
    }
  }

  /** All events at one version, page by page. */
  async *readAll(
    options: Pick<ListOptions, 'lane' | 'signal' | 'isPatient'>,
  ): AsyncGenerator<StoredPage, void, undefined> {
    const request = { ...this.#options.keys.range(allEvents), isWhole: true }
    for await (const { kvs, revision, count, connection } of this.#options.scan(request, options)) {
      const page: PageSoFar = { items: [], unreadable: [] }
      await this.#decodeInto(page, kvs, { ...options, limit: kvs.length })
      const remaining = count - kvs.length
      const version = versionOfState(revision)
      yield { ...page, version, more: remaining > 0, remaining, connection }
    }
  }

  /** The keys to search: only one when the selector requires a name. */
  #rangeOf(scope: EventScope, options: ListOptions): KeyRange {
    const { keys } = this.#options
    const range = keys.range(scope, options.after)
    const name = soleValue(options.selector?.requires?.names ?? [])
    if (name === undefined || scope.namespace === undefined || !isPart(name)) return range
    const key = Buffer.from(keys.format({ ...scope, namespace: scope.namespace, name }))
    const rangeEnd = Buffer.concat([key, Buffer.of(0)])
    return Buffer.compare(key, range.key) < 0 ? { key: rangeEnd, rangeEnd } : { key, rangeEnd }
  }

  /** Decodes `kvs` until the page has enough items; returns how many were decoded. */
  async #decodeInto(
    page: PageSoFar,
    kvs: readonly KeyValue[],
    { selector, limit, signal, lane }: Pick<ListOptions, 'selector' | 'limit' | 'signal' | 'lane'>,
  ): Promise<number> {
    const { keys } = this.#options
    const { items } = page
    let taken = 0
    using slices = lane.slices({ signal })
    for (const kv of kvs) {
      if (items.length === limit) break
      if (slices.isOver()) {
        await slices.next()
        throwIfAborted(signal)
      }
      taken++
      if (keys.isMark(kv.key)) continue
      const stored = decodeEvent(kv, keys)
      if (stored instanceof BadValue) this.#leaveOut(page, kv, stored)
      else if (selector === undefined || selector.matches(stored)) items.push(stored)
    }
    return taken
  }

  #leaveOut({ unreadable }: PageSoFar, kv: KeyValue, value: BadValue): void {
    const key = this.#options.keys.parse(kv.key)
    if (key !== undefined) unreadable.push(unreadableAt(key, kv, value))
    this.#options.onCorrupt(kv.key, value)
  }
}

/** Revision 0 means "now" to etcd. There are no events at its first revision or before. */
function readableRevision(at: Version): number {
  return Math.max(1, revisionOf(at))
}

function check({ limit, order = 'key', at }: ListOptions): void {
  if (!Number.isInteger(limit) || limit < 1) throw new RangeError(`not a limit: ${limit}`)
  if (order === 'key') return
  const message =
    'lists in the order of time are served from memory, which does not have the requested state'
  throw new StorageError({ kind: at === undefined ? 'unavailable' : 'compacted', message })
}
