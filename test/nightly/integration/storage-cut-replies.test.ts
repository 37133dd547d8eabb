/**
 * Cuts connections after etcd has committed and before the reply arrives, over all kinds of writes:
 *   node test/nightly/integration/storage-cut-replies.test.ts 5000
 * cuts that many transactions; the test runner cuts fewer.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CountedWrites } from '../../../src/storage/counted-writes.ts'
import { StorageError } from '../../../src/storage/errors.ts'
import { revisionOf, type Version } from '../../../src/storage/resource-version.ts'
import type { EventKey, EventWatch, StoredEvent, WatchItem } from '../../../src/storage/storage.ts'
import { type EtcdCluster, startEtcd } from '../../support/etcd.ts'
import { ReplyCutter } from '../../support/reply-cutter.ts'
import { Replica } from '../../support/storage.ts'
import { eventBody, eventKey, noteOf } from '../../support/stored-events.ts'

const cutsWanted = Number(process.argv[2] ?? 500)
/** Each with its own connections, since it takes a moment to open new ones. */
const laneCount = 8
const keyCount = 40
const writesMax = 30
/** Long enough for the sent writes to be committed; a round without a commit takes it all. */
const commitWaitMs = 50
const seed = 20_260_101

/** One write, and the result that its caller got. */
interface Attempt {
  readonly kind: 'create' | 'update' | 'delete'
  /** Written into the event, to find the change of this write. */
  readonly token: string
  /** Versions that the write was based on. */
  readonly seen: Set<Version>
  end: { readonly version: Version } | StorageError['kind'] | 'kept'
}

test('cut replies: no write is applied twice, and no applied write is reported as failed', async (t) => {
  await using etcd = await startEtcd()
  const lanes = Array.from({ length: laneCount }, (_, index) => cutOff(etcd, `lane-${index}`))
  const results = await Promise.all(lanes)
  const sum = (of: (result: LaneResult) => number) =>
    results.reduce((total, result) => total + of(result), 0)
  t.diagnostic(
    `${sum(({ cuts }) => cuts)} transactions committed and cut; ` +
      `${sum(({ writes }) => writes)} writes, ${sum(({ unknown }) => unknown)} with an unknown result, ` +
      `${sum(({ happened }) => happened.length)} of those applied`,
  )
  const kinds = new Set(results.flatMap(({ happened }) => happened.map(({ kind }) => kind)))
  assert.deepEqual(kinds, new Set(['create', 'update', 'delete']))
})

interface LaneResult {
  readonly cuts: number
  readonly writes: number
  readonly unknown: number
  /** Writes that were applied while their callers got an unknown result. */
  readonly happened: readonly Attempt[]
}

/** Writes in its own namespace over its own connection, which is cut again and again. */
async function cutOff(etcd: EtcdCluster, namespace: string): Promise<LaneResult> {
  await using cutter = await ReplyCutter.start(etcd.endpoints[0] ?? '')
  await using direct = new Replica(etcd)
  await using history = new History(direct, namespace)
  await using replica = new Replica({ endpoints: [cutter.endpoint] })
  const writes = new CountedWrites(replica.storage, (key) => {
    const stored = history.current(key)
    return stored && { stored, connectionMax: replica.client.newestConnection }
  })
  const { signal } = new AbortController()
  const random = randomFrom(seed + Number(namespace.replace(/\D/g, '')))
  const attempts: Attempt[] = []
  const cutsPerLane = Math.ceil(cutsWanted / laneCount)
  const roundsMax = cutsPerLane * 3
  for (let round = 0; round < roundsMax && history.lost(attempts).size < cutsPerLane; round++) {
    // This read makes sure that there is a connection to cut.
    await replica.storage.currentVersion({ signal })
    await history.upToNow()
    const before = history.changes
    cutter.isHolding = true
    const attempted = Array.from({ length: 1 + Math.floor(random() * writesMax) }, () =>
      attemptOne({ writes, namespace, attempts, random }),
    )
    await history.past(() => history.changes > before, commitWaitMs)
    cutter.cut()
    cutter.isHolding = false
    await Promise.all(attempted)
    await history.upToNow()
  }
  assert.deepEqual(history.repeated(), [], 'applied twice')
  for (const attempt of attempts) history.check(attempt, attempts)
  assert.ok(history.lost(attempts).size >= cutsPerLane, 'too few replies were lost')
  const unknown = attempts.filter(({ end }) => end === 'timeout')
  return {
    cuts: history.lost(attempts).size,
    writes: attempts.length,
    unknown: unknown.length,
    happened: unknown.filter((attempt) => history.has(attempt)),
  }
}

/** A random write to one of the keys, based on the last known state. */
async function attemptOne(lane: {
  readonly writes: CountedWrites
  readonly namespace: string
  readonly attempts: Attempt[]
  readonly random: () => number
}): Promise<void> {
  const { writes, namespace, attempts, random } = lane
  const kind = (['create', 'update', 'delete'] as const)[Math.floor(random() * 3)] ?? 'create'
  const token = `${kind}-${attempts.length}`
  const key = eventKey(namespace, `e${Math.floor(random() * keyCount)}`)
  const attempt: Attempt = { kind, token, seen: new Set(), end: 'kept' }
  attempts.push(attempt)
  const see = (current: StoredEvent | undefined) => {
    if (current !== undefined) attempt.seen.add(current.version)
    return eventBody(key, token)
  }
  try {
    const stored =
      kind === 'create'
        ? await writes.create(key, eventBody(key, token))
        : kind === 'update'
          ? await writes.update(key, see)
          : await writes.delete(key, see)
    attempt.end = { version: stored.version }
  } catch (error) {
    assert.ok(error instanceof StorageError, String(error))
    attempt.end = error.kind
  }
}

