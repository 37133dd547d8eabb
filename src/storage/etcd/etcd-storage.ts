import type {
  CallOptions,
  EtcdClient,
  KeyValue,
  RangeRequest,
  RangeResult,
  ScanChunk,
  ScanRequest,
  WatchRequest,
} from '../../etcd/client.ts'
import type { Traced } from '../../lib/tracing/span.ts'
import {
  missing,
  StorageError,
  type StorageErrorDetails,
  type StorageErrorKind,
} from '../errors.ts'
import { allEvents } from '../event-scope.ts'
import { OwnWrites } from '../own-writes.ts'
import {
  firstRevisionAfter,
  formatVersion,
  isAfter,
  type Version,
  versionOfState,
} from '../resource-version.ts'
import type {
  Change,
  ConnectionNumber,
  CreateOptions,
  DeleteOptions,
  EventKey,
  EventScope,
  EventStorage,
  FollowWatch,
  Guard,
  ListOptions,
  Newest,
  ReadOptions,
  StoredEvent,
  StoredPage,
  UpdateOptions,
  WatchItem,
} from '../storage.ts'
import {
  BadValue,
  bodyOf,
  isOwnValue,
  newStateOf,
  prepareValue,
  StoredBody,
  trailerAfter,
  unreadable,
} from '../stored-form.ts'
import type { EtcdAvailability } from './etcd-availability.ts'
import { storageErrorOfRead, storageErrorOfWrite } from './etcd-errors.ts'
import { EtcdFollowWatch, EtcdWatch, toFollowItem, toWatchItem } from './etcd-watch.ts'
import { decodeEvent, found, foundToDelete } from './event-decoding.ts'
import { GroupCommit, type GroupCommitOptions } from './group-commit.ts'
import { EventKeys, markValue } from './keys.ts'
import { ListReader } from './list-reader.ts'
import { type Decide, OptimisticUpdater } from './optimistic-updater.ts'
import type { PrefixCheck } from './prefix-check.ts'
import type { QuotaAlarm } from './quota-alarm.ts'

/** The errors of a read without a response. */
const noResponseKinds: ReadonlySet<StorageErrorKind> = new Set(['unavailable', 'timeout'])

export interface EtcdStorageOptions {
  readonly client: Pick<
    EtcdClient,
    'range' | 'scan' | 'txn' | 'watch' | 'follow' | 'connected' | 'newestConnection'
  >
  /** Keys are `<prefix>/events/<cluster>/<namespace>/<name>`. */
  readonly prefix: string
  /** Default true. False sends every write in its own transaction, for comparison only. */
  readonly groupCommit?: boolean | undefined
  /** Default: one of its own. */
  readonly ownWrites?: OwnWrites | undefined
  /** Rejects calls while etcd is unavailable. Without it every call waits until its timeout. */
  readonly availability?: EtcdAvailability | undefined
  /** Rejects puts while etcd is full. Without it each put is sent, and etcd rejects it. */
  readonly quotaAlarm?: QuotaAlarm | undefined
  /** Rejects writes until it has passed; without it all writes are allowed. */
  readonly check?: Pick<PrefixCheck, 'refusal'> | undefined
  /** Called for keys that lists and watches leave out: their value is not an event of ours. */
  readonly onCorrupt: (etcdKey: Buffer, value: BadValue) => void
  readonly now?: GroupCommitOptions['now']
  readonly onCommit?: GroupCommitOptions['onCommit']
}

/** The storage contract on etcd alone: every read goes to etcd, every write to group commit. */
export class EtcdStorage implements EventStorage {
  readonly #options: EtcdStorageOptions
  readonly #keys: EventKeys
  readonly #writes: GroupCommit
  readonly #updater: OptimisticUpdater
  readonly #lists: ListReader
  readonly #ownWrites: OwnWrites

