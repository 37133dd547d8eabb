import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StorageError } from '../storage/errors.ts'
import { SharedBatch } from '../storage/frames.ts'
import {
  beginning,
  isAfter,
  type Version,
  versionOfChange,
  versionOfState,
} from '../storage/resource-version.ts'
import type { WatchBatch, WatchItem } from '../storage/storage.ts'
import { type BehindStep, Cursor } from './cursor.ts'
import { FanOut } from './fan-out.ts'
import { History } from './history.ts'
import { madePut } from './made-events.test.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** A history that is written by hand, with all of it kept behind as well. */
class Scene {
  readonly history: History
  readonly fanOut: FanOut
  readonly all: WatchItem[] = []
  readonly end = new AbortController()
  stepsBehind = 0
  nowMs = 0
  /** At the clock. */
  msPerLook = 0
  msPerStepBehind = 0
  isOpen = true
  isCompacted = false
  #revision = 0

  constructor(changesMax = 1_000) {
    this.history = new History({ changesMax, bytesMax: 1e9 }, beginning)
    this.fanOut = new FanOut(this.history, { now: () => (this.nowMs += this.msPerLook) })
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
      scope: { namespace },
      from,
      signal: this.end.signal,
      history: this.history,
      fanOut: this.fanOut,
      isOpen: () => this.isOpen,
      readBehind: (step) => this.#readBehind(step),
      askForProgress: () => {},
    })
    return new Consumer(cursor)
  }

  /** Two changes at a time. */
  async #readBehind({ scope, from, until }: BehindStep): Promise<WatchBatch> {
    this.stepsBehind++
    this.nowMs += this.msPerStepBehind
    await turn()
    if (this.isCompacted) throw new StorageError({ kind: 'compacted', message: 'gone' })
    const { namespace } = scope
    const due = this.all.filter(
      ({ stored }) =>
        isAfter(stored.version, from) &&
        (namespace === undefined || stored.key.namespace === namespace),
    )
    const items = due.slice(0, 2)
    return { items, version: items.at(-1)?.stored.version ?? until }
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

  /** Pulls once; resolves when that was answered. */
  async pull(): Promise<readonly string[] | undefined> {
    const result = await this.#iterator.next()
    if (result.done === true) return undefined
    this.batches.push(result.value)
    return result.value.items.map(({ stored }) => stored.key.name)
  }
}

test('cursor: what was written before is read at once, what comes later when it comes', async () => {
  const scene = new Scene()
  scene.write('a')
  scene.write('b', 'a')
  const consumer = scene.watch(undefined, versionOfChange(2, 0))
  assert.deepEqual(await consumer.pull(), ['e-2-1'])
  const pulled = consumer.pull()
  scene.write('a')
  assert.deepEqual(await pulled, ['e-3-0'])
})

