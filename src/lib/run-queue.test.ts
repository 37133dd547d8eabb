import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import { type Lane, mapInSlices, RunQueue, sliceMs, turnMs } from './run-queue.ts'

/** Advances only when work says that it takes time. */
class WorkClock {
  nowMs = 0
  now(): number {
    return this.nowMs
  }
}

interface Work {
  readonly user: number
  readonly totalMs: number
  /** How much is done between two checks of the clock. */
  readonly stepMs: number
  /** The turn in which it is aborted. */
  readonly abortedAt: number | undefined
}

const aWork: fc.Arbitrary<Work> = fc.record({
  user: fc.nat({ max: 4 }),
  totalMs: fc.integer({ min: 1, max: 60 }),
  stepMs: fc.constantFrom(0.25, 0.5, 1, 2),
  abortedAt: fc.option(fc.nat({ max: 10 }), { nil: undefined }),
})

async function run(
  lane: Lane,
  clock: WorkClock,
  { totalMs, stepMs }: Work,
  options: { readonly signal: AbortSignal; readonly onRan: (ms: number) => void },
): Promise<void> {
  const { signal, onRan } = options
  const entered = lane.enter(signal)
  if (entered !== undefined) await entered
  if (signal.aborted) return
  using slices = lane.slices({ signal })
  for (let doneMs = 0; doneMs < totalMs; doneMs += stepMs) {
    clock.nowMs += stepMs
    onRan(stepMs)
    if (slices.isOver()) await slices.next()
    if (signal.aborted) return
  }
}

/** Users with work, and what they have run. */
class Crowd {
  readonly queue: RunQueue
  readonly clock = new WorkClock()
  readonly #ranMs = new Map<number, number>()
  readonly #left = new Map<number, number>()
  /** Users that have had work since the start. */
  readonly #busy = new Set<number>()
  readonly #aborts: { readonly abort: AbortController; readonly turn: number | undefined }[] = []
  /** Keyed by the turn of the queue. */
  readonly #turnMs = new Map<number, number>()

  constructor() {
    this.queue = new RunQueue({ clock: this.clock })
  }

