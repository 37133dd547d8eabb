import { setImmediate } from 'node:timers/promises'
import type {
  EtcdClient,
  KeyValue,
  RangeRequest,
  RangeResult,
  WatchRequest,
} from '../etcd/client.ts'
import { missing, StorageError, type StorageErrorDetails, type StorageErrorKind } from './errors.ts'
import { storageErrorOfRead, storageErrorOfWrite } from './etcd-errors.ts'
import { EtcdFollowWatch, EtcdWatch, toFollowItem, toWatchItem } from './etcd-watch.ts'
import { decodeEvent, found, foundToDelete, unreadableAt } from './event-decoding.ts'
import { GroupCommit, type GroupCommitOptions } from './group-commit.ts'
import { EventKeys, isPart, type KeyRange, markValue } from './keys.ts'
import type { PrefixCheck } from './prefix-check.ts'
import type { Presence } from './presence.ts'
import {
  firstRevisionAfter,
  formatVersion,
  isAfter,
  revisionOf,
  type Version,
  versionOfState,
} from './resource-version.ts'
import { type Decide, Rewriter } from './rewriter.ts'
import type { Space } from './space.ts'
import type {
  Change,
  ConnectionNumber,
  EventKey,
  EventPage,
  EventScope,
  EventStorage,
  FollowWatch,
  Guard,
  ListOptions,
  Newest,
  ReadOptions,
  StoredEvent,
  Unreadable,
  WatchItem,
} from './storage.ts'
import {
  BadValue,
  bodyOf,
  isOwnValue,
  prepareValue,
  StoredBody,
  unreadable,
} from './stored-form.ts'

/** Asked for at once: as many keys as take some 4 MB, judged by those that came last. */
const rangeKeysMax = 2_000
const rangeKeysMin = 8
const rangeKeysFirst = 256
const rangeBytes = 4 * 1024 * 1024
/** Values are decoded for so long before others have their turn. */
const decodeMs = 10
/** What a read that was not answered ends with. */
const silences: ReadonlySet<StorageErrorKind> = new Set(['unavailable', 'timeout'])

export interface EtcdStorageOptions {
  readonly client: Pick<
    EtcdClient,
    'range' | 'txn' | 'watch' | 'follow' | 'connected' | 'newestConnection'
  >
  /** Keys are `<prefix>/events/<namespace>/<name>`. */
  readonly prefix: string
  /** Default true. False for comparison only: every write in a transaction of its own. */
  readonly groupCommit?: boolean | undefined
  /**
   * What somebody who follows etcd believes is there: saves updates and deletes their read. It may
   * be out of date; it is never relied on for an answer.
   */
  readonly recall?: ((key: EventKey) => StoredEvent | undefined) | undefined
  /** Up to which connection that is of the same history as etcd. Default: the newest. */
  readonly recalledFor?: (() => ConnectionNumber) | undefined
  /** Whether etcd is there. Without one every call waits for it to the end of its time. */
  readonly presence?: Presence | undefined
  /** Whether etcd takes puts. Without one each is sent, to be answered that it does not. */
  readonly space?: Space | undefined
  /** Whether anything may be written; without one, anything may. */
  readonly check?: Pick<PrefixCheck, 'refusal'> | undefined
  /** Told of keys that lists and watches leave out: what is there is not an event of ours. */
  readonly onCorrupt: (etcdKey: Buffer, value: BadValue) => void
  readonly now?: GroupCommitOptions['now']
  readonly onCommit?: GroupCommitOptions['onCommit']
}

interface PageSoFar {
  readonly items: StoredEvent[]
  readonly unreadable: Unreadable[]
}

/** The promise kept with etcd alone: every read asks it, every write goes through group commit. */
export class EtcdStorage implements EventStorage {
  readonly #options: EtcdStorageOptions
  readonly #keys: EventKeys
  readonly #writes: GroupCommit
  readonly #rewriter: Rewriter
  #keysAtOnce = rangeKeysFirst