/** The changes in etcd, from a watcher with an undisturbed connection. */
class History implements AsyncDisposable {
  readonly #replica: Replica
  readonly #namespace: string
  readonly #end = new AbortController()
  readonly #watching: Promise<void>
  readonly #puts = new Map<string, Version[]>()
  /** Keyed by the version of the state that was deleted. */
  readonly #deletes = new Map<Version, Version>()
  readonly #current = new Map<string, StoredEvent>()
  #lost = { counted: 0, revisions: new Set<number>() }
  #woken = Promise.withResolvers<void>()
  #watch: EventWatch | undefined
  #revision = 0
  /** The number of changes seen. */
  changes = 0

  constructor(replica: Replica, namespace: string) {
    this.#replica = replica
    this.#namespace = namespace
    this.#watching = this.#follow()
  }

  current(key: EventKey): StoredEvent | undefined {
    return this.#current.get(key.name)
  }

  has(attempt: Attempt): boolean {
    return this.#versionsOf(attempt).length > 0
  }

  /** Transactions that were committed while their callers got an unknown result. */
  lost(attempts: readonly Attempt[]): ReadonlySet<number> {
    const { revisions } = this.#lost
    for (const attempt of attempts.slice(this.#lost.counted)) {
      if (attempt.end !== 'timeout') continue
      for (const version of this.#versionsOf(attempt)) revisions.add(revisionOf(version))
    }
    this.#lost.counted = attempts.length
    return revisions
  }

  repeated(): readonly string[] {
    return [...this.#puts].filter(([, versions]) => versions.length > 1).map(([token]) => token)
  }

  /** Compares the result that a caller got with the changes in etcd. */
  check(attempt: Attempt, all: readonly Attempt[]): void {
    const { kind, token, end } = attempt
    const versions = this.#versionsOf(attempt)
    if (end === 'timeout') return
    if (typeof end === 'object') {
      assert.ok(versions.includes(end.version), `${token} was acknowledged and not applied`)
    } else if (versions.length > 0) {
      // The state that it wanted to delete was deleted by another delete of the same state.
      const isOthers = kind === 'delete' && all.some((other) => mayHaveDeleted(other, attempt.seen))
      assert.ok(isOthers, `${token} failed with ${end} and was applied`)
    }
  }

  /** Resolves when `holds` is true after a change was seen, or after `ms`. */
  async past(holds: () => boolean, ms: number): Promise<void> {
    const deadline = performance.now() + ms
    while (!holds() && performance.now() < deadline) {
      const late = Promise.withResolvers<void>()
      const timer = setTimeout(late.resolve, Math.max(1, deadline - performance.now()))
      await Promise.race([this.#woken.promise, late.promise])
      clearTimeout(timer)
    }
  }

  async upToNow(): Promise<void> {
    const now = await this.#replica.revision()
    while (this.#revision < now) {
      this.#watch?.requestProgress()
      await this.past(() => this.#revision >= now, 1_000)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort()
    await this.#watching
  }

  /** The versions of the changes that this write can have made. */
  #versionsOf({ kind, token, seen }: Attempt): readonly Version[] {
    if (kind !== 'delete') return this.#puts.get(token) ?? []
    return [...seen].flatMap((version) => this.#deletes.get(version) ?? [])
  }

  async #follow(): Promise<void> {
    const { storage } = this.#replica
    const { signal } = this.#end
    const from = await storage.currentVersion({ signal })
    this.#revision = revisionOf(from)
    const scope = { cluster: 'local', namespace: this.#namespace }
    this.#watch = storage.watch(scope, { from, signal })
    for await (const { items, version } of this.#watch) {
      for (const item of items) this.#record(item)
      this.changes += items.length
      this.#revision = revisionOf(version)
      this.#woken.resolve()
      this.#woken = Promise.withResolvers()
    }
  }

  #record(item: WatchItem): void {
    const { stored } = item
    if (item.type === 'put') {
      const token = noteOf(stored)
      this.#puts.set(token, [...(this.#puts.get(token) ?? []), stored.version])
      this.#current.set(stored.key.name, stored)
      return
    }
    const last = this.#current.get(stored.key.name)
    assert.ok(last !== undefined, 'an event that did not exist was deleted')
    this.#deletes.set(last.version, stored.version)
    this.#current.delete(stored.key.name)
  }
}

function mayHaveDeleted(attempt: Attempt, states: ReadonlySet<Version>): boolean {
  const { kind, end, seen } = attempt
  const mayHave = end === 'timeout' || typeof end === 'object'
  return kind === 'delete' && mayHave && [...seen].some((version) => states.has(version))
}

/** A small random generator of numbers in [0, 1), the same for the same seed. */
function randomFrom(start: number): () => number {
  let state = start
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32
    return state / 2 ** 32
  }
}
