/**
 * Reads pages of events from etcd, in ranges of about 4 MB. The number of keys in a range adapts to
 * the size of the values that were read last.
 */
import type { KeyValue, RangeRequest, RangeResult } from '../../etcd/client.ts'
import { throwIfAborted } from '../aborted-read.ts'
import { StorageError } from '../errors.ts'
import { isPart } from '../event-scope.ts'
import { revisionOf, type Version, versionOfState } from '../resource-version.ts'
import type {
  ConnectionNumber,
  EventPage,
  EventScope,
  ListOptions,
  ReadOptions,
  StoredEvent,
  Unreadable,
} from '../storage.ts'
import { BadValue } from '../stored-form.ts'
import { decodeEvent, unreadableAt } from './event-decoding.ts'
import type { EventKeys, KeyRange } from './keys.ts'

const rangeKeysMax = 2_000
const rangeKeysMin = 8
const rangeKeysFirst = 256
const rangeBytes = 4 * 1024 * 1024
/** Divides the range when a response is too large: values may be 1,000 times as large as the last. */
const tooLargeDivisor = 8

export interface ListReaderOptions {
  readonly keys: EventKeys
  readonly range: (request: RangeRequest, options: ReadOptions) => Promise<RangeResult>
  /** Called for each key that a list leaves out because its value is not an event of ours. */
  readonly onCorrupt: (etcdKey: Buffer, value: BadValue) => void
}

interface PageSoFar {
  readonly items: StoredEvent[]
  readonly unreadable: Unreadable[]
}

export class ListReader {
  readonly #options: ListReaderOptions
  #keysPerRange = rangeKeysFirst

  constructor(options: ListReaderOptions) {
    this.#options = options
  }

  async read(
    scope: EventScope,
    options: ListOptions,
  ): Promise<EventPage & { readonly connection: ConnectionNumber }> {
    const { selector, limit, bytesEnough = Number.POSITIVE_INFINITY } = options
    const { signal, isPatient, notOlderThan, span } = options
    check(options)
    const items: StoredEvent[] = []
    const unreadable: Unreadable[] = []
    const range = this.#rangeOf(scope, options)
    let key = range.key
    let revision = options.at === undefined ? undefined : readableRevision(options.at)
    let connection = 0
    let bytes = 0
    let keysMost = rangeKeysMax
    for (;;) {
      const wanted = selector === undefined ? limit - items.length : rangeKeysMax
      const keys = Math.min(wanted, this.#keysFor(options), keysMost)
      const result = await this.#range(
        { key, rangeEnd: range.rangeEnd, revision, limit: keys },
        { signal, isPatient, notOlderThan, span },
      )
      if (result === undefined) {
        keysMost = Math.ceil(keys / tooLargeDivisor)
        continue
      }
      keysMost = Math.min(rangeKeysMax, keysMost * 2)
      this.#adaptRange(result.kvs)
      const before = items.length
      revision ??= result.revision
      connection = Math.max(connection, connectionOf(result))
      const taken = await this.#decodeInto({ items, unreadable }, result.kvs, options)
      const remaining = result.count - taken
      const last = result.kvs[taken - 1]
      for (const { body } of items.slice(before)) bytes += body.length
      const isEnough = items.length > 0 && bytes >= bytesEnough
      if (items.length === limit || remaining <= 0 || last === undefined || isEnough) {
        return {
          items,
          version: versionOfState(revision),
          more: remaining > 0,
          remaining: selector === undefined ? remaining : undefined,
          unreadable,
          connection,
        }
      }
      key = Buffer.concat([last.key, Buffer.of(0)])
    }
  }

  /** Undefined when these values are too large for one response, and fewer keys may fit. */
  async #range(request: RangeRequest, options: ReadOptions): Promise<RangeResult | undefined> {
    try {
      return await this.#options.range(request, options)
    } catch (error) {
      const isTooLarge = error instanceof StorageError && error.kind === 'too-large'
      if (isTooLarge && request.limit !== 1) return undefined
      throw error
    }
  }

  /** The keys to search: only one when the selector requires a name. */
  #rangeOf(scope: EventScope, options: ListOptions): KeyRange {
    const { keys } = this.#options
    const range = keys.range(scope, options.after)
    const name = options.selector?.requires?.name
    if (name === undefined || scope.namespace === undefined || !isPart(name)) return range
    const key = Buffer.from(keys.format({ ...scope, namespace: scope.namespace, name }))
    const rangeEnd = Buffer.concat([key, Buffer.of(0)])
    return Buffer.compare(key, range.key) < 0 ? { key: rangeEnd, rangeEnd } : { key, rangeEnd }
  }

  /** Sets the size of the next range from the size of these values. */
  #adaptRange(kvs: readonly KeyValue[]): void {
    const bytes = kvs.reduce((sum, { value }) => sum + value.length, 0)
    if (bytes > 0) {
      const keys = Math.floor((rangeBytes * kvs.length) / bytes)
      this.#keysPerRange = Math.min(rangeKeysMax, Math.max(rangeKeysMin, keys))
    }
  }

  /** A page with a small `bytesEnough` reads no more keys than it needs. */
  #keysFor({ bytesEnough = rangeBytes }: ListOptions): number {
    const part = Math.min(1, bytesEnough / rangeBytes)
    return Math.max(rangeKeysMin, Math.floor(this.#keysPerRange * part))
  }

  /** Decodes `kvs` until the page has enough items; returns how many were decoded. */
  async #decodeInto(
    page: PageSoFar,
    kvs: readonly KeyValue[],
    { selector, limit, signal, lane }: ListOptions,
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

/** A result without a connection counts as newer than any connection: it is never trusted. */
export function connectionOf({ connection }: RangeResult): ConnectionNumber {
  return connection ?? Number.POSITIVE_INFINITY
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
