import assert from 'node:assert/strict'
import { afterEach, beforeEach, mock, test } from 'node:test'
import { silentLog } from '../lib/log.ts'
import { missing, StorageError } from '../storage/errors.ts'
import type { Version } from '../storage/resource-version.ts'
import type { EventKey, Guard, StoredEvent } from '../storage/storage.ts'
import { StoredBody } from '../storage/stored-form.ts'
import type { DueQueue } from './due-queue.ts'
import type { Term } from './leadership.ts'
import { Sweeper } from './sweeper.ts'

const time = { now: 0 }

async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
}

async function advance(ms: number): Promise<void> {
  for (let at = 0; at < ms; at += 50) {
    time.now += 50
    mock.timers.tick(50)
    await settle()
  }
}

beforeEach(() => {
  time.now = 0
  mock.timers.enable({ apis: ['setTimeout'] })
})
afterEach(() => mock.timers.reset())

type Reply = StorageError | undefined

/** Events by name; answers deletes as it is told to, and else as a storage does. */
class ScriptedStorage {
  readonly versions = new Map<string, number>()
  readonly deleted: string[] = []
  /** What the next deletes end with before anything else. */
  readonly replies: Reply[] = []
  asked = 0
  /** Deletes wait for this. */
  gate: Promise<void> = Promise.resolve()

  read = 0

  async get(key: EventKey): Promise<StoredEvent> {
    this.read++
    const reply = this.replies.shift()
    if (reply !== undefined) throw reply
    const version = this.versions.get(key.name)
    if (version === undefined) throw missing(key)
    return storedAt(key, version)
  }

  async delete(key: EventKey, guard?: Guard): Promise<StoredEvent> {
    this.asked++
    await this.gate
    const reply = this.replies.shift()
    if (reply !== undefined) throw reply
    const version = this.versions.get(key.name)
    if (version === undefined) throw missing(key)
    const current = storedAt(key, version)
    guard?.(current)
    this.versions.delete(key.name)
    this.deleted.push(key.name)
    return current
  }
}

function storedAt(key: EventKey, version: number): StoredEvent {
  return new StoredBody({
    key,
    body: Buffer.from('{"metadata":{}}'),
    versionOffset: 13,
    version: version as Version,
    writtenAtMs: version,
  })
}

/** Versions are the times of writing; everything lives for 1,000 ms after. */
function start(storage: ScriptedStorage, lateMs?: number, damaged?: () => Iterable<StoredEvent>) {
  const ending = new AbortController()
  const held = { until: Number.POSITIVE_INFINITY }
  const term: Term = {
    signal: ending.signal,
    revision: 1,
    isHeld: () => !ending.signal.aborted && time.now < held.until,
    get heldUntil() {
      return held.until
    },
    lateMs,
  }
  let queue: DueQueue | undefined
  let onFilled = () => {}
  const recalled = new Map<string, StoredEvent>()
  const sweeper = new Sweeper({
    storage,
    feed: {
      run: (filled, options) => {
        queue = filled
        onFilled = options.onFilled
        return new Promise((resolve) => options.signal.addEventListener('abort', () => resolve()))
      },
    },
    recall: (key) => recalled.get(key.name),
    damaged,
    dueTime: (stored) => (stored.version % 2 === 1 ? 'never' : stored.version + 1_000),
    clock: { now: () => time.now },
    log: silentLog,
  })
  const running = sweeper.run(term)
  const add = (name: string, version: number) => {
    storage.versions.set(name, version)
    const key = { namespace: 'n', name }
    queue?.push({ key, version: version as Version, dueAt: version + 1_000 })
  }
  const end = async () => {
    ending.abort()
    await settle()
    await running
  }
  return { sweeper, add, recalled, filled: () => onFilled(), held, running, end }
}

test('sweeper: nothing before it is due, all within a second after, in order', async () => {
  const storage = new ScriptedStorage()
  const { sweeper, add, end } = start(storage)
  add('late', 1_500)
  add('b', 404)
  add('a', 402)
  await advance(1_400)
  assert.deepEqual(storage.deleted, [])
  await advance(1_050)
  assert.deepEqual(storage.deleted, ['a', 'b'])
  await advance(1_000)
  assert.deepEqual(storage.deleted, ['a', 'b', 'late'])
  assert.deepEqual([sweeper.sweptCount, sweeper.waitingCount], [3, 0])
  await end()
})

test('sweeper: what is due when it comes to lead goes as soon as it is known', async () => {
  const storage = new ScriptedStorage()
  const { add, filled, end } = start(storage)
  await advance(300)
  add('overdue', -5_000)
  await advance(300)
  assert.deepEqual(storage.deleted, [])
  filled()
  await settle()
  assert.deepEqual(storage.deleted, ['overdue'])
  await end()
})

test('sweeper: a changed event keeps its life and gets a new time; one to be kept gets none', async () => {
  const storage = new ScriptedStorage()
  const { sweeper, add, end } = start(storage)
  add('updated', 0)
  add('kept', 0)
  storage.versions.set('updated', 900)
  storage.versions.set('kept', 901)
  await advance(1_100)
  assert.equal(storage.asked, 2)
  assert.deepEqual(storage.deleted, [])
  assert.equal(sweeper.waitingCount, 1)
  await advance(700)
  assert.deepEqual(storage.deleted, [])
  await advance(1_200)
  assert.deepEqual(storage.deleted, ['updated'])
  assert.equal(storage.asked, 3)
  await end()
})

