import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, mock, test } from 'node:test'
import type { Term } from '../election/term.ts'
import { silentLog } from '../lib/log/log.ts'
import { missing, StorageError } from '../storage/errors.ts'
import type { Version } from '../storage/resource-version.ts'
import type { EventKey, Guard, StoredEvent } from '../storage/storage.ts'
import { StoredBody } from '../storage/stored-form.ts'
import type { ArchiveGate } from './archive-gate.ts'
import type { ExpiryQueue } from './expiry-queue.ts'
import { Sweeper } from './sweeper.ts'

const time = { now: 0 }
/** Lifetime of events that expire. */
const lifetime = { ms: 1_000 }

async function settle(): Promise<void> {
  for (let tick = 0; tick < 50; tick++) await new Promise((resolve) => setImmediate(resolve))
}

async function advance(ms: number): Promise<void> {
  for (let at = 0; at < ms; at += 50) {
    time.now += 50
    mock.timers.tick(50)
    await settle()
  }
}

type Reply = StorageError | undefined

/** Events keyed by name. Scripted replies come first; after that it behaves like a storage. */
class ScriptedStorage {
  readonly versions = new Map<string, number>()
  readonly deleted: string[] = []
  /** Results of the next calls. */
  readonly replies: Reply[] = []
  deletes = 0
  /** Deletes wait for this. */
  gate: Promise<void> = Promise.resolve()

  reads = 0

  async get(key: EventKey): Promise<StoredEvent> {
    this.reads++
    const reply = this.replies.shift()
    if (reply !== undefined) throw reply
    const version = this.versions.get(key.name)
    if (version === undefined) throw missing(key)
    return storedAt(key, version)
  }

  async delete(key: EventKey, guard?: Guard): Promise<StoredEvent> {
    this.deletes++
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

/** A version is the time of the write; even ones expire 1,000 ms later, odd ones never. */
function start(
  storage: ScriptedStorage,
  lateMs?: number,
  damaged?: () => Iterable<StoredEvent>,
  archive?: ArchiveGate,
) {
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
  let queue: ExpiryQueue | undefined
  let onFilled = () => {}
  const recalled = new Map<string, StoredEvent>()
  const swept = { count: 0 }
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
    archive,
    dueTime: (stored) => (stored.version % 2 === 1 ? 'never' : stored.version + lifetime.ms),
    onDue: () => () => swept.count++,
    clock: { now: () => time.now },
    log: silentLog,
  })
  const running = sweeper.run(term)
  const add = (name: string, version: number) => {
    storage.versions.set(name, version)
    const key = { cluster: 'local', namespace: 'n', name }
    queue?.push({ key, version: version as Version, dueAt: version + 1_000 })
  }
  const end = async () => {
    ending.abort()
    await settle()
    await running
  }
  return { sweeper, swept, add, recalled, filled: () => onFilled(), held, running, end }
}