  constructor(options: EtcdStorageOptions) {
    const { client, now, onCommit, availability, quotaAlarm, check, onCorrupt } = options
    this.#options = options
    this.#ownWrites = options.ownWrites ?? new OwnWrites()
    this.#keys = new EventKeys(options.prefix)
    this.#writes = new GroupCommit({
      client,
      grouped: options.groupCommit,
      now,
      onCommit,
      availability,
      quotaAlarm,
      check,
      ownWrites: this.#ownWrites,
    })
    this.#lists = new ListReader({
      keys: this.#keys,
      scan: (request, readOptions) => this.#scan(request, readOptions),
      onCorrupt,
    })
    this.#updater = new OptimisticUpdater({
      keys: this.#keys,
      writes: this.#writes,
      read: (key, traced) => this.#read(key, traced),
      newestConnection: () => client.newestConnection,
    })
  }

  /** The queued writes, for metrics. */
  get waiting(): GroupCommit['waiting'] {
    return this.#writes.waiting
  }

  /** Rejects new writes; resolves when those in flight have ended. The client stays open. */
  close(): Promise<void> {
    return this.#writes.close()
  }

  async get(key: EventKey, options: ReadOptions): Promise<StoredEvent> {
    const stored = found(await this.#read(key, options), key)
    if (stored === undefined) throw missing(key)
    return stored
  }

  list(scope: EventScope, options: ListOptions): Promise<StoredPage> {
    return this.#lists.read(scope, options)
  }

  readAll(
    options: Pick<ListOptions, 'lane' | 'signal' | 'isPatient'>,
  ): AsyncGenerator<StoredPage, void, undefined> {
    return this.#lists.readAll(options)
  }

  async create(key: EventKey, body: Buffer, options?: CreateOptions): Promise<StoredEvent> {
    const { event, workload, node } = options ?? {}
    const trailer = trailerAfter(key, undefined, { body, event, workload, node })
    const value = prepareValue(body, event, trailer)
    const operation = { key: this.#keys.format(key), expected: 0, value, span: options?.span }
    const outcome = await this.#writes.submit(operation)
    if (outcome.applied) {
      const { version, writtenAtMs } = outcome
      const { versionOffset } = value
      const stored = { key, body: bodyOf(value), trailer, versionOffset, version, writtenAtMs }
      return new StoredBody(stored)
    }
    throw new StorageError({
      kind: 'exists',
      message: `event ${key.namespace}/${key.name} already exists`,
      key,
      ...this.#existing(key, outcome.current),
    })
  }

  update(key: EventKey, change: Change, options: UpdateOptions = {}): Promise<StoredEvent> {
    const decide: Decide = (current) => {
      const wanted = change(current)
      if (wanted === 'remove') return current === undefined ? 'keep' : 'delete'
      if (wanted === undefined) return 'keep'
      return newStateOf(wanted).body === current?.body ? 'keep' : wanted
    }
    return this.#updater.update(key, decide, options)
  }

  delete(key: EventKey, guard?: Guard, options?: DeleteOptions): Promise<StoredEvent> {
    const decide: Decide = (current) => {
      if (current === undefined) return 'keep'
      guard?.(current)
      return 'delete'
    }
    return this.#updater.update(key, decide, { ...options, find: foundToDelete })
  }

  watch(
    scope: EventScope,
    options: { readonly from: Version; readonly signal: AbortSignal },
  ): EtcdWatch<WatchItem> {
    const { from, signal } = options
    const { onCorrupt, client } = this.#options
    const watch = client.watch(this.#watchRequest(from, signal, true))
    const how = { scope, from, toItem: toWatchItem, onCorrupt }
    return new EtcdWatch({ watch, keys: this.#keys, ...how })
  }

  /**
   * Watches all events without their previous states: half the traffic, for a consumer that retains
   * those states itself.
   */
  follow(options: {
    readonly from: Version
    readonly signal: AbortSignal
    readonly connectionMax: ConnectionNumber
  }): FollowWatch {
    const { from, signal, connectionMax } = options
    const { onCorrupt } = this.#options
    const keys = this.#keys
    const watch = this.#options.client.follow({
      ...this.#watchRequest(from, signal, false),
      sameHistory: { isUnique: (kv) => this.#isUnique(kv), connectionMax },
    })
    const toItem = toFollowItem
    const how = { scope: allEvents, from, toItem, onCorrupt, ownWrites: this.#ownWrites }
    return new EtcdFollowWatch({ watch, keys, ...how })
  }

  async currentVersion(options: { readonly signal: AbortSignal }): Promise<Version> {
    return (await this.newest(options)).version
  }

  async newest(options: { readonly signal: AbortSignal } & Traced): Promise<Newest> {
    const result = await this.#range({ key: this.#keys.mark, keysOnly: true }, options)
    return { version: versionOfState(result.revision), connection: connectionOf(result) }
  }

  connected(signal: AbortSignal): Promise<ConnectionNumber> {
    return this.#options.client.connected(signal)
  }

  async mark(): Promise<void> {
    const refusal = this.#options.check?.refusal()
    if (refusal !== undefined) throw refusal
    const value = markValue()
    try {
      await this.#options.client.txn({ success: [{ type: 'put', key: this.#keys.mark, value }] })
    } catch (error) {
      throw storageErrorOfWrite(error)
    }
  }

  /** An event is unique by its uid and its write time. */
  #isUnique({ key, value }: KeyValue): boolean {
    return this.#keys.isMark(key) || isOwnValue(value)
  }

  /** The existing event, or the reason why the value under the key is not an event. */
  #existing(
    key: EventKey,
    kv: KeyValue | undefined,
  ): Pick<StorageErrorDetails, 'current' | 'reason'> {
    if (kv === undefined) return {}
    const current = decodeEvent(kv, this.#keys)
    if (!(current instanceof BadValue)) return { current }
    return { reason: unreadable(key, current.fault).reason }
  }

  #watchRequest(from: Version, signal: AbortSignal, prevKv: boolean): WatchRequest {
    const range = this.#keys.range(allEvents)
    return { ...range, startRevision: firstRevisionAfter(from), prevKv, signal }
  }

  async #read(key: EventKey, options?: Partial<ReadOptions>): Promise<KeyValue | undefined> {
    const { kvs } = await this.#range({ key: Buffer.from(this.#keys.format(key)) }, options)
    return kvs[0]
  }

  async #range(request: RangeRequest, options?: Partial<ReadOptions>): Promise<RangeResult> {
    const reading = this.#callOptions(options)
    try {
      const result = await this.#options.client.range(request, reading)
      checkNotOlder(result, options)
      return result
    } catch (error) {
      throw this.#failure(error, options)
    }
  }

  async *#scan(request: ScanRequest, options: ReadOptions): AsyncGenerator<ScanChunk> {
    const reading = this.#callOptions(options)
    try {
      for await (const chunk of this.#options.client.scan(request, reading)) {
        checkNotOlder(chunk, options)
        yield chunk
      }
    } catch (error) {
      throw this.#failure(error, options)
    }
  }

  #callOptions(options: Partial<ReadOptions> = {}): CallOptions {
    const { signal, span } = options
    return { signal, cancelIfSafe: this.#availability(options)?.outageSignal, span }
  }

  #failure(error: unknown, options: Partial<ReadOptions> = {}): unknown {
    const failure = storageErrorOfRead(error)
    const isNoResponse = failure instanceof StorageError && noResponseKinds.has(failure.kind)
    return (isNoResponse ? this.#availability(options)?.refusal(error) : undefined) ?? failure
  }

  #availability({ isPatient }: Partial<ReadOptions>): EtcdAvailability | undefined {
    return isPatient === true ? undefined : this.#options.availability
  }
}

function checkNotOlder(
  { revision }: { readonly revision: number },
  options: Partial<ReadOptions> = {},
): void {
  const wanted = options.notOlderThan
  const version = versionOfState(revision)
  if (wanted === undefined || !isAfter(wanted, version)) return
  throw new StorageError({
    kind: 'future',
    message: `version ${formatVersion(wanted)} does not exist yet`,
    version,
  })
}

/** A result without a connection counts as newer than any connection: it is never trusted. */
function connectionOf({ connection }: RangeResult): ConnectionNumber {
  return connection ?? Number.POSITIVE_INFINITY
}