test('sweeper: what memory knows to be changed is left alone, on any other word it is asked', async () => {
  const storage = new ScriptedStorage()
  const { add, recalled, end } = start(storage)
  add('changed', 4)
  add('same', 6)
  add('older', 8)
  const believed = (name: string, version: number) =>
    recalled.set(name, storedAt({ namespace: 'n', name }, version))
  believed('changed', 900)
  believed('same', 6)
  believed('older', 2)
  storage.versions.set('changed', 900)
  await advance(1_500)
  assert.equal(storage.asked, 0)
  await advance(550)
  assert.deepEqual([storage.asked, storage.deleted], [3, ['same', 'older', 'changed']])
  await end()
})

test('sweeper: what somebody else deleted, and what is no event, is not asked for again', async () => {
  const storage = new ScriptedStorage()
  const { sweeper, add, end } = start(storage)
  add('gone', 0)
  storage.versions.clear()
  await advance(1_100)
  add('corrupt', 0)
  storage.replies.push(new StorageError({ kind: 'corrupt', message: 'what is this' }))
  await advance(3_000)
  assert.deepEqual([storage.asked, sweeper.waitingCount, sweeper.sweptCount], [2, 0, 0])
  await end()
})

test('sweeper: an unknown end is found out by trying again, in its old place', async () => {
  const storage = new ScriptedStorage()
  const { sweeper, add, end } = start(storage)
  add('first', 0)
  add('second', 0)
  storage.replies.push(new StorageError({ kind: 'timeout', message: 'no answer' }))
  await advance(1_050)
  assert.deepEqual(storage.deleted, ['second'])
  assert.ok(sweeper.lagMs >= 50)
  await advance(1_000)
  assert.deepEqual(storage.deleted, ['second', 'first'])
  assert.equal(sweeper.lagMs, 0)
  await end()
})

test('sweeper: an overloaded storage is asked for less, and not before it said', async () => {
  const storage = new ScriptedStorage()
  const { add, end } = start(storage)
  for (let at = 0; at < 2_000; at++) add(`e${at}`, 0)
  const overloaded = new StorageError({ kind: 'overloaded', message: 'full', retryAfterMs: 3_000 })
  storage.replies.push(...Array.from({ length: 500 }, () => overloaded))
  await advance(1_050)
  assert.equal(storage.asked, 500)
  await advance(2_800)
  assert.equal(storage.asked, 500)
  const gate = Promise.withResolvers<void>()
  storage.gate = gate.promise
  await advance(300)
  assert.equal(storage.asked, 750)
  gate.resolve()
  await advance(50)
  assert.equal(storage.deleted.length, 2_000)
  await end()
})

test('sweeper: begins no batch after its term, whether it was told or not', async () => {
  const storage = new ScriptedStorage()
  const { add, held, running } = start(storage)
  for (let at = 0; at < 2_000; at++) add(`e${at}`, 0)
  const gate = Promise.withResolvers<void>()
  storage.gate = gate.promise
  held.until = 5_000
  await advance(1_050)
  assert.equal(storage.asked, 500)
  // Stopped for a minute: no timer has run when it goes on.
  time.now += 60_000
  gate.resolve()
  await Promise.all([running, advance(100)])
  assert.equal(storage.asked, 500)
})

test('sweeper: a bug ends it instead of being slept over', async () => {
  const storage = new ScriptedStorage()
  storage.delete = () => Promise.reject(new TypeError('a bug'))
  const { add, running } = start(storage)
  add('e', 0)
  await Promise.all([assert.rejects(running, TypeError), advance(1_100)])
})

test('sweeper: without an election it comes later, and leaves alone what others have swept', async () => {
  const storage = new ScriptedStorage()
  const { sweeper, add, recalled, end } = start(storage, 3_000)
  for (const name of ['swept', 'unknown', 'remembered']) add(name, 0)
  recalled.set('remembered', storedAt({ namespace: 'n', name: 'remembered' }, 0))
  await advance(3_900)
  assert.deepEqual([storage.read, storage.asked], [0, 0])
  assert.equal(sweeper.lagMs, 2_900)
  storage.versions.delete('swept')
  storage.replies.push(new StorageError({ kind: 'unavailable', message: 'a short outage' }))
  await advance(2_500)
  assert.deepEqual(storage.deleted.toSorted(), ['remembered', 'unknown'])
  assert.deepEqual([storage.read, storage.asked], [4, 2])
  assert.deepEqual([sweeper.sweptCount, sweeper.waitingCount], [2, 0])
  await end()
})

test('sweeper: a damaged event is in the queue once, however often sweeping it fails', async () => {
  const storage = new ScriptedStorage()
  storage.versions.set('d', 2)
  const damaged = () =>
    [...storage.versions].map(([name, version]) => storedAt({ namespace: 'ns', name }, version))
  const { sweeper, end } = start(storage, undefined, damaged)
  const away = () => new StorageError({ kind: 'unavailable', message: 'away' })
  storage.replies.push(...Array.from({ length: 6 }, away))
  await advance(10_000)
  assert.equal(sweeper.waitingCount, 1)
  await advance(30_000)
  assert.deepEqual([storage.deleted, sweeper.waitingCount], [['d'], 0])
  assert.equal(storage.asked, 7)
  await end()
})