  constructor(options: EtcdStorageOptions) {
    const { client, now, onCommit, presence, space, check } = options
    this.#options = options
    this.#keys = new EventKeys(options.prefix)
    this.#writes = new GroupCommit({
      txn: (txn, callOptions) => client.txn(txn, callOptions),
      grouped: options.groupCommit,
      now,
      onCommit,
      presence,
      space,
      check,
    })
    this.#rewriter = new Rewriter({
      keys: this.#keys,
      writes: this.#writes,
      read: (key) => this.#read(key),
      recall: options.recall ?? (() => undefined),
      recalledFor: options.recalledFor ?? (() => client.newestConnection),
      newestConnection: () => client.newestConnection,
    })
  }

  /** What waits to be written, for metrics. */
  get waiting(): GroupCommit['waiting'] {
    return this.#writes.waiting
  }

  /** Takes no more writes; resolves when those under way have ended. The client stays open. */
  close(): Promise<void> {
    return this.#writes.close()
  }

  async get(key: EventKey, options: ReadOptions): Promise<StoredEvent> {
    const stored = found(await this.#read(key, options), key)
    if (stored === undefined) throw missing(key)
    return stored
  }

  async list(
    scope: EventScope,
    options: ListOptions,
  ): Promise<EventPage & { readonly connection: ConnectionNumber }> {
    const { selector, limit, signal, isPatient, bytesEnough = Number.POSITIVE_INFINITY } = options
    if (!Number.isInteger(limit) || limit < 1) throw new RangeError(`not a limit: ${limit}`)
    const items: StoredEvent[] = []
    const unreadable: Unreadable[] = []
    const range = this.#rangeOf(scope, options)
    let key = range.key
    let revision = options.at === undefined ? undefined : askableRevision(options.at)
    let connection = 0
    let bytes = 0
    for (;;) {
      const wanted = selector === undefined ? limit - items.length : rangeKeysMax
      const answer = await this.#range(
        {
          key,
          rangeEnd: range.rangeEnd,
          revision,
          limit: Math.min(wanted, this.#keysFor(options)),
        },
        { signal, isPatient, notOlderThan: options.notOlderThan },
      )
      this.#judgeKeys(answer.kvs)
      const before = items.length
      revision ??= answer.revision
      connection = Math.max(connection, connectionOf(answer))
      const taken = await this.#fill({ items, unreadable }, answer.kvs, options)
      const remaining = answer.count - taken
      const last = answer.kvs[taken - 1]
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

  async create(key: EventKey, body: Buffer): Promise<StoredEvent> {
    const value = prepareValue(body)
    const outcome = await this.#writes.submit({ key: this.#keys.format(key), expected: 0, value })
    if (outcome.applied) {
      const { version, writtenAtMs } = outcome
      const { versionOffset } = value
      return new StoredBody({ key, body: bodyOf(value), versionOffset, version, writtenAtMs })
    }
    throw new StorageError({
      kind: 'exists',
      message: `there is an event ${key.namespace}/${key.name} already`,
      key,
      ...this.#inTheWay(key, outcome.current),
    })
  }

  update(key: EventKey, change: Change): Promise<StoredEvent> {
    return this.#rewriter.rewrite(key, (current) => {
      const wanted = change(current)
      if (wanted === 'remove') return current === undefined ? 'keep' : 'delete'
      return wanted === undefined || wanted === current?.body ? 'keep' : wanted
    })
  }

  delete(key: EventKey, guard?: Guard): Promise<StoredEvent> {
    const decide: Decide = (current) => {
      if (current === undefined) return 'keep'
      guard?.(current)
      return 'delete'
    }
    return this.#rewriter.rewrite(key, decide, foundToDelete)
  }

  watch(
    scope: EventScope,
    options: { readonly from: Version; readonly signal: AbortSignal },
  ): EtcdWatch<WatchItem> {
    const { from, signal } = options
    const { onCorrupt } = this.#options
    const watch = this.#options.client.watch(this.#watchRequest(from, signal, true))
    const { namespace } = scope
    return new EtcdWatch({
      watch,
      keys: this.#keys,
      namespace,
      from,
      toItem: toWatchItem,
      onCorrupt,
    })
  }

  /**
   * Like `watch` for all events, without the states before: half the traffic, for somebody who
   * keeps those states.
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
    return new EtcdFollowWatch({ watch, keys, namespace: undefined, from, toItem, onCorrupt })
  }

  async currentVersion(options: { readonly signal: AbortSignal }): Promise<Version> {
    return (await this.newest(options)).version
  }

  async newest(options: { readonly signal: AbortSignal }): Promise<Newest> {
    const answer = await this.#range({ key: this.#keys.mark, keysOnly: true }, options)
    return { version: versionOfState(answer.revision), connection: connectionOf(answer) }
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

  /** An event has its uid and the time it was written. */
  #isUnique({ key, value }: KeyValue): boolean {
    return this.#keys.isMark(key) || isOwnValue(value)
  }

  /** The event that has the key, or the reason that there is none although it is taken. */
  #inTheWay(
    key: EventKey,
    kv: KeyValue | undefined,
  ): Pick<StorageErrorDetails, 'current' | 'reason'> {
    if (kv === undefined) return {}
    const current = decodeEvent(kv, this.#keys)
    if (!(current instanceof BadValue)) return { current }
    return { reason: unreadable(key, current.fault).reason }
  }

  /** The keys to look through: one alone when the name is known. */
  #rangeOf(scope: EventScope, options: ListOptions): KeyRange {
    const range = this.#keys.range(scope, options.after)
    const name = options.selector?.requires?.name
    if (name === undefined || scope.namespace === undefined || !isPart(name)) return range
    const key = Buffer.from(this.#keys.format({ namespace: scope.namespace, name }))
    const rangeEnd = Buffer.concat([key, Buffer.of(0)])
    return Buffer.compare(key, range.key) < 0 ? { key: rangeEnd, rangeEnd } : { key, rangeEnd }
  }

  /** Takes from `kvs` until there are enough items; says how many it looked at. */
  /** What is asked for next depends on what came. */
  #judgeKeys(kvs: readonly KeyValue[]): void {
    const bytes = kvs.reduce((sum, { value }) => sum + value.length, 0)
    if (bytes > 0) {
      const keys = Math.floor((rangeBytes * kvs.length) / bytes)
      this.#keysAtOnce = Math.min(rangeKeysMax, Math.max(rangeKeysMin, keys))
    }
  }

  /** For a page that need not be longer, no more than it takes. */
  #keysFor({ bytesEnough = rangeBytes }: ListOptions): number {
    const part = Math.min(1, bytesEnough / rangeBytes)
    return Math.max(rangeKeysMin, Math.floor(this.#keysAtOnce * part))
  }

  async #fill(
    page: PageSoFar,
    kvs: readonly KeyValue[],
    { selector, limit }: ListOptions,
  ): Promise<number> {
    const { items } = page
    let taken = 0
    let since = performance.now()
    for (const kv of kvs) {
      if (items.length === limit) break
      if (performance.now() - since > decodeMs) {
        await setImmediate()
        since = performance.now()
      }
      taken++
      if (this.#keys.isMark(kv.key)) continue
      const stored = decodeEvent(kv, this.#keys)
      if (stored instanceof BadValue) this.#leaveOut(page, kv, stored)
      else if (selector === undefined || selector.matches(stored)) items.push(stored)
    }
    return taken
  }

  #leaveOut({ unreadable }: PageSoFar, kv: KeyValue, value: BadValue): void {
    const key = this.#keys.parse(kv.key)
    if (key !== undefined) unreadable.push(unreadableAt(key, kv, value))
    this.#options.onCorrupt(kv.key, value)
  }

  #watchRequest(from: Version, signal: AbortSignal, prevKv: boolean): WatchRequest {
    const range = this.#keys.range({ namespace: undefined })
    return { ...range, startRevision: firstRevisionAfter(from), prevKv, signal }
  }

  async #read(key: EventKey, options?: ReadOptions): Promise<KeyValue | undefined> {
    const { kvs } = await this.#range({ key: Buffer.from(this.#keys.format(key)) }, options)
    return kvs[0]
  }

  async #range(request: RangeRequest, options?: ReadOptions): Promise<RangeResult> {
    const answer = await this.#ask(request, options)
    const wanted = options?.notOlderThan
    const version = versionOfState(answer.revision)
    if (wanted === undefined || !isAfter(wanted, version)) return answer
    throw new StorageError({
      kind: 'future',
      message: `version ${formatVersion(wanted)} has not come to be`,
      version,
    })
  }

  async #ask(request: RangeRequest, options: ReadOptions | undefined): Promise<RangeResult> {
    const signal = options?.signal
    const presence = options?.isPatient === true ? undefined : this.#options.presence
    try {
      return await this.#options.client.range(request, { signal, harmlessEnd: presence?.ending })
    } catch (error) {
      const failure = storageErrorOfRead(error)
      const isSilence = failure instanceof StorageError && silences.has(failure.kind)
      throw (isSilence ? presence?.refusal(error) : undefined) ?? failure
    }
  }
}

/** One that does not say is as good as the newest there will ever be: it is trusted with nothing. */
function connectionOf({ connection }: RangeResult): ConnectionNumber {
  return connection ?? Number.POSITIVE_INFINITY
}

/** etcd takes 0 for "now". Nothing can have been there before its first revision, nor at it. */
function askableRevision(at: Version): number {
  return Math.max(1, revisionOf(at))
}
