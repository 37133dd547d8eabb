import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { aLane } from '../../lib/run-queue.fixture.ts'
import { allEvents } from '../../storage/event-scope.ts'
import { versionOfChange, versionOfState } from '../../storage/resource-version.ts'
import type { EventScope } from '../../storage/storage.ts'
import { madeEvent } from '../memory/made-events.fixture.ts'
import { defaultMemoryBounds, EventMemory } from '../memory/memory.ts'
import { SeenTimes } from './seen-times.ts'

interface Made {
  readonly cluster: string
  readonly namespace: string
  readonly lastSeenMs: number
}

function memoryOf(events: readonly Made[]): EventMemory {
  const memory = new EventMemory(defaultMemoryBounds, { now: () => 0 })
  for (const [at, { cluster, namespace, lastSeenMs }] of events.entries()) {
    const key = { cluster, namespace, name: `e-${String(at).padStart(6, '0')}` }
    memory.put(madeEvent(key, versionOfChange(at + 1, 0), { lastSeenMs }))
  }
  memory.reach(versionOfState(events.length + 1))
  return memory
}

const made: fc.Arbitrary<Made> = fc.record({
  cluster: fc.constantFrom('a', 'b'),
  namespace: fc.constantFrom('shop', 'web'),
  lastSeenMs: fc.integer({ min: 1, max: 1_000 }),
})
const clock = { now: () => 0 }
const isLoaded = () => true
const lane = aLane()

test('the times of a scope are the least and the greatest of its events, and take no snapshot', async () => {
  const lists = fc.array(made, { maxLength: 60 })
  await fc.assert(
    fc.asyncProperty(lists, async (events) => {
      const memory = memoryOf(events)
      const oldest = new SeenTimes({ memory, clock, isLoaded, order: 'oldest' })
      const wallTime = () => 500
      const newest = new SeenTimes({ memory, clock, isLoaded, order: 'newest', wallTime })
      const check = async (scope: EventScope, found: readonly Made[]): Promise<void> => {
        const times = found.map(({ lastSeenMs }) => lastSeenMs).sort((one, other) => one - other)
        assert.equal(await oldest.in(scope, lane), times[0])
        assert.equal(
          await newest.in(scope, lane),
          times.findLast((ms) => ms < 500),
        )
      }
      await check(allEvents, events)
      for (const cluster of ['a', 'b', 'none']) {
        const own = events.filter((event) => event.cluster === cluster)
        await check({ cluster, namespace: undefined }, own)
        for (const namespace of ['shop', 'web', 'none']) {
          const inside = own.filter((event) => event.namespace === namespace)
          await check({ cluster, namespace }, inside)
        }
      }
      assert.equal(memory.statesKept, 0)
    }),
    { numRuns: 200 },
  )
})

test('nothing is returned while memory is loaded, and a time is a second old at most', async () => {
  let isReady = false
  const at = { ms: 0, now: () => at.ms }
  const memory = memoryOf([{ cluster: 'a', namespace: 'shop', lastSeenMs: 50 }])
  const times = new SeenTimes({ memory, clock: at, isLoaded: () => isReady, order: 'oldest' })
  assert.equal(await times.in(allEvents, lane), undefined)
  isReady = true
  assert.equal(await times.in(allEvents, lane), 50)
  const key = { cluster: 'a', namespace: 'web', name: 'older' }
  memory.put(madeEvent(key, versionOfChange(9, 0), { lastSeenMs: 20 }))
  memory.reach(versionOfState(9))
  assert.equal(await times.in(allEvents, lane), 50)
  at.ms = 1_000
  assert.equal(await times.in(allEvents, lane), 20)
})