  start(work: Work): Promise<void> {
    const { user } = work
    const abort = new AbortController()
    this.#aborts.push({ abort, turn: work.abortedAt })
    this.#busy.add(user)
    add(this.#left, user, 1)
    const onRan = (ms: number) => {
      add(this.#ranMs, user, ms)
      add(this.#turnMs, this.queue.turns, ms)
    }
    const { signal } = abort
    const lane = this.queue.userLane(String(user))
    return run(lane, this.clock, work, { signal, onRan }).finally(() => add(this.#left, user, -1))
  }

  get isDone(): boolean {
    return [...this.#left.values()].every((count) => count === 0)
  }

  async turn(number: number): Promise<void> {
    for (const { abort, turn } of this.#aborts) if (turn === number) abort.abort()
    await nextTurn()
    for (const [user, count] of this.#left) if (count === 0) this.#busy.delete(user)
  }

  get longestTurnMs(): number {
    return Math.max(0, ...this.#turnMs.values())
  }

  /** How far users who always had work are apart. */
  get unfairMs(): number {
    const shares = [...this.#busy].map((user) => this.#ranMs.get(user) ?? 0)
    return shares.length === 0 ? 0 : Math.max(...shares) - Math.min(...shares)
  }
}

function add(counts: Map<number, number>, key: number, by: number): void {
  counts.set(key, (counts.get(key) ?? 0) + by)
}

test('gives lanes equal shares, keeps turns within their budget, and drops aborted work', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(aWork, { minLength: 1, maxLength: 30 }), async (works) => {
      const crowd = new Crowd()
      const running = works.map((work) => crowd.start(work))
      for (let turn = 0; !crowd.isDone; turn++) {
        await crowd.turn(turn)
        const { longestTurnMs } = crowd
        assert.ok(longestTurnMs <= turnMs + sliceMs + 2, `a turn took ${longestTurnMs} ms`)
        // What runs before anybody waits is not counted: at most the budget of one turn.
        const bound = turnMs + 2 * (sliceMs + 2)
        assert.ok(crowd.unfairMs <= bound, `${crowd.unfairMs} ms apart`)
        assert.ok(turn < 1_000, 'some work starves')
      }
      await Promise.all(running)
      await nextTurn()
      assert.deepEqual([crowd.queue.waiting, crowd.queue.users], [0, 0])
    }),
  )
})

test('begins work immediately while nothing waits, unless the turn has been used up', async () => {
  const clock = new WorkClock()
  const queue = new RunQueue({ clock })
  const [a, b] = [queue.userLane('a'), queue.userLane('b')]
  assert.equal(a.enter(), undefined)
  {
    using _slices = a.slices()
    clock.nowMs += turnMs
  }
  const waited = b.enter()
  assert.ok(waited instanceof Promise)
  await waited
  assert.equal(queue.waiting, 0)
  await nextTurn()
  assert.equal(a.enter(), undefined)
})

test('lets a user who has not run yet go before one with hundreds of searches', async () => {
  const clock = new WorkClock()
  const queue = new RunQueue({ clock })
  const order: string[] = []
  const work = async (name: string) => {
    await queue.userLane(name).next()
    order.push(name)
    clock.nowMs += sliceMs
  }
  const many = Array.from({ length: 100 }, () => work('many'))
  await nextTurn()
  const few = work('few')
  await Promise.all([few, ...many])
  assert.ok(order.indexOf('few') <= 3, order.slice(0, 5).join())
})

test('gives work that enters repeatedly no more than its slices', async () => {
  const clock = new WorkClock()
  const queue = new RunQueue({ clock })
  const lane = queue.userLane('a')
  const turnsMs = new Map<number, number>()
  await lane.next()
  for (let step = 0; step < 100; step++) {
    const entered = lane.enter()
    if (entered !== undefined) await entered
    using _slices = lane.slices()
    clock.nowMs += 1
    add(turnsMs, queue.turns, 1)
  }
  const longestMs = Math.max(...turnsMs.values())
  assert.ok(longestMs <= turnMs + sliceMs, `a turn took ${longestMs} ms`)
})

test('serves server lanes first, but not exclusively', async () => {
  const clock = new WorkClock()
  const queue = new RunQueue({ clock })
  const order: string[] = []
  const work = async (lane: Lane) => {
    for (let slice = 0; slice < 3; slice++) {
      await lane.next()
      order.push(lane.name)
      clock.nowMs += 2 * sliceMs
    }
  }
  await Promise.all([work(queue.userLane('user')), work(queue.serverLane('server'))])
  assert.deepEqual(order, ['server', 'user', 'server', 'user', 'server', 'user'])
})

test('ends the wait without a slice on abort', async () => {
  const queue = new RunQueue()
  const lane = queue.userLane('a')
  const abort = new AbortController()
  const waited = lane.next(abort.signal)
  assert.equal(queue.waiting, 1)
  abort.abort()
  assert.equal(queue.waiting, 0)
  await waited
  await lane.next(abort.signal)
  assert.equal(queue.waiting, 0)
})

test('does not let work that ignores its abort block the event loop', async () => {
  const clock = new WorkClock()
  const lane = new RunQueue({ clock }).userLane('a')
  const abort = new AbortController()
  const { signal } = abort
  let isDone = false
  const working = (async () => {
    using slices = lane.slices({ signal })
    for (let part = 0; part < 300; part++) {
      clock.nowMs += 2
      if (slices.isOver()) await slices.next()
    }
    isDone = true
  })()
  abort.abort()
  for (let lastMs = 0; !isDone; ) {
    await nextTurn()
    assert.ok(clock.nowMs - lastMs <= 20, `a turn took ${clock.nowMs - lastMs} ms`)
    lastMs = clock.nowMs
  }
  await working
})

test('mapInSlices: ends when it is aborted', async () => {
  const clock = new WorkClock()
  const lane = new RunQueue({ clock }).userLane('a')
  const abort = new AbortController()
  const { signal } = abort
  const mapped = mapInSlices(Array(300).keys(), { lane, signal }, () => (clock.nowMs += 2))
  abort.abort()
  await assert.rejects(mapped, { name: 'AbortError' })
  assert.ok(clock.nowMs <= sliceMs + 2, `${clock.nowMs} ms`)
})

test('lets timers and I/O run between turns', async () => {
  const queue = new RunQueue()
  const lane = queue.userLane('a')
  let isDone = false
  const burn = async () => {
    const entered = lane.enter()
    if (entered !== undefined) await entered
    using slices = lane.slices()
    for (let step = 0; step < 10; step++) {
      const end = performance.now() + 1
      while (performance.now() < end);
      if (slices.isOver()) await slices.next()
    }
  }
  const all = Promise.all(Array.from({ length: 20 }, burn)).then(() => {
    isDone = true
  })
  let turns = 0
  while (!isDone) {
    await nextTurn()
    turns++
  }
  await all
  assert.ok(turns >= 5, `${turns} turns`)
})
