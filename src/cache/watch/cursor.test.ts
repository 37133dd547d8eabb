import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aLane } from '../../lib/run-queue.fixture.ts'
import { RunQueue } from '../../lib/run-queue.ts'
import { StorageError } from '../../storage/errors.ts'
import { SharedBatch } from '../../storage/frames.ts'
import {
  beginning,
  isAfter,
  type Version,
  versionOfChange,
  versionOfState,
} from '../../storage/resource-version.ts'
import type { WatchBatch, WatchItem } from '../../storage/storage.ts'
import { madePut } from '../memory/made-events.fixture.ts'
import { CatchUpReader } from './catch-up-reader.ts'
import { type CatchUpStep, Cursor } from './cursor.ts'
import { FanOut } from './fan-out.ts'
import { History } from './history.ts'

const tick = () => new Promise((resolve) => setImmediate(resolve))

/** A history that is written by hand, and a store that retains all of it. */
class Scene {
  readonly history: History
  readonly fanOut: FanOut
  readonly all: WatchItem[] = []
  readonly end = new AbortController()
  catchUpSteps = 0
  nowMs = 0
  /** How much each read of the clock advances it. */
  msPerClockRead = 0
  isCurrent = true
  isCompacted = false
  #revision = 0

  constructor(changesMax = 1_000, promptMax?: number) {
    this.history = new History({ changesMax, bytesMax: 1e9, promptMax }, beginning)
    const clock = { now: () => (this.nowMs += this.msPerClockRead) }
    const lane = new RunQueue({ clock }).serverLane('watches')
    this.fanOut = new FanOut(this.history, clock, lane)
  }

