/** Faults of an origin, and of etcd, that must not lose, delete or bring back an event. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, mock, test } from 'node:test'
import { pause } from '../lib/abort.ts'
import { StorageError } from '../storage/errors.ts'
import { PlainStorage } from '../storage/plain-storage.fixture.ts'
import { type StartOptions, SteppedClock, startFollower } from './follower.fixture.ts'
import { MemoryOrigin } from './memory-origin.fixture.ts'
import { OriginError } from './origin.ts'

const explicit = { deletes: { originTtlMs: 3_600_000 } }
let clock = new SteppedClock()

function start(
  origin: MemoryOrigin,
  options: Partial<StartOptions> = {},
  storage = new PlainStorage(),
): ReturnType<typeof startFollower> & { readonly names: () => readonly string[] } {
  const run = startFollower(origin, storage, { clock, ...options })
  return { ...run, names: () => [...storage.events.keys()] }
}

describe('a follower of a cluster with faults', () => {
  beforeEach(() => {
    clock = new SteppedClock()
    mock.timers.enable({ apis: ['setTimeout'] })
  })
  afterEach(() => mock.timers.reset())

  test('does not mistake a listed event that cannot be decoded for a deleted one', async () => {
    const origin = new MemoryOrigin()
    for (const name of ['a', 'b', 'c']) origin.put(name)
    const first = start(origin, explicit)
    await clock.advance(500)
    await first.stop()
    const list = origin.listPage.bind(origin)
    origin.listPage = async (options) => {
      const page = await list(options)
      const items = page.items.filter(({ event }) => event.metadata.name !== 'b')
      return { ...page, items, unreadable: page.items.length - items.length }
    }
    const second = start(origin, explicit, first.storage)
    await clock.advance(1_000)
    await second.stop()
    assert.deepEqual(second.names(), ['c/a/a', 'c/a/b', 'c/a/c'])
  })

  test('does not restore a deleted event by a write that is still repeated when a list begins', async () => {
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
    await clock.advance(3_000)
    let failures = 6
    run.storage.before = async (key) => {
      if (key.name !== 'x' || failures-- <= 0) return
      throw new StorageError({ kind: 'unavailable', message: 'etcd is away' })
    }
    origin.put('x')
    await clock.advance(60_000)
    await run.stop()
    assert.deepEqual(run.names(), ['c/a/a'])
  })

  test('reports a watch without a response as stalled, not as following', async () => {
    const origin = new MemoryOrigin()
    origin.put('a')
    const run = start(origin)
    origin.watch = async function* ({ signal }) {
      yield* []
      await pause(30_000, signal)
      throw new OriginError('unavailable', 'no response within 30000 ms')
    }
    const states = new Map<string, number>()
    await clock.advance(1_000)
    await clock.advance(300_000, () => {
      const { state } = run.follower
      states.set(state, (states.get(state) ?? 0) + 1)
      return false
    })
    await run.stop()
    assert.equal(states.get('Following'), undefined)
    assert.ok((states.get('Stalled') ?? 0) > (states.get('Syncing') ?? 0))
  })

  test('drops and counts events of a namespace that was not requested', async () => {
    const origin = new MemoryOrigin()
    origin.put('mine')
    const list = origin.listPage.bind(origin)
    origin.listPage = (options) => list({ ...options, namespace: undefined })
    const run = start(origin, { namespace: 'other' })
    await clock.advance(1_000)
    await run.stop()
    assert.deepEqual(run.names(), [])
    assert.equal(run.counters.dropped.invalid, 1)
  })
})
