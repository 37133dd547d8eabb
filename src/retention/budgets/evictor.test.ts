import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Term } from '../../election/term.ts'
import { pause } from '../../lib/abort.ts'
import { monotonicClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log/log.ts'
import { aLane } from '../../lib/run-queue.fixture.ts'
import { StorageError } from '../../storage/errors.ts'
import type { Version } from '../../storage/resource-version.ts'
import type { EventKey, EventPage, Guard, ListOptions, StoredEvent } from '../../storage/storage.ts'
import { StoredBody } from '../../storage/stored-form.ts'
import { type RetentionBudget, RetentionPolicy } from '../policy.ts'
import { Evictor } from './evictor.ts'

const budget: RetentionBudget = {
  name: 'b',
  per: 'Namespace',
  cluster: undefined,
  namespace: undefined,
  events: 10,
  bytes: undefined,
}

/** Has microseconds, like the times of events. */
function timeOf(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z')
}

/** An event that was seen at the time of its version. */
function stored(name: string, version: number): StoredEvent {
  return new StoredBody({
    key: { cluster: 'c', namespace: 'n', name },
    body: Buffer.from(`{"metadata":{},"eventTime":"${timeOf(version)}"}`),
    versionOffset: 13,
    version: version as Version,
    writtenAtMs: 0,
  })
}

/** A storage with events of one namespace, whose counts may be out of date or unknown. */
class ScriptedStorage {
  readonly versions = new Map<string, number>()
  readonly deleted: string[] = []
  isKnown = true
  isVerified = true
  failure: StorageError | undefined
  onList = () => {}
  onDelete = () => {}
  /** Where each list of the oldest events began; -1 for the start. */
  readonly listedAfter: number[] = []

  async list(_scope: unknown, options: ListOptions): Promise<EventPage> {
    const { limit, order, selector, afterMs = -1 } = options
    // None is dated in the future.
    if (selector?.requires?.sinceMs !== undefined) {
      return { items: [], version: 1 as Version, more: false, remaining: undefined }
    }
    const all = [...this.versions]
      .map(([name, version]) => stored(name, version))
      .filter((event) => selector?.matches(event) !== false && event.version > afterMs)
      .toSorted((one, other) => one.version - other.version)
    if (order === 'newest') all.reverse()
    else this.listedAfter.push(afterMs)
    const items = all.slice(0, limit)
    if (order === 'oldest') this.onList()
    return { items, version: 1 as Version, more: false, remaining: undefined }
  }

  async delete({ name }: EventKey, guard?: Guard): Promise<StoredEvent> {
    if (this.failure !== undefined) throw this.failure
    const version = this.versions.get(name)
    if (version === undefined) throw new StorageError({ kind: 'missing', message: 'gone' })
    const current = stored(name, version)
    guard?.(current)
    this.versions.delete(name)
    this.deleted.push(name)
    this.onDelete()
    return current
  }

  #size(namespace: string | undefined) {
    const { size } = this.versions
    return { cluster: 'c', namespace, events: size, bytes: size * 15 }
  }

  readonly sizes = {
    all: () => (this.isKnown ? [this.#size(undefined), this.#size('n')] : undefined),
    of: (_cluster: string, namespace: string | undefined) =>
      this.isKnown ? this.#size(namespace) : undefined,
  }
}

async function settle(): Promise<void> {
  for (let tick = 0; tick < 50; tick++) await new Promise((resolve) => setImmediate(resolve))
}

/** The next pass begins after this long. */
const passMs = 250

function start(storage: ScriptedStorage) {
  const held = { isHeld: true }
  const ending = new AbortController()
  const term: Term = {
    signal: ending.signal,
    revision: 1,
    isHeld: () => held.isHeld && !ending.signal.aborted,
    heldUntil: Number.POSITIVE_INFINITY,
  }
  const used = { policy: new RetentionPolicy({ lifetime: 'never', budgets: [budget] }) }
  let evicted = 0
  const evictor = new Evictor({
    storage,
    sizes: storage.sizes,
    policy: () => used.policy,
    isReady: () => true,
    isVerified: () => storage.isVerified,
    onEvicted: () => evicted++,
    wallTime: () => 0,
    clock: monotonicClock,
    lane: aLane(),
    log: silentLog,
  })
  const running = evictor.run(term)
  const end = async () => {
    ending.abort()
    await running
    return evicted
  }
  return { used, held, running, end }
}

function filled(count: number): ScriptedStorage {
  const storage = new ScriptedStorage()
  for (let at = 0; at < count; at++) storage.versions.set(`e${at}`, at + 1)
  return storage
}

test('evictor: deletes the excess, in the order of the list', async () => {
  const storage = filled(13)
  const { end } = start(storage)
  await settle()
  assert.deepEqual(storage.deleted, ['e0', 'e1', 'e2'])
  assert.equal(await end(), 3)
})

test('evictor: lists and deletes nothing while counts are unknown', async () => {
  const storage = filled(13)
  storage.isKnown = false
  const { end } = start(storage)
  await settle()
  assert.deepEqual([storage.listedAfter.length, storage.deleted], [0, []])
  await end()
})

test('evictor: deletes nothing when counts become unknown or the excess vanishes during the list', async () => {
  const storage = filled(13)
  storage.onList = () => {
    storage.isKnown = false
  }
  const first = start(storage)
  await settle()
  await first.end()
  assert.deepEqual([storage.listedAfter.length > 0, storage.deleted], [true, []])
  storage.isKnown = true
  storage.onList = () => {
    for (const name of ['e3', 'e4', 'e5']) storage.versions.delete(name)
  }
  const second = start(storage)
  await settle()
  await second.end()
  assert.deepEqual(storage.deleted, [])
})

test('evictor: deletes nothing of another history or version, or under a replaced policy', async () => {
  const storage = filled(13)
  storage.isVerified = false
  const unverified = start(storage)
  await settle()
  await unverified.end()
  assert.deepEqual(storage.deleted, [])
  storage.isVerified = true
  let changes = 0
  storage.onList = () => {
    if (changes++ > 0) return
    storage.versions.delete('e1')
    storage.versions.set('e1', 100)
  }
  const changed = start(storage)
  await pause(passMs)
  // Instead of the changed event, the next one is deleted, once the counts require it.
  assert.deepEqual(storage.deleted, ['e0', 'e2', 'e3'])
  await changed.end()
  storage.versions.set('x', 1)
  const { used, end } = start(storage)
  storage.onList = () => {
    used.policy = new RetentionPolicy({ lifetime: 'never', budgets: [{ ...budget, events: 50 }] })
  }
  await settle()
  await end()
  assert.deepEqual(storage.deleted, ['e0', 'e2', 'e3'])
})

test('evictor: stops deleting when the term is lost in the middle of a batch', async () => {
  const storage = filled(400)
  const { held, running } = start(storage)
  storage.onDelete = () => {
    held.isHeld = false
  }
  await running
  assert.deepEqual(storage.deleted, ['e0'])
})

test('evictor: pauses after each pass that was not full, and continues where it stopped', async () => {
  const storage = filled(1_010)
  const { end } = start(storage)
  await settle()
  // Two full batches at once, and nothing is left to do.
  assert.deepEqual(storage.listedAfter, [-1, 500])
  assert.equal(storage.versions.size, 10)
  for (let at = 0; at < 4; at++) {
    storage.versions.set(`n${at}`, 2_000 + at)
    await pause(passMs)
  }
  assert.equal(await end(), 1_004)
  const later = storage.listedAfter.slice(2)
  assert.ok(later.length >= 4 && later.length <= 6, `${later.length} lists`)
  assert.ok(!later.includes(-1), 'not from the start again')
})

test('evictor: finds older events that are written later, with a short delay', async () => {
  const storage = filled(13)
  for (const [name, version] of storage.versions) storage.versions.set(name, version + 1_000)
  const { end } = start(storage)
  await settle()
  assert.equal(storage.versions.size, 10)
  storage.versions.set('old', 1)
  storage.versions.set('old2', 2)
  await pause(2_500)
  storage.versions.set('old3', 3)
  await pause(passMs)
  await end()
  assert.ok(!storage.versions.has('old'), `${[...storage.versions.keys()]}`)
})

test('evictor: is ended by a bug, but not by a storage failure', async () => {
  // Several slices of deletes.
  const storage = filled(213)
  storage.failure = new StorageError({ kind: 'unavailable', message: 'away' })
  const { end } = start(storage)
  await settle()
  storage.failure = undefined
  while (storage.versions.size > 10) await new Promise((resolve) => setTimeout(resolve, 10))
  assert.equal(await end(), 203)
  storage.list = () => Promise.reject(new TypeError('a bug'))
  storage.versions.set('x', 1)
  await assert.rejects(start(storage).running, TypeError)
})