  /** One transaction with a change in each of these namespaces. */
  write(...namespaces: readonly string[]): void {
    this.#revision++
    const items = namespaces.map((namespace, index) => madePut(namespace, this.#revision, index))
    this.all.push(...items)
    this.history.append(items, versionOfState(this.#revision))
    this.fanOut.changed()
  }

  progress(): void {
    this.history.append([], this.history.version)
    this.fanOut.changed()
  }

  watch(namespace?: string, from: Version = this.history.version): Consumer {
    const cursor = new Cursor({
      scope: { cluster: 'local', namespace },
      from,
      signal: this.end.signal,
      history: this.history,
      fanOut: this.fanOut,
      isCurrent: () => this.isCurrent,
      catchUp: (step) => this.#catchUp(step),
      requestProgress: () => {},
    })
    return new Consumer(cursor)
  }

  /** Two changes at a time. */
  async #catchUp({ scope, from }: CatchUpStep): Promise<WatchBatch> {
    this.catchUpSteps++
    await tick()
    if (this.isCompacted) throw new StorageError({ kind: 'compacted', message: 'gone' })
    const { namespace } = scope
    const due = this.all.filter(
      ({ stored }) =>
        isAfter(stored.version, from) &&
        (namespace === undefined || stored.key.namespace === namespace),
    )
    const items = due.slice(0, 2)
    return { items, version: items.at(-1)?.stored.version ?? this.history.start }
  }
}

class Consumer {
  readonly cursor: Cursor
  readonly batches: WatchBatch[] = []
  readonly #iterator: AsyncIterator<WatchBatch>

  constructor(cursor: Cursor) {
    this.cursor = cursor
    this.#iterator = cursor[Symbol.asyncIterator]()
  }

  /** Pulls once; resolves to the names in the batch, or to undefined at the end. */
  async pull(): Promise<readonly string[] | undefined> {
    const result = await this.#iterator.next()
    if (result.done === true) return undefined
    this.batches.push(result.value)
    return result.value.items.map(({ stored }) => stored.key.name)
  }
}

test('cursor: earlier changes are read at once, later ones when they arrive', async () => {
  const scene = new Scene()
  scene.write('a')
  scene.write('b', 'a')
  const consumer = scene.watch(undefined, versionOfChange(2, 0))
  assert.deepEqual(await consumer.pull(), ['e-2-1'])
  const pulled = consumer.pull()
  scene.write('a')
  assert.deepEqual(await pulled, ['e-3-0'])
})

test('cursor: all waiting watchers are notified once per tick and share one batch', async () => {
  const scene = new Scene()
  const consumers = Array.from({ length: 600 }, () => scene.watch())
  const pulls = consumers.map((consumer) => consumer.pull())
  scene.write('a')
  scene.write('b')
  const pulled = await Promise.all(pulls)
  assert.deepEqual(new Set(pulled.map(String)), new Set(['e-1-0,e-2-0']))
  const batches = new Set(consumers.map(({ batches: [batch] }) => batch))
  assert.equal(batches.size, 1)
  assert.ok([...batches][0] instanceof SharedBatch)
})

test('cursor: a change that arrives during a round is in the next batch of all watchers', async () => {
  const scene = new Scene()
  const consumers = Array.from({ length: 2_000 }, () => scene.watch())
  const pull = async (consumer: Consumer) => [await consumer.pull(), await consumer.pull()]
  const pulls = consumers.map(pull)
  scene.write('a')
  await tick()
  scene.write('b')
  const pulled = await Promise.all(pulls)
  assert.deepEqual(new Set(pulled.map(String)), new Set(['e-1-0,e-2-0']))
  const seconds = new Set(consumers.map(({ batches: [, batch] }) => batch))
  assert.equal(seconds.size, 1, 'shared again')
})

test('cursor: a taken batch counts as held bytes once it is evicted from the ring', async () => {
  const scene = new Scene(4)
  const consumer = scene.watch()
  const waiting = consumer.pull()
  scene.write('a', 'a')
  await waiting
  assert.equal(consumer.cursor.heldBytes, 0)
  for (let n = 0; n < 5; n++) scene.write('a')
  const taken = consumer.batches[0]?.items.map(({ stored }) => stored.body.length) ?? []
  assert.equal(
    consumer.cursor.heldBytes,
    taken.reduce((sum, bytes) => sum + bytes, 0),
  )
  // It catches up from the store, and its batch is in memory for it alone.
  assert.deepEqual(await consumer.pull(), ['e-2-0', 'e-3-0'])
  assert.ok(consumer.cursor.heldBytes > 0)
  consumer.cursor.stop()
  assert.equal(consumer.cursor.heldBytes, 0)
})

test('cursor: a watch of one namespace gets its changes only, and misses none', async () => {
  const scene = new Scene(4)
  const consumer = scene.watch('a')
  const pulled = consumer.pull()
  for (let n = 0; n < 50; n++) {
    scene.write('b')
    if (n % 3 === 0) await tick()
  }
  await tick()
  scene.write('b', 'a', 'b')
  assert.deepEqual(await pulled, ['e-51-1'])
  assert.equal(scene.catchUpSteps, 0)
})

test('cursor: a cursor whose position was evicted catches up from the store and returns to the ring', async () => {
  const scene = new Scene(5)
  const consumer = scene.watch(undefined, beginning)
  for (let n = 0; n < 12; n++) scene.write('a')
  await tick()
  const seen: string[] = []
  while (seen.length < 12) seen.push(...((await consumer.pull()) ?? []))
  const steps = scene.catchUpSteps
  assert.ok(steps >= 4, String(steps))
  const pulled = consumer.pull()
  await tick()
  scene.write('a')
  seen.push(...((await pulled) ?? []))
  assert.equal(scene.catchUpSteps, steps, 'back on the ring')
  assert.deepEqual(
    seen,
    scene.all.map(({ stored }) => stored.key.name),
  )
})

test('cursor: a waiting watcher misses nothing when one tick brings more than the ring holds', async () => {
  const scene = new Scene(5)
  const consumer = scene.watch()
  const first = consumer.pull()
  for (let n = 0; n < 20; n++) scene.write('a')
  const seen = [...((await first) ?? [])]
  while (seen.length < 20) seen.push(...((await consumer.pull()) ?? []))
  assert.deepEqual(
    seen,
    scene.all.map(({ stored }) => stored.key.name),
  )
})

test('cursor: a cursor fails once when the store has compacted its history as well', async () => {
  const scene = new Scene(2)
  const consumer = scene.watch(undefined, beginning)
  for (let n = 0; n < 5; n++) scene.write('a')
  scene.isCompacted = true
  await assert.rejects(consumer.pull(), { kind: 'compacted' })
  assert.equal(await consumer.pull(), undefined)
})

test('cursor: a restart of the history ends the cursor, as it may be another history', async () => {
  const scene = new Scene()
  const waiting = scene.watch()
  const pulled = waiting.pull()
  const away = scene.watch()
  const read = away.pull()
  scene.write('a')
  await Promise.all([pulled, read])
  const again = waiting.pull()
  scene.history.restart(versionOfState(50))
  scene.fanOut.restarted()
  await assert.rejects(again, { kind: 'compacted' })
  await assert.rejects(away.pull(), { kind: 'compacted' })
  assert.equal(scene.catchUpSteps, 0)
})

test('cursor: a restart of the history is time-sliced, and each watcher is notified once', async () => {
  const scene = new Scene()
  const pulls = Array.from({ length: 200 }, () => scene.watch().pull())
  const ends = Promise.allSettled(pulls)
  scene.msPerClockRead = 1
  for (let n = 1; n <= 2; n++) {
    scene.history.restart(versionOfState(n))
    scene.fanOut.restarted()
    await tick()
    assert.ok(scene.fanOut.waitingCount > 50, `${scene.fanOut.waitingCount} waiting`)
  }
  for (const end of await ends) {
    assert.ok(end.status === 'rejected' && end.reason.kind === 'compacted')
  }
  assert.equal(scene.fanOut.waitingCount, 0)
})

test('cursor: a cursor waits while the cache is not current, whatever others are sent', async () => {
  const scene = new Scene()
  const from = scene.history.version
  const consumer = scene.watch()
  const first = consumer.pull()
  scene.write('a')
  assert.deepEqual(await first, ['e-1-0'])
  scene.write('a')
  await tick()
  scene.isCurrent = false
  const pulled = consumer.pull()
  // It has read nothing yet, so it may begin in any history.
  const early = scene.watch(undefined, from).pull()
  await tick()
  scene.write('a')
  await tick()
  assert.equal(scene.fanOut.waitingCount, 2)
  scene.isCurrent = true
  scene.history.restart(versionOfState(3))
  scene.fanOut.restarted()
  await assert.rejects(pulled, { kind: 'compacted' })
  assert.deepEqual(await early, ['e-1-0', 'e-2-0'])
})

test('cursor: the fan-out rests after a long round for as long as it took, within bounds', async () => {
  const scene = new Scene()
  for (let n = 0; n < 32; n++) {
    const { cursor } = scene.watch()
    const more = (): void => {
      while (cursor.take(more) !== undefined) scene.nowMs++
    }
    more()
  }
  const observer = scene.watch()
  const first = observer.pull()
  scene.write('a')
  await first
  assert.equal(scene.nowMs, 32)
  const second = observer.pull()
  scene.write('a')
  for (let n = 0; n < 5; n++) await tick()
  assert.equal(scene.nowMs, 32, 'the fan-out rests')
  assert.deepEqual(await second, ['e-2-0'])
  assert.equal(scene.nowMs, 64)
})

test('cursor: requested progress is delivered with the next update of the history', async () => {
  const scene = new Scene()
  const consumer = scene.watch('nothing-here')
  consumer.cursor.requestProgress()
  const pulled = consumer.pull()
  scene.write('elsewhere')
  assert.deepEqual(await pulled, [])
  assert.equal(consumer.batches[0]?.version, scene.history.version)
  const again = consumer.pull()
  consumer.cursor.requestProgress()
  scene.progress()
  assert.deepEqual(await again, [])
})

test('cursor: an aborted signal ends the cursor without an error and unregisters it', async () => {
  const scene = new Scene()
  const pulled = scene.watch().pull()
  assert.equal(scene.fanOut.waitingCount, 1)
  scene.end.abort()
  assert.equal(await pulled, undefined)
  assert.equal(scene.fanOut.waitingCount, 0)
  assert.equal(await scene.watch().pull(), undefined)
})

for (const msPerClockRead of [0, 2])
  test(`cursor: fast and slow consumers each see every change once, in order (${msPerClockRead} ms per clock read)`, async () => {
    const scene = new Scene(40)
    scene.msPerClockRead = msPerClockRead
    let seed = 12345
    const random = (below: number) => {
      seed = (Math.imul(seed, 1103515245) + 12345) >>> 0
      return (seed >>> 8) % below
    }
    const namespaces = ['a', 'b', 'c', undefined]
    const goal = 150
    const crowd = Array.from({ length: 60 }, (_, n) => ({
      namespace: namespaces[n % 4],
      slowness: n % 5,
      seen: [] as string[],
      consumer: scene.watch(namespaces[n % 4], beginning),
    }))
    const wanted = (namespace: string | undefined) =>
      scene.all
        .filter(({ stored }) => namespace === undefined || stored.key.namespace === namespace)
        .map(({ stored }) => stored.key.name)
    let isWritten = false
    const consume = async ({ namespace, slowness, seen, consumer }: (typeof crowd)[number]) => {
      while (!isWritten || seen.length < wanted(namespace).length) {
        seen.push(...((await consumer.pull()) ?? []))
        for (let wait = random(slowness * 6 + 1); wait > 0; wait--) await tick()
      }
    }
    const consuming = crowd.map(consume)
    for (let n = 0; n < goal; n++) {
      const size = 1 + random(4)
      scene.write(...Array.from({ length: size }, () => ['a', 'b', 'c'][random(3)] ?? 'a'))
      if (random(3) === 0) await tick()
    }
    scene.write('a', 'b', 'c')
    isWritten = true
    await Promise.all(consuming)
    for (const { namespace, seen } of crowd) assert.deepEqual(seen, wanted(namespace))
  })

test('cursor: a consumer far behind catches up, and misses nothing', async () => {
  const scene = new Scene(1_000, 5)
  const { history } = scene
  const store = { watch: () => assert.fail('the store was read') } as never
  let steps = 0
  const reader = new CatchUpReader({
    history,
    store,
    isSameHistory: async () => true,
    lane: aLane(),
  })
  const watch = (from: Version): Consumer =>
    new Consumer(
      new Cursor({
        scope: { cluster: 'local', namespace: 'a' },
        from,
        signal: scene.end.signal,
        history,
        fanOut: scene.fanOut,
        isCurrent: () => true,
        catchUp: (step) => {
          steps++
          return reader.read(step)
        },
        requestProgress: () => {},
      }),
    )
  const [early, late] = [watch(beginning), watch(beginning)]
  const names: (readonly string[])[] = [[], []]
  const pull = async (index: number, consumer: Consumer): Promise<void> => {
    names[index] = [...(names[index] ?? []), ...((await consumer.pull()) ?? [])]
  }
  for (let count = 0; count < 300; count++) {
    scene.write('a', 'b')
    // It reads now and then: sometimes close behind, sometimes far.
    if (count % 40 === 3 || count % 40 === 4) await pull(0, early)
  }
  for (const [index, consumer] of [early, late].entries()) {
    while ((names[index]?.length ?? 0) < 300) await pull(index, consumer)
    assert.deepEqual(
      names[index],
      Array.from({ length: 300 }, (_, at) => `e-${at + 1}-0`),
    )
  }
  assert.ok(steps >= 10, `${steps} steps: consumers that are far behind take turns`)
})

test('cursor: a batch is charged to its consumer once it has left the ring', async () => {
  const scene = new Scene(5)
  const consumer = scene.watch('a', beginning)
  scene.write('a')
  assert.deepEqual(await consumer.pull(), ['e-1-0'])
  assert.equal(consumer.cursor.heldBytes, 0)
  for (let count = 0; count < 6; count++) scene.write('b')
  assert.ok(consumer.cursor.heldBytes > 0)
})

test('cursor: a batch in the ring is charged to its consumer once it is behind prompt', async () => {
  const scene = new Scene(100, 3)
  const consumer = scene.watch('a')
  const pulled = consumer.pull()
  scene.write('a')
  assert.deepEqual(await pulled, ['e-1-0'])
  assert.equal(consumer.cursor.heldBytes, 0)
  for (let count = 0; count < 2; count++) scene.write('a')
  assert.equal(consumer.cursor.heldBytes, 0)
  scene.write('a')
  assert.equal(consumer.cursor.heldBytes, scene.all[0]?.stored.body.length)
  scene.write('a')
  assert.deepEqual(await consumer.pull(), ['e-2-0', 'e-3-0'])
  assert.equal(scene.catchUpSteps, 1)
  assert.ok(consumer.cursor.heldBytes > 0, 'a batch of a catch-up is charged at once')
  assert.equal(scene.history.tail, 0, 'all changes are in the ring')
})

test('cursor: a batch that consumers share is charged in parts', async () => {
  const scene = new Scene(5)
  const consumers = Array.from({ length: 4 }, () => scene.watch('a'))
  const pulled = consumers.map((consumer) => consumer.pull())
  scene.write('a')
  await Promise.all(pulled)
  for (let count = 0; count < 6; count++) scene.write('b')
  const body = scene.all[0]?.stored.body.length ?? 0
  const held = (): readonly number[] => consumers.map(({ cursor }) => cursor.heldBytes)
  assert.deepEqual(held(), new Array(4).fill(body / 4))
  consumers[0]?.cursor.stop()
  assert.deepEqual(held(), [0, body / 3, body / 3, body / 3])
  scene.history.restart(versionOfState(50))
  await assert.rejects(async () => consumers[1]?.pull(), { kind: 'compacted' })
  assert.deepEqual(held(), [0, 0, body / 2, body / 2])
})