describe('sweeper', () => {
  beforeEach(() => {
    time.now = 0
    lifetime.ms = 1_000
    mock.timers.enable({ apis: ['setTimeout'] })
  })
  afterEach(() => mock.timers.reset())

  test('deletes events in order, within a second after they are due, never before', async () => {
    const storage = new ScriptedStorage()
    const { swept, sweeper, add, end } = start(storage)
    add('late', 1_500)
    add('b', 404)
    add('a', 402)
    await advance(1_400)
    assert.deepEqual(storage.deleted, [])
    await advance(1_050)
    assert.deepEqual(storage.deleted, ['a', 'b'])
    await advance(1_000)
    assert.deepEqual(storage.deleted, ['a', 'b', 'late'])
    assert.deepEqual([swept.count, sweeper.waitingCount], [3, 0])
    await end()
  })

  test('deletes overdue events as soon as the queue is filled', async () => {
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

  test('waits until an expired event is archived, unless there is no room', async () => {
    const storage = new ScriptedStorage()
    const archived = { upTo: 100, canWait: true }
    const lost: number[] = []
    const archive: ArchiveGate = {
      name: 'file:///archive',
      isArchived: (version) => version <= archived.upTo,
      canWait: () => archived.canWait,
      readAfter: () => undefined,
      onDeleted: (version, reason) => {
        assert.equal(reason, 'no-space')
        if (version > archived.upTo) lost.push(version)
      },
    }
    const { sweeper, add, end } = start(storage, undefined, undefined, archive)
    add('archived', 100)
    add('waiting', 102)
    await advance(2_000)
    assert.deepEqual(storage.deleted, ['archived'])
    assert.deepEqual([sweeper.waitingCount, sweeper.lagMs], [1, 0])
    archived.upTo = 102
    await advance(1_000)
    assert.deepEqual(storage.deleted, ['archived', 'waiting'])
    add('urgent', 104)
    await advance(1_000)
    assert.deepEqual(storage.deleted.length, 2)
    archived.canWait = false
    await advance(1_000)
    assert.deepEqual([storage.deleted.at(-1), lost], ['urgent', [104]])
    await end()
  })

  test('queues a changed event again with its new due time, if it has one', async () => {
    const storage = new ScriptedStorage()
    const { sweeper, add, end } = start(storage)
    add('updated', 0)
    add('kept', 0)
    storage.versions.set('updated', 900)
    storage.versions.set('kept', 901)
    await advance(1_100)
    assert.equal(storage.deletes, 2)
    assert.deepEqual(storage.deleted, [])
    assert.equal(sweeper.waitingCount, 1)
    await advance(700)
    assert.deepEqual(storage.deleted, [])
    await advance(1_200)
    assert.deepEqual(storage.deleted, ['updated'])
    assert.equal(storage.deletes, 3)
    await end()
  })

  test('queues an event again without a delete when the cache knows it was changed', async () => {
    const storage = new ScriptedStorage()
    const { add, recalled, end } = start(storage)
    add('changed', 4)
    add('same', 6)
    add('older', 8)
    const remember = (name: string, version: number) =>
      recalled.set(name, storedAt({ cluster: 'local', namespace: 'n', name }, version))
    remember('changed', 900)
    remember('same', 6)
    remember('older', 2)
    storage.versions.set('changed', 900)
    await advance(1_500)
    assert.equal(storage.deletes, 0)
    await advance(550)
    assert.deepEqual([storage.deletes, storage.deleted], [3, ['same', 'older', 'changed']])
    await end()
  })

  test('queues an event again when it is no longer due at its delete', async () => {
    const storage = new ScriptedStorage()
    const { swept, sweeper, add, end } = start(storage)
    add('a', 0)
    add('b', 0)
    const gate = Promise.withResolvers<void>()
    storage.gate = gate.promise
    await advance(1_050)
    assert.equal(storage.deletes, 2)
    // The policy has changed in the meantime.
    lifetime.ms = 3_000
    gate.resolve()
    await advance(1_900)
    assert.deepEqual([storage.deleted, swept.count, sweeper.waitingCount], [[], 0, 2])
    await advance(1_200)
    assert.deepEqual(storage.deleted, ['a', 'b'])
    await end()
  })

  test('does not retry a delete that finds no event or a corrupt one', async () => {
    const storage = new ScriptedStorage()
    const { swept, sweeper, add, end } = start(storage)
    add('gone', 0)
    storage.versions.clear()
    await advance(1_100)
    add('corrupt', 0)
    storage.replies.push(new StorageError({ kind: 'corrupt', message: 'not an event' }))
    await advance(3_000)
    assert.deepEqual([storage.deletes, sweeper.waitingCount, swept.count], [2, 0, 0])
    await end()
  })

  test('retries a delete with an unknown result, with the old due time', async () => {
    const storage = new ScriptedStorage()
    const { sweeper, add, end } = start(storage)
    add('first', 0)
    add('second', 0)
    storage.replies.push(new StorageError({ kind: 'timeout', message: 'no response' }))
    await advance(1_050)
    assert.deepEqual(storage.deleted, ['second'])
    assert.ok(sweeper.lagMs >= 50)
    await advance(1_000)
    assert.deepEqual(storage.deleted, ['second', 'first'])
    assert.equal(sweeper.lagMs, 0)
    await end()
  })

  test('sends smaller batches to an overloaded storage, and none before Retry-After', async () => {
    const storage = new ScriptedStorage()
    const { add, end } = start(storage)
    for (let at = 0; at < 2_000; at++) add(`e${at}`, 0)
    const overloaded = new StorageError({
      kind: 'overloaded',
      message: 'full',
      retryAfterMs: 3_000,
    })
    storage.replies.push(...Array.from({ length: 500 }, () => overloaded))
    await advance(1_050)
    assert.equal(storage.deletes, 500)
    await advance(2_800)
    assert.equal(storage.deletes, 500)
    const gate = Promise.withResolvers<void>()
    storage.gate = gate.promise
    await advance(300)
    assert.equal(storage.deletes, 750)
    gate.resolve()
    await advance(50)
    assert.equal(storage.deleted.length, 2_000)
    await end()
  })

  test('begins no batch after the term, even if the signal has not aborted', async () => {
    const storage = new ScriptedStorage()
    const { add, held, running } = start(storage)
    for (let at = 0; at < 2_000; at++) add(`e${at}`, 0)
    const gate = Promise.withResolvers<void>()
    storage.gate = gate.promise
    held.until = 5_000
    await advance(1_050)
    assert.equal(storage.deletes, 500)
    // Paused for a minute: no timer has run when it continues.
    time.now += 60_000
    gate.resolve()
    await Promise.all([running, advance(100)])
    assert.equal(storage.deletes, 500)
  })

  test('rejects on a bug instead of retrying', async () => {
    const storage = new ScriptedStorage()
    storage.delete = () => Promise.reject(new TypeError('a bug'))
    const { add, running } = start(storage)
    add('e', 0)
    await Promise.all([assert.rejects(running, TypeError), advance(1_100)])
  })

  test('starts later without an election, and skips what others have deleted', async () => {
    const storage = new ScriptedStorage()
    const { swept, sweeper, add, recalled, end } = start(storage, 3_000)
    for (const name of ['swept', 'unknown', 'remembered']) add(name, 0)
    recalled.set(
      'remembered',
      storedAt({ cluster: 'local', namespace: 'n', name: 'remembered' }, 0),
    )
    await advance(3_900)
    assert.deepEqual([storage.reads, storage.deletes], [0, 0])
    assert.equal(sweeper.lagMs, 2_900)
    storage.versions.delete('swept')
    storage.replies.push(new StorageError({ kind: 'unavailable', message: 'a short outage' }))
    await advance(2_500)
    assert.deepEqual(storage.deleted.toSorted(), ['remembered', 'unknown'])
    assert.deepEqual([storage.reads, storage.deletes], [4, 2])
    assert.deepEqual([swept.count, sweeper.waitingCount], [2, 0])
    await end()
  })

  test('queues a damaged event once, however often its delete fails', async () => {
    const storage = new ScriptedStorage()
    storage.versions.set('d', 2)
    const damaged = () =>
      [...storage.versions].map(([name, version]) =>
        storedAt({ cluster: 'local', namespace: 'ns', name }, version),
      )
    const { sweeper, end } = start(storage, undefined, damaged)
    const away = () => new StorageError({ kind: 'unavailable', message: 'away' })
    storage.replies.push(...Array.from({ length: 6 }, away))
    await advance(10_000)
    assert.equal(sweeper.waitingCount, 1)
    await advance(30_000)
    assert.deepEqual([storage.deleted, sweeper.waitingCount], [['d'], 0])
    assert.equal(storage.deletes, 7)
    await end()
  })
})
