/** Faults of an origin, and of etcd, that must not lose, delete or bring back an event. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, mock, test } from 'node:test'
import { pause } from '../lib/abort.ts'
import { silentLog } from '../lib/log/log.ts'
import { MirrorWriter } from '../registry/mirrored-event.ts'
import { StorageError } from '../storage/errors.ts'
import { pathOf } from '../storage/event-scope.ts'
import { PlainStorage } from '../storage/plain-storage.fixture.ts'
import { Follower, type FollowerOptions } from './follower.ts'
import { MemoryOrigin } from './memory-origin.fixture.ts'
import { MirrorCounters } from './mirror-counters.ts'
import { OriginError } from './origin.ts'
import { RequestPacer } from './request-pacer.ts'

const time = { now: 0 }
const clock = { now: () => time.now }
const explicit = { deletes: { originTtlMs: 3_600_000 } }

beforeEach(() => {
  time.now = 1_000
  mock.timers.enable({ apis: ['setTimeout'] })
})
afterEach(() => mock.timers.reset())

async function advance(ms: number, onStep: () => void = () => {}): Promise<void> {
  for (let at = 0; at < ms; at += 50) {
    time.now += 50
    mock.timers.tick(50)
    for (let tick = 0; tick < 4; tick++) await new Promise((resolve) => setImmediate(resolve))
    onStep()
  }
}

function start(
  origin: MemoryOrigin,
  options: Partial<FollowerOptions> = {},
  storage = new PlainStorage(),
) {
  const ending = new AbortController()
  const counters = new MirrorCounters()
  const follower = new Follower({
    origin,
    namespace: undefined,
    position: undefined,
    target: { cluster: 'c', epoch: 0, fence: { key: '/leader', revision: storage.leader } },
    writer: new MirrorWriter({
      storage,
      recall: (key) => storage.events.get(pathOf(key)),
      lifetimeOf: () => 'never',
    }),
    storage,
    deletes: undefined,
    pacer: new RequestPacer(clock, 1000),
    counters,
    clock,
    log: silentLog,
    signal: ending.signal,
    ...options,
  })
  const running = follower.run()
  const stop = async (): Promise<void> => {
    ending.abort()
    await running
  }
  return { follower, storage, counters, stop, names: () => [...storage.events.keys()] }
}

test('a listed event that cannot be decoded is not taken for a deleted one', async () => {
  const origin = new MemoryOrigin()
  for (const name of ['a', 'b', 'c']) origin.put(name)
  const first = start(origin, explicit)
  await advance(500)
  await first.stop()
  const list = origin.listPage.bind(origin)
  origin.listPage = async (options) => {
    const page = await list(options)
    const items = page.items.filter(({ event }) => event.metadata.name !== 'b')
    return { ...page, items, unreadable: page.items.length - items.length }
  }
  const second = start(origin, explicit, first.storage)
  await advance(1_000)
  await second.stop()
  assert.deepEqual(second.names(), ['c/a/a', 'c/a/b', 'c/a/c'])
})

test('a write that is still repeated when a list begins does not bring back a deleted event', async () => {
  const origin = new MemoryOrigin()
  origin.put('a')
  const watch = origin.watch.bind(origin)
  origin.watch = async function* (options) {
    for await (const change of watch(options)) {
      yield change
      if (change.type !== 'put' || change.event.metadata.name !== 'x') continue
      // The delete is never delivered: the watch breaks, and its version is compacted.
      origin.delete('x')
      origin.compacted = origin.version
      throw new OriginError('unavailable', 'cut')
    }
  }
  const run = start(origin, explicit)
  await advance(3_000)
  let failures = 6
  run.storage.before = async (key) => {
    if (key.name !== 'x' || failures-- <= 0) return
    throw new StorageError({ kind: 'unavailable', message: 'etcd is away' })
  }
  origin.put('x')
  await advance(60_000)
  await run.stop()
  assert.deepEqual(run.names(), ['c/a/a'])
})

test('a watch that gets no response is reported as stalled, not as following', async () => {
  const origin = new MemoryOrigin()
  origin.put('a')
  const run = start(origin)
  origin.watch = async function* ({ signal }) {
    yield* []
    await pause(30_000, signal)
    throw new OriginError('unavailable', 'no response within 30000 ms')
  }
  const states = new Map<string, number>()
  await advance(1_000)
  await advance(300_000, () => {
    const { state } = run.follower
    states.set(state, (states.get(state) ?? 0) + 1)
  })
  await run.stop()
  assert.equal(states.get('Following'), undefined)
  assert.ok((states.get('Stalled') ?? 0) > (states.get('Syncing') ?? 0))
})

test('events of a namespace that was not asked for are dropped and counted', async () => {
  const origin = new MemoryOrigin()
  origin.put('mine')
  const list = origin.listPage.bind(origin)
  origin.listPage = (options) => list({ ...options, namespace: undefined })
  const run = start(origin, { namespace: 'other' })
  await advance(1_000)
  await run.stop()
  assert.deepEqual(run.names(), [])
  assert.equal(run.counters.dropped.invalid, 1)
})
