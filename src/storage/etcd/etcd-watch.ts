/**
 * Translates the batches of an etcd watch into changes of events with their versions.
 *
 * It always watches all events and filters by scope afterwards: the version of a delete depends on
 * the changes before it in the same transaction, in every namespace, and must be the same for every
 * watcher.
 */
import type { WatchBatch as EtcdBatch, HistoryWatch, Watch, WatchEvent } from '../../etcd/client.ts'
import { EtcdError } from '../../etcd/errors.ts'
import { OtherHistoryError, StorageError } from '../errors.ts'
import { isInScope } from '../event-scope.ts'
import type { OwnWrites } from '../own-writes.ts'
import { ChangeNumbering, isAfter, type Version, versionOfState } from '../resource-version.ts'
import type {
  ConnectionNumber,
  EventKey,
  EventScope,
  EventWatch,
  FollowItem,
  FollowWatch,
  StoredEvent,
  WatchBatch,
  WatchItem,
} from '../storage.ts'
import { BadValue, type OpenedValue, openValue, withVersion } from '../stored-form.ts'
import { storageErrorOfRead } from './etcd-errors.ts'
import { decodeEvent, storedAs, unreadableAt } from './event-decoding.ts'
import type { EventKeys } from './keys.ts'

/** One change with its version. */
interface NumberedChange {
  readonly key: EventKey
  readonly version: Version
  /** Undefined for a delete. */
  readonly value: OpenedValue | BadValue | undefined
  readonly event: WatchEvent
}

export interface EtcdWatchOptions<Item> {
  /** An etcd watch of all events, from `firstRevisionAfter(from)`. */
  readonly watch: Watch
  readonly keys: EventKeys
  readonly scope: EventScope
  readonly from: Version
  readonly toItem: (change: NumberedChange, keys: EventKeys) => Item | undefined
  /** Called for keys that are left out because their value is not an event of ours. */
  readonly onCorrupt: (etcdKey: Buffer, value: BadValue) => void
  /** Values among these need not be validated again. */
  readonly ownWrites?: Pick<OwnWrites, 'take'> | undefined
}

export class EtcdWatch<Item> implements EventWatch<Item> {
  readonly #options: EtcdWatchOptions<Item>
  readonly #numbering = new ChangeNumbering()

  constructor(options: EtcdWatchOptions<Item>) {
    this.#options = options
  }

  /** The newest connection that delivered changes came over. */
  get connection(): ConnectionNumber {
    return this.#options.watch.connection
  }

  requestProgress(): void {
    this.#options.watch.requestProgress()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchBatch<Item>, void, undefined> {
    try {
      for await (const batch of this.#options.watch) {
        const translated = this.#translate(batch)
        // A watch that starts within a revision begins with that revision. Until a member that lags
        // has it, the progress that it reports is older than the start.
        if (!isAfter(this.#options.from, translated.version)) yield translated
      }
    } catch (error) {
      if (error instanceof EtcdError && error.kind === 'other-history') {
        throw new OtherHistoryError(error.message, { cause: error })
      }
      if (error instanceof EtcdError && error.kind === 'cancelled') {
        throw new StorageError({ kind: 'unavailable', message: error.message, cause: error })
      }
      throw storageErrorOfRead(error)
    }
  }

  #translate(batch: EtcdBatch): WatchBatch<Item> {
    const items: Item[] = []
    for (const event of batch.events) {
      const change = this.#number(event)
      if (change === undefined || !this.#isWanted(change)) continue
      const item = this.#options.toItem(change, this.#options.keys)
      if (item !== undefined) items.push(item)
    }
    return { items, version: versionOfState(batch.revision) }
  }

  #number(event: WatchEvent): NumberedChange | undefined {
    const { keys, onCorrupt, ownWrites } = this.#options
    const { kv } = event
    if (keys.isMark(kv.key)) return undefined
    const key = keys.parse(kv.key)
    if (event.type === 'delete') {
      const version = this.#deleteVersion(kv.modRevision)
      return key === undefined ? undefined : { key, version, value: undefined, event }
    }
    // Other characters, which names do not have, make it a key that is not found.
    const recall = (body: Buffer) => ownWrites?.take(kv.key.toString('latin1'), body)
    const value = openValue(kv.value, key, recall)
    // A foreign value has no index; a damaged one has an index, which its writer counted.
    const isOurs = !(value instanceof BadValue) || value.fault === 'damaged'
    const version = isOurs ? this.#numbering.put(kv.modRevision, value.index) : undefined
    if (key !== undefined && version !== undefined && !(value instanceof BadValue)) {
      return { key, version, value, event }
    }
    const bad = value instanceof BadValue ? value : new BadValue('its index is out of order', value)
    onCorrupt(kv.key, bad)
    if (key === undefined) return undefined
    // Consumers that know an event under this key must learn that it no longer exists.
    return { key, version: version ?? this.#deleteVersion(kv.modRevision), value: bad, event }
  }

  /**
   * A program that bypasses this server and deletes thousands of events in one transaction creates
   * a revision with more changes than versions. Watches of it fail, and clients must list again.
   */
  #deleteVersion(revision: number): Version {
    const version = this.#numbering.delete(revision)
    if (version !== undefined) return version
    throw new StorageError({
      kind: 'compacted',
      message: `revision ${revision} has more changes than versions`,
    })
  }

  #isWanted(change: NumberedChange): boolean {
    const { scope, from } = this.#options
    return isInScope(scope, change.key) && isAfter(change.version, from)
  }
}

/** A watch that continues an earlier read. */
export class EtcdFollowWatch extends EtcdWatch<FollowItem> implements FollowWatch {
  readonly #watch: HistoryWatch

  constructor(options: EtcdWatchOptions<FollowItem> & { readonly watch: HistoryWatch }) {
    super(options)
    this.#watch = options.watch
  }

  get verified(): ConnectionNumber {
    return this.#watch.verified
  }

  verify(connection: ConnectionNumber): void {
    this.#watch.verify(connection)
  }
}

/** A change with the previous state. */
export function toWatchItem(change: NumberedChange, keys: EventKeys): WatchItem | undefined {
  const { event, version } = change
  const previous = previousState(event, keys)
  const stored = storedOf(change)
  if (stored !== undefined) return { type: 'put', stored, previous }
  // The previous value was not an event, so watchers never saw it.
  if (previous === undefined) return undefined
  return { type: 'delete', stored: withVersion(previous, version) }
}

export function toFollowItem(change: NumberedChange): FollowItem {
  const { key, version, value } = change
  if (value === undefined) return { type: 'delete', key, version }
  if (!(value instanceof BadValue)) return { type: 'put', stored: storedAs(version, value) }
  return {
    type: 'unreadable',
    key,
    version,
    value: unreadableAt(key, change.event.kv, value),
  }
}

function storedOf({ value, version }: NumberedChange): StoredEvent | undefined {
  return value === undefined || value instanceof BadValue ? undefined : storedAs(version, value)
}

/** Fails with `compacted` when etcd compacted the previous state before it sent the change. */
function previousState(event: WatchEvent, keys: EventKeys): StoredEvent | undefined {
  const { kv, prevKv } = event
  if (prevKv !== undefined) {
    const previous = decodeEvent(prevKv, keys)
    return previous instanceof BadValue ? undefined : previous
  }
  if (event.type === 'put' && kv.version === 1) return undefined
  throw new StorageError({
    kind: 'compacted',
    message: `the state before revision ${kv.modRevision} is compacted`,
  })
}