test('cursor: all that waits is told once a turn, and shares one batch', async () => {
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

test('cursor: what comes while a crowd is being told is the next batch of all of them', async () => {
  const scene = new Scene()
  const consumers = Array.from({ length: 2_000 }, () => scene.watch())
  const pull = async (consumer: Consumer) => [await consumer.pull(), await consumer.pull()]
  const pulls = consumers.map(pull)
  scene.write('a')
  await turn()
  scene.write('b')
  const pulled = await Promise.all(pulls)
  assert.deepEqual(new Set(pulled.map(String)), new Set(['e-1-0,e-2-0']))
  const seconds = new Set(consumers.map(({ batches: [, batch] }) => batch))
  assert.equal(seconds.size, 1, 'shared again')
})

test('cursor: what its consumer has taken counts once it has left the ring', async () => {
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
  // It goes on behind the ring, and what comes from there is for it alone.
  assert.deepEqual(await consumer.pull(), ['e-2-0', 'e-3-0'])
  assert.ok(consumer.cursor.heldBytes > 0)
  consumer.cursor.stop()
  assert.equal(consumer.cursor.heldBytes, 0)
})

test('cursor: a namespace hears of itself only, and nothing is lost in between', async () => {
  const scene = new Scene(4)
  const consumer = scene.watch('a')
  const pulled = consumer.pull()
  for (let n = 0; n < 50; n++) {
    scene.write('b')
    if (n % 3 === 0) await turn()
  }
  await turn()
  scene.write('b', 'a', 'b')
  assert.deepEqual(await pulled, ['e-51-1'])
  assert.equal(scene.stepsBehind, 0)
})

test('cursor: one that fell off the ring goes on behind, and comes back', async () => {
  const scene = new Scene(5)
  const consumer = scene.watch(undefined, beginning)
  for (let n = 0; n < 12; n++) scene.write('a')
  await turn()
  const seen: string[] = []
  while (seen.length < 12) seen.push(...((await consumer.pull()) ?? []))
  const steps = scene.stepsBehind
  assert.ok(steps >= 4, String(steps))
  const pulled = consumer.pull()
  await turn()
  scene.write('a')
  seen.push(...((await pulled) ?? []))
  assert.equal(scene.stepsBehind, steps, 'back on the ring')
  assert.deepEqual(
    seen,
    scene.all.map(({ stored }) => stored.key.name),
  )
})

test('cursor: more in one turn than the ring holds reaches those who wait all the same', async () => {
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

test('cursor: when the history behind is gone as well it fails, once', async () => {
  const scene = new Scene(2)
  const consumer = scene.watch(undefined, beginning)
  for (let n = 0; n < 5; n++) scene.write('a')
  scene.isCompacted = true
  await assert.rejects(consumer.pull(), { kind: 'compacted' })
  assert.equal(await consumer.pull(), undefined)
})

test('cursor: after the history began anew it ends, as that may be another history', async () => {
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
  assert.equal(scene.stepsBehind, 0)
})

test('cursor: after the history began anew a crowd is told in several turns, each once', async () => {
  const scene = new Scene()
  const pulls = Array.from({ length: 200 }, () => scene.watch().pull())
  const ends = Promise.allSettled(pulls)
  scene.msPerLook = 1
  for (let n = 1; n <= 2; n++) {
    scene.history.restart(versionOfState(n))
    scene.fanOut.restarted()
    await turn()
    assert.ok(scene.fanOut.waitingCount > 50, `${scene.fanOut.waitingCount} wait`)
  }
  for (const end of await ends) {
    assert.ok(end.status === 'rejected' && end.reason.kind === 'compacted')
  }
  assert.equal(scene.fanOut.waitingCount, 0)
})

test('cursor: while there is no history it waits, whatever others are told', async () => {
  const scene = new Scene()
  const from = scene.history.version
  const consumer = scene.watch()
  const first = consumer.pull()
  scene.write('a')
  assert.deepEqual(await first, ['e-1-0'])
  scene.write('a')
  await turn()
  scene.isOpen = false
  const pulled = consumer.pull()
  // Has read nothing yet, so it may begin in whatever history there will be.
  const early = scene.watch(undefined, from).pull()
  await turn()
  scene.write('a')
  await turn()
  assert.equal(scene.fanOut.waitingCount, 2)
  scene.isOpen = true
  scene.history.restart(versionOfState(3))
  scene.fanOut.restarted()
  await assert.rejects(pulled, { kind: 'compacted' })
  assert.deepEqual(await early, ['e-1-0', 'e-2-0'])
})

test('cursor: after a long round the next one waits as long, within bounds', async () => {
  const scene = new Scene()
  for (let n = 0; n < 32; n++) {
    const { cursor } = scene.watch()
    const more = (): void => {
      while (cursor.take(more) !== undefined) scene.nowMs++
    }
    more()
  }
  const witness = scene.watch()
  const first = witness.pull()
  scene.write('a')
  await first
  assert.equal(scene.nowMs, 32)
  const second = witness.pull()
  scene.write('a')
  for (let n = 0; n < 5; n++) await turn()
  assert.equal(scene.nowMs, 32, 'others have the loop now')
  assert.deepEqual(await second, ['e-2-0'])
  assert.equal(scene.nowMs, 64)
})

test('cursor: progress is told on request, once news has come', async () => {
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

test('cursor: the signal ends it without an error, and it leaves nothing behind', async () => {
  const scene = new Scene()
  const pulled = scene.watch().pull()
  assert.equal(scene.fanOut.waitingCount, 1)
  scene.end.abort()
  assert.equal(await pulled, undefined)
  assert.equal(scene.fanOut.waitingCount, 0)
  assert.equal(await scene.watch().pull(), undefined)
})

for (const msPerLook of [0, 2])
  test(`cursor: a random crowd of fast and slow consumers each sees everything once, in order (${msPerLook} ms a look)`, async () => {
    const scene = new Scene(40)
    scene.msPerLook = msPerLook
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
        for (let wait = random(slowness * 6 + 1); wait > 0; wait--) await turn()
      }
    }
    const consuming = crowd.map(consume)
    for (let n = 0; n < goal; n++) {
      const size = 1 + random(4)
      scene.write(...Array.from({ length: size }, () => ['a', 'b', 'c'][random(3)] ?? 'a'))
      if (random(3) === 0) await turn()
    }
    scene.write('a', 'b', 'c')
    isWritten = true
    await Promise.all(consuming)
    for (const { namespace, seen } of crowd) assert.deepEqual(seen, wanted(namespace))
  })
