import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, mock, test } from 'node:test'
import type { Event } from '../api/event.ts'
import { compareResourceVersions, heldBy } from '../registry/origin-version.ts'
import { StorageError } from '../storage/errors.ts'
import { PlainStorage } from '../storage/plain-storage.fixture.ts'
import { type StartOptions, SteppedClock, settle, startFollower } from './follower.fixture.ts'
import { type Follower, OriginRestored } from './follower.ts'
import { MemoryOrigin, seededRandom } from './memory-origin.fixture.ts'
import { OriginError } from './origin.ts'
import { RequestPacer } from './request-pacer.ts'

const hourMs = 3_600_000
let clock = new SteppedClock()

function advance(ms: number, isEnough?: () => boolean): Promise<void> {
  return clock.advance(ms, isEnough)
}

function start(
  origin: MemoryOrigin,
  storage = new PlainStorage(),
  options: Partial<StartOptions> = {},
): ReturnType<typeof startFollower> {
  return startFollower(origin, storage, { clock, ...options })
}

function notes(storage: PlainStorage): Record<string, string | undefined> {
  const entries = [...storage.events].map(([path, { body }]) => {
    return [path.slice('c/'.length), (JSON.parse(body.toString()) as Event).note] as const
  })
  return Object.fromEntries(entries.sort())
}

function originNotes(origin: MemoryOrigin): Record<string, string | undefined> {
  const entries = [...origin.events].map(([path, { event }]) => [path, event.note] as const)
  return Object.fromEntries(entries.sort())
}
/** Some writes, and other faults than before. */
function disturb(origin: MemoryOrigin, random: () => number): void {
  const delayMs = random() < 0.3 ? 200 : 0
  origin.faults = { fails: 0.1, breaks: 0.03, expires: 0.02, repeats: 0.1, delayMs }
  for (let write = 0; write < 8; write++) {
    const name = `e${Math.floor(random() * 12)}`
    if (random() < 0.2) origin.delete(name)
    else origin.put(name)
  }
  if (random() < 0.1) origin.compacted = origin.version - 5
}

/**
 * Writes at the origin under faults while followers are stopped and started from the position of
 * the last. Returns the state at the end.
 */
async function chaos(
  seed: number,
  positionAfter: (follower: Follower, origin: MemoryOrigin) => string | undefined,
) {
  const random = seededRandom(seed)
  const origin = new MemoryOrigin(random)
  const storage = new PlainStorage()
  storage.before = async () => {
    if (random() < 0.1) await new Promise((resolve) => setTimeout(resolve, random() * 400))
    if (random() < 0.05) throw new StorageError({ kind: 'timeout', message: 'unknown' })
  }
  let position: string | undefined
  for (let life = 0; life < 6; life++) {
    const { follower, stop, outcome } = start(origin, storage, { position })
    for (let step = 0; step < 12; step++) {
      disturb(origin, random)
      await advance(200)
    }
    // It is stopped in the middle of its work.
    disturb(origin, random)
    await settle(1)
    position = positionAfter(follower, origin)
    await stop()
    assert.equal(outcome.error, undefined, `seed ${seed}`)
  }
  origin.faults = {}
  storage.before = async () => {}
  const { follower, stop } = start(origin, storage, { position })
  await advance(120_000, () => follower.position === String(origin.version))
  await stop()
  return { origin, storage }
}

/** Violations at the end: events missing or older than at the origin, writes that went back. */
function violations({ origin, storage }: Awaited<ReturnType<typeof chaos>>): readonly string[] {
  const wrong: string[] = []
  const here = notes(storage)
  for (const [path, note] of Object.entries(originNotes(origin))) {
    if (here[path] !== note) wrong.push(`${path}: ${here[path]} instead of ${note}`)
  }
  const last = new Map<string, string>()
  for (const { path, stored } of storage.history) {
    const version = stored && heldBy(stored).version?.resourceVersion
    const before = last.get(path)
    if (version === undefined) wrong.push(`${path} was deleted`)
    else if (before !== undefined && compareResourceVersions(before, version) >= 0) {
      wrong.push(`${path} went from ${before} to ${version}`)
    } else last.set(path, version)
  }
  return wrong
}

