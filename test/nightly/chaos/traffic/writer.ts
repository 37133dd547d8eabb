import { aLane } from '../../../../src/lib/run-queue.fixture.ts'
import { StorageError } from '../../../../src/storage/errors.ts'
import type { Version } from '../../../../src/storage/resource-version.ts'
import type {
  EventKey,
  EventPage,
  EventStorage,
  ListOptions,
  StoredEvent,
} from '../../../../src/storage/storage.ts'
import type { Seen } from '../model/history.ts'
import type { Random } from './random.ts'
import type { TrafficRecord } from './record.ts'
import type { Replica } from './replica.ts'
import { keyText, seenOf } from './values.ts'
import { type Write, write } from './writes.ts'

const readTimeoutMs = 5_000
const listLimit = 1_000
/** So small that a list takes several pages. */
const pageLimit = 7

/** How often each kind of operation is chosen. */
const kinds = [
  ['create', 18],
  ['replace', 18],
  ['update', 18],
  ['upsert', 6],
  ['delete', 9],
  ['delete-exactly', 5],
  ['get', 14],
  ['list', 3],
  ['list-pages', 1],
  ['get-old', 4],
  ['list-old', 2],
  ['list-at', 2],
] as const

type Kind = (typeof kinds)[number][0]

/** One caller: performs one random operation after another. */
export class Writer {
  readonly #replica: Replica
  readonly #keys: readonly [EventKey, ...EventKey[]]
  readonly #random: Random
  readonly #record: TrafficRecord
  readonly #seen: Map<string, Seen>

  constructor(options: {
    readonly replica: Replica
    readonly keys: readonly [EventKey, ...EventKey[]]
    readonly random: Random
    readonly record: TrafficRecord
    /**
     * The last response about each key, to any writer: the state that replacing writes are based
     * on.
     */
    readonly seen: Map<string, Seen>
  }) {
    this.#seen = options.seen
    this.#replica = options.replica
    this.#keys = options.keys
    this.#random = options.random
    this.#record = options.record
  }

  async perform(id: number): Promise<void> {
    const key = this.#random.pick(this.#keys)
    const kind = this.#kindFor(key)
    const { storage } = this.#replica
    switch (kind) {
      case 'create':
      case 'replace':
      case 'update':
      case 'upsert':
      case 'delete':
      case 'delete-exactly':
        await this.#write({ id, kind, storage, write: this.#writeOf(kind, key, id) })
        return
      case 'get':
      case 'get-old':
      case 'list':
      case 'list-pages':
      case 'list-old':
      case 'list-at':
        await this.#read({ id, kind, storage, key })
    }
  }

