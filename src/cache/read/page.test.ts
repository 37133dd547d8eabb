import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { aLane } from '../../lib/run-queue.fixture.ts'
import { allEvents } from '../../storage/event-scope.ts'
import { versionOfChange, versionOfState } from '../../storage/resource-version.ts'
import type { EventKey } from '../../storage/storage.ts'
import { madeEvent } from '../memory/made-events.fixture.ts'
import { defaultMemoryBounds, EventMemory } from '../memory/memory.ts'
import { readPage } from './page.ts'

/** Few, so that the walk before the scan ends within its first time slice, in which nothing is pinned. */
const EVENTS = 200

function keyOf(n: number): EventKey {
  return { cluster: 'local', namespace: 'shop', name: `e-${String(n).padStart(5, '0')}` }
}

test('a page of rare matches is of its state, whatever changes while it is read', async () => {
  const memory = new EventMemory(defaultMemoryBounds, { now: () => 0 })
  const put = (n: number, revision: number, note: string): void => {
    memory.put(madeEvent(keyOf(n), versionOfChange(revision, 0), { note, lastSeenMs: n }))
  }
  for (let n = 0; n < EVENTS; n++) put(n, n + 1, n === 7 ? 'a needle' : 'hay')
  memory.reach(versionOfState(EVENTS + 1))
  const requires = { texts: [{ texts: ['needle'], isIn: true, isAnywhere: false }], isAll: true }
  // The reflector applies its batches in microtasks: this one runs as soon as the read waits.
  queueMicrotask(() => {
    for (let n = 0; n < EVENTS; n++) memory.delete(keyOf(n), versionOfChange(EVENTS + 2 + n, 0))
    for (let n = 0; n < EVENTS; n++) put(n + EVENTS, 2 * EVENTS + 2 + n, 'a new needle')
    memory.reach(versionOfState(3 * EVENTS + 3))
  })
  const page = readPage(memory, memory.peek(), {
    lane: aLane(),
    scope: allEvents,
    selector: { matches: () => true, requires },
    order: 'newest',
    limit: 10,
    signal: new AbortController().signal,
  })
  const { items } = await page
  assert.deepEqual(
    items.map(({ key }) => key.name),
    [keyOf(7).name],
  )
})

test('the newest event of a namespace is found without reading all newer ones of others', async () => {
  const memory = new EventMemory(defaultMemoryBounds, { now: () => 0 })
  for (let n = 0; n < 20_000; n++) {
    const key = { cluster: 'local', namespace: n < 200 ? 'old' : 'new', name: `e-${n}` }
    memory.put(madeEvent(key, versionOfChange(n + 1, 0), { lastSeenMs: n }))
  }
  memory.reach(versionOfState(20_001))
  const state = memory.peek()
  const runAt = mock.method(state.byTime, 'runAt')
  const { items } = await readPage(memory, state, {
    lane: aLane(),
    scope: { cluster: 'local', namespace: 'old' },
    order: 'newest',
    limit: 1,
    signal: new AbortController().signal,
  })
  assert.deepEqual(
    items.map(({ key }) => key.name),
    ['e-199'],
  )
  const runs = runAt.mock.calls.map(({ result }) => result?.run.slots.length ?? 0)
  const passed = runs.reduce((sum, slots) => sum + slots, 0)
  assert.ok(passed > 0 && passed < 1_000, `passed ${passed} of 20,000 events`)
})