describe('a follower', () => {
  beforeEach(() => {
    clock = new SteppedClock()
    mock.timers.enable({ apis: ['setTimeout'] })
  })
  afterEach(() => mock.timers.reset())

  test('lists page by page, then watches; its position is what it has stored', async () => {
    const origin = new MemoryOrigin()
    for (let index = 0; index < 1_200; index++) origin.put(`e${index}`)
    const { follower, storage, stop } = start(origin)
    await advance(2_000, () => follower.position !== undefined)
    assert.equal(storage.events.size, 1_200)
    assert.equal(follower.position, String(origin.version))
    assert.deepEqual(origin.requests, ['list 500', 'list 500', 'list 500', 'watch'])
    origin.put('e0')
    origin.put('new', { namespace: 'b' })
    await advance(200)
    assert.deepEqual(notes(storage), originNotes(origin))
    assert.deepEqual([follower.position, follower.state], [String(origin.version), 'Following'])
    assert.equal(follower.lagMs, 0)
    await stop()
  })

  test('lets other work run while it stores a page', async () => {
    const origin = new MemoryOrigin()
    for (let index = 0; index < 500; index++) origin.put(`e${index}`)
    const storage = new PlainStorage()
    let writes = 0
    let most = 0
    storage.before = async () => {
      if (writes === 0) {
        setImmediate(() => {
          writes = 0
        })
      }
      most = Math.max(most, ++writes)
    }
    const { follower, stop } = start(origin, storage)
    await advance(2_000, () => follower.position !== undefined)
    assert.equal(storage.events.size, 500)
    assert.ok(most <= 32, `${most} writes in one turn of the event loop`)
    await stop()
  })

  test('resumes from its position without a list, after checking the version', async () => {
    const origin = new MemoryOrigin()
    origin.put('old')
    const position = String(origin.version)
    origin.put('new')
    const { storage, stop } = start(origin, new PlainStorage(), { position })
    await advance(500)
    assert.deepEqual(Object.keys(notes(storage)), ['a/new'])
    assert.deepEqual(origin.requests, ['list 1', 'watch'])
    await stop()
  })

  test('follows only after it has stored what the origin had when it resumed', async () => {
    const origin = new MemoryOrigin(seededRandom(3))
    const position = String(origin.version)
    for (let index = 0; index < 40; index++) origin.put(`e${index}`)
    const missed = origin.version
    origin.faults = { delayMs: 400 }
    const { follower, stop } = start(origin, new PlainStorage(), { position })
    // The origin never pauses.
    const isBehind = () => Number(follower.position) < missed
    let lagMs = 0
    while (isBehind()) {
      assert.equal(follower.state, 'Syncing')
      lagMs = follower.lagMs
      await advance(100)
      origin.put('busy')
    }
    assert.ok(lagMs > 4_000, `${lagMs}`)
    await advance(1_000)
    assert.equal(follower.state, 'Following')
    assert.ok(follower.lagMs < 1_000, `${follower.lagMs}`)
    await stop()
  })

  test('follows a quiet namespace of an origin whose version grows', async () => {
    const origin = new MemoryOrigin()
    const position = String(origin.version)
    origin.put('a', { namespace: 'other' })
    const { follower, stop } = start(origin, new PlainStorage(), { position, namespace: 'quiet' })
    await advance(1_000)
    assert.equal(follower.state, 'Syncing')
    await advance(2_000)
    assert.deepEqual([follower.state, follower.lagMs], ['Following', 0])
    await stop()
  })

  test('stores only its namespace', async () => {
    const origin = new MemoryOrigin()
    origin.put('x')
    origin.put('x', { namespace: 'b' })
    const { storage, stop } = start(origin, new PlainStorage(), { namespace: 'b' })
    await advance(500)
    origin.put('y')
    origin.put('y', { namespace: 'b' })
    await advance(500)
    assert.deepEqual(Object.keys(notes(storage)), ['b/x', 'b/y'])
    await stop()
  })

  test('lists again when its position is too old', async () => {
    const origin = new MemoryOrigin()
    origin.put('a')
    const position = String(origin.version)
    origin.put('b')
    origin.delete('a')
    origin.compacted = origin.version
    const { follower, storage, counters, stop } = start(origin, new PlainStorage(), { position })
    await advance(3_000)
    assert.deepEqual(Object.keys(notes(storage)), ['a/b'])
    assert.deepEqual([counters.lists, counters.failures.expired], [1, 1])
    assert.equal(follower.position, String(origin.version))
    await stop()
  })

  test('keeps its position and fills the window while writes fail, and loses nothing', async () => {
    const origin = new MemoryOrigin()
    origin.put('a')
    const { follower, storage, counters, stop } = start(origin)
    await advance(500)
    const before = follower.position
    storage.before = async () => {
      throw new StorageError({ kind: 'unavailable', message: 'etcd is down', retryAfterMs: 500 })
    }
    for (let index = 0; index < 2_000; index++) origin.put(`e${index % 700}`)
    await advance(40_000)
    assert.equal(follower.position, before)
    assert.ok(follower.pending <= 257, String(follower.pending))
    assert.deepEqual(
      [follower.state, follower.message],
      ['Stalled', 'events cannot be stored: etcd is down'],
    )
    assert.ok(follower.lagMs >= 39_000 && counters.retries > 100)
    storage.before = async () => {}
    await advance(20_000, () => follower.position === String(origin.version))
    assert.deepEqual(notes(storage), originNotes(origin))
    assert.equal(follower.state, 'Following')
    await stop()
  })

  test('is stalled, with the reason, when the origin does not respond', async () => {
    const origin = new MemoryOrigin()
    origin.faults = { fails: 1 }
    const { follower, counters, stop } = start(origin)
    await advance(20_000)
    assert.equal(follower.state, 'Syncing')
    await advance(20_000)
    assert.deepEqual([follower.state, follower.message], ['Stalled', 'no response'])
    assert.ok((counters.failures.unavailable ?? 0) < 12, 'it waits longer each time')
    origin.faults = {}
    origin.put('a')
    await advance(60_000)
    assert.deepEqual([follower.state, follower.message], ['Following', ''])
    await stop()
  })

  test('is stalled immediately when the origin refuses', async () => {
    const origin = new MemoryOrigin()
    origin.listPage = async () => {
      throw new OriginError('refused', 'the origin responded 403')
    }
    const { follower, stop } = start(origin)
    await advance(200)
    assert.deepEqual([follower.state, follower.message], ['Stalled', 'the origin responded 403'])
    await stop()
  })

  test('ends when a write is fenced, even if nothing new arrives', async () => {
    const origin = new MemoryOrigin()
    const { storage, outcome, running } = start(origin)
    await advance(500)
    storage.leader = 2
    origin.put('late')
    await advance(500)
    await running
    assert.ok(outcome.error instanceof StorageError && outcome.error.kind === 'fenced')
    assert.equal(storage.events.size, 0)
  })

  test('detects a restored origin by a version lower than the position', async () => {
    for (const hasExpired of [false, true]) {
      const origin = new MemoryOrigin()
      origin.put('a')
      const position = String(origin.version + 50)
      if (hasExpired) origin.compacted = origin.version + 100
      const { outcome, running, storage } = start(origin, new PlainStorage(), { position })
      await advance(5_000, () => outcome.error !== undefined)
      await running
      assert.ok(outcome.error instanceof OriginRestored)
      assert.equal(storage.events.size, 0, 'nothing is written before the epoch is saved')
    }
  })

  test('detects an origin that is restored during a watch', async () => {
    const origin = new MemoryOrigin()
    origin.put('a')
    const backup = { version: origin.version, events: new Map(origin.events) }
    const { outcome, running } = start(origin)
    origin.put('b')
    await advance(1_000)
    origin.restore(backup)
    await advance(5_000, () => outcome.error !== undefined)
    await running
    assert.ok(outcome.error instanceof OriginRestored)
  })

  test('ignores deletes at the origin by default', async () => {
    const origin = new MemoryOrigin()
    origin.put('a')
    const { follower, storage, stop } = start(origin)
    await advance(500)
    origin.delete('a')
    await advance(500)
    assert.deepEqual(Object.keys(notes(storage)), ['a/a'])
    assert.equal(follower.position, String(origin.version), 'the position passes the delete')
    await stop()
  })

  test('repeats explicit deletes, except of events that may have expired', async () => {
    const origin = new MemoryOrigin()
    origin.put('young')
    origin.put('old', { at: Date.now() - hourMs })
    const { storage, stop } = start(origin, new PlainStorage(), {
      deletes: { originTtlMs: hourMs },
    })
    await advance(500)
    origin.delete('young')
    origin.delete('old')
    await advance(500)
    assert.deepEqual(Object.keys(notes(storage)), ['a/old'])
    await stop()
  })

  test('finds explicit deletes that no watch delivered by a list', async () => {
    const origin = new MemoryOrigin()
    const names = Array.from({ length: 1_500 }, (_, index) => `e${String(index).padStart(4, '0')}`)
    for (const name of names) origin.put(name)
    origin.put('z-old', { namespace: 'z', at: Date.now() - hourMs })
    const first = start(origin)
    await advance(3_000, () => first.follower.position !== undefined)
    await first.stop()
    for (const name of names.filter((_, index) => index % 3 === 0)) origin.delete(name)
    origin.delete('z-old', 'z')
    origin.put('e0000')
    const { follower, storage, counters, stop } = start(origin, first.storage, {
      deletes: { originTtlMs: hourMs },
    })
    await advance(3_000, () => follower.position !== undefined)
    const expected = [...origin.events.keys(), 'z/z-old'].sort()
    assert.deepEqual(Object.keys(notes(storage)), expected)
    assert.deepEqual([counters.results.removed, counters.results.kept], [499, 1])
    await stop()
  })

  test('deletes nothing after a list that is out of order', async () => {
    const origin = new MemoryOrigin()
    for (const name of ['a', 'b', 'c']) origin.put(name)
    const first = start(origin)
    await advance(500)
    await first.stop()
    origin.delete('b')
    const listPage = origin.listPage.bind(origin)
    origin.listPage = async (options) => {
      const page = await listPage(options)
      return { ...page, items: page.items.toReversed() }
    }
    const { storage, stop } = start(origin, first.storage, { deletes: { originTtlMs: hourMs } })
    await advance(500)
    assert.deepEqual(Object.keys(notes(storage)), ['a/a', 'a/b', 'a/c'])
    await stop()
  })

  test('spaces its requests', async () => {
    const origin = new MemoryOrigin()
    for (let index = 0; index < 5_000; index++) origin.put(`e${index}`)
    const { stop } = start(origin, new PlainStorage(), { pacer: new RequestPacer(clock, 5) })
    await advance(1_000)
    assert.ok(origin.requests.length <= 6, String(origin.requests.length))
    await stop()
  })

  test('stores everything in order under faults and restarts', async () => {
    for (let seed = 1; seed <= 12; seed++) {
      const end = await chaos(seed, (follower) => follower.position)
      assert.deepEqual(violations(end), [], `seed ${seed}`)
    }
  })

  test('fails the check above with a position ahead of what is stored', async () => {
    let found = 0
    for (let seed = 1; seed <= 12; seed++) {
      // Simulates that changes count as stored as soon as they are made.
      const end = await chaos(seed, (_follower, origin) => String(origin.version))
      found += violations(end).length
    }
    assert.ok(found > 0)
  })
})