  /** A replacing write needs a known state. */
  #kindFor(key: EventKey): Kind {
    const kind = this.#randomKind()
    const needsSeen = kind === 'replace' || kind === 'delete-exactly'
    return needsSeen && this.#seen.get(keyText(key)) === undefined ? 'get' : kind
  }

  #randomKind(): Kind {
    let dice = this.#random.below(100)
    for (const [kind, weight] of kinds) {
      if (dice < weight) return kind
      dice -= weight
    }
    return 'get'
  }

  #writeOf(kind: Kind, key: EventKey, id: number): Write {
    const value = `v${id}`
    const version = this.#seen.get(keyText(key))?.version ?? 0
    switch (kind) {
      case 'create':
        return { key, value, wants: 'nothing' }
      case 'replace':
        return { key, value, wants: { version } }
      case 'update':
        return { key, value, wants: 'something' }
      case 'delete-exactly':
        return { key, value: undefined, wants: { version } }
      case 'delete':
        return { key, value: undefined, wants: 'something' }
      default:
        return { key, value, wants: 'anything' }
    }
  }

  async #write(asked: {
    readonly id: number
    readonly kind: Kind
    readonly storage: EventStorage
    readonly write: Write
  }): Promise<void> {
    const { id, kind, storage } = asked
    const { value } = asked.write
    const key = keyText(asked.write.key)
    const calledAt = performance.now()
    const { outcome, violation } = await write(storage, asked.write)
    const returnedAt = performance.now()
    this.#record.count(kind, outcome.result)
    this.#record.operations.push({ type: 'write', id, key, value, calledAt, returnedAt, outcome })
    if (violation !== undefined) {
      const { kind: fault, message } = violation
      this.#record.violations.push({ kind: fault, message: `#${id} ${kind} ${key}: ${message}` })
    }
    if (outcome.result === 'refused') this.#seen.set(key, outcome.seen)
    if (outcome.result !== 'applied') return
    this.#record.note(outcome.version)
    this.#seen.set(key, value === undefined ? undefined : { value, version: outcome.version })
  }

  async #read(asked: {
    readonly id: number
    readonly kind: Kind
    readonly storage: EventStorage
    readonly key: EventKey
  }): Promise<void> {
    const { id, kind, storage, key } = asked
    const calledAt = performance.now()
    try {
      if (kind === 'get') {
        const seen = await getOf(storage, key, undefined)
        const returnedAt = performance.now()
        const text = keyText(key)
        this.#record.operations.push({ type: 'get', id, key: text, calledAt, returnedAt, seen })
        this.#seen.set(text, seen)
        this.#record.note(seen?.version ?? 0)
      } else if (kind === 'list' || kind === 'list-pages') {
        const listed = await listOf(storage, kind === 'list' ? listLimit : pageLimit, {})
        const returnedAt = performance.now()
        this.#record.operations.push({ type: 'list', id, calledAt, returnedAt, ...listed })
        this.#record.note(listed.version)
      } else {
        await this.#readOld(asked)
      }
      this.#record.count(kind, 'ok')
    } catch (error) {
      this.#readFailed(asked, error)
    }
  }

  async #readOld(asked: {
    readonly id: number
    readonly kind: Kind
    readonly storage: EventStorage
    readonly key: EventKey
  }): Promise<void> {
    const { id, kind, storage, key } = asked
    const newest = this.#record.newestVersion
    // No version is known yet.
    if (newest === 0) return
    if (kind === 'list-at') {
      // Some of the last hundred revisions.
      const at = Math.max(2_999, newest - this.#random.below(100_000))
      const listed = await listOf(storage, listLimit, { at: at as Version })
      this.#record.oldReads.push({ type: 'list-at', id, at, ...listed })
      return
    }
    const notOlderThan = this.#random.chance(0.5) ? newest : 0
    const fresh = { notOlderThan: notOlderThan as Version }
    if (kind === 'get-old') {
      const seen = await getOf(storage, key, fresh.notOlderThan)
      this.#record.oldReads.push({ type: 'get', id, key: keyText(key), notOlderThan, seen })
    } else {
      const listed = await listOf(storage, listLimit, fresh)
      this.#record.oldReads.push({ type: 'list', id, notOlderThan, ...listed })
    }
  }

  #readFailed(asked: { readonly id: number; readonly kind: Kind }, error: unknown): void {
    const isExpected =
      error instanceof StorageError &&
      (error.kind === 'unavailable' || error.kind === 'timeout' || error.kind === 'overloaded')
    this.#record.count(asked.kind, isExpected ? error.kind : 'wrong')
    if (isExpected) return
    const reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
    const message = `#${asked.id} ${asked.kind}: ${reason}`
    this.#record.violations.push({ kind: 'unexpected-error', message })
  }
}

async function getOf(
  storage: EventStorage,
  key: EventKey,
  notOlderThan: Version | undefined,
): Promise<Seen> {
  try {
    const signal = AbortSignal.timeout(readTimeoutMs)
    return seenOf(await storage.get(key, { notOlderThan, signal }))
  } catch (error) {
    if (error instanceof StorageError && error.kind === 'missing') return undefined
    throw error
  }
}

/** All pages, at the version of the first. */
async function listOf(
  storage: EventStorage,
  limit: number,
  options: Pick<ListOptions, 'at' | 'notOlderThan'>,
): Promise<{
  readonly version: number
  readonly items: ReadonlyMap<string, NonNullable<Seen>>
}> {
  const signal = AbortSignal.timeout(readTimeoutMs)
  const everything = { cluster: undefined, namespace: undefined }
  const items = new Map<string, NonNullable<Seen>>()
  const keep = (stored: StoredEvent) => items.set(keyText(stored.key), seenOf(stored))
  let page: EventPage = await storage.list(everything, { lane: aLane(), ...options, limit, signal })
  const { version } = page
  for (;;) {
    page.items.forEach(keep)
    const after = page.items.at(-1)?.key
    if (!page.more || after === undefined) return { version, items }
    page = await storage.list(everything, { lane: aLane(), at: version, after, limit, signal })
  }
}
