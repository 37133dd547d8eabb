import assert from 'node:assert/strict'
import { describe, type MockTimers, test } from 'node:test'
import fc from 'fast-check'
import {
  FairPlaces,
  type FairPlacesOptions,
  type Place,
  type RefusalReason,
} from './fair-places.ts'

const noSignal = new AbortController().signal
const leave = (place: Place | undefined): void => place?.[Symbol.dispose]()
const one = (user: string, width = 1): { user: string; width: number } => ({ user, width })

function placesOf(options: Partial<FairPlacesOptions> = {}): FairPlaces {
  return new FairPlaces({ limit: 100, waitingMax: 100, waitMs: () => 1000, ...options })
}

/** Takes all that a user can have at once. */
function takeAll(places: FairPlaces, user: string): Place[] {
  const taken: Place[] = []
  for (let place = places.tryEnter(one(user)); place; place = places.tryEnter(one(user))) {
    taken.push(place)
  }
  return taken
}

/** Who has been let in, in order. */
function recorder(places: FairPlaces): { order: string[]; wait: (user: string) => void } {
  const order: string[] = []
  return {
    order,
    wait: (user) => {
      void places.wait(one(user), noSignal).then((got) => {
        if (typeof got !== 'string') order.push(user)
      })
    },
  }
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('FairPlaces', () => {
  test('one user alone gets three quarters, and another finds room at once', () => {
    const places = placesOf({ limit: 400 })
    assert.equal(takeAll(places, 'noisy').length, 300)
    assert.ok(places.tryEnter(one('polite')))
  })

  test('as places come and go, all who take all they can get the same, and some stay free', () => {
    const places = placesOf({ limit: 400 })
    const held = ['a', 'b', 'c', 'd', 'e'].map((user) => ({ user, places: takeAll(places, user) }))
    assert.deepEqual(
      held.map((holder) => holder.places.length),
      [300, 75, 19, 5, 1],
    )
    for (let round = 0; round < 500; round++) {
      for (const holder of held) {
        leave(holder.places.shift())
        holder.places.push(...takeAll(places, holder.user))
      }
    }
    for (const holder of held) assert.equal(Math.round(holder.places.length / 10), 8)
    assert.equal(takeAll(places, 'newcomer').length > 10, true)
  })

  test('those who wait are let in user by user, whoever waits with more', async () => {
    const places = placesOf({ limit: 1 })
    const holder = places.tryEnter(one('first'))
    const { order, wait } = recorder(places)
    for (const user of ['noisy', 'noisy', 'noisy', 'a', 'b']) wait(user)
    leave(holder)
    await settle()
    assert.deepEqual(order, ['noisy'])
  })

  test('turns go round', async () => {
    const places = placesOf({ limit: 1 })
    const order: string[] = []
    const first = places.tryEnter(one('first'))
    const all = ['noisy', 'noisy', 'noisy', 'a', 'b'].map(async (user) => {
      const place = await places.wait(one(user), noSignal)
      assert.ok(typeof place !== 'string')
      order.push(user)
      leave(place)
    })
    leave(first)
    await Promise.all(all)
    assert.deepEqual(order, ['noisy', 'a', 'b', 'noisy', 'noisy'])
    assert.deepEqual([places.held, places.waiting, places.users], [0, 0, 0])
  })

  test('a wide request goes in when one place is free, and those after it wait for all of them', () => {
    const places = placesOf({ limit: 4 })
    const small = [1, 2, 3].map(() => places.tryEnter(one('a')))
    const wide = places.tryEnter(one('b', 10))
    assert.ok(wide)
    for (const place of small) leave(place)
    assert.equal(places.held, 10)
    assert.equal(places.tryEnter(one('c')), undefined)
    leave(wide)
    assert.ok(places.tryEnter(one('c')))
  })

  test('a place can be given back once only', () => {
    const places = placesOf()
    const place = places.tryEnter(one('a'))
    leave(place)
    leave(place)
    assert.deepEqual([places.held, places.entered, places.users], [0, 0, 0])
  })

  test('waiting ends with the time for it', async (context) => {
    context.mock.timers.enable({ apis: ['setTimeout'] })
    const waits: [number, boolean][] = []
    const places = placesOf({ limit: 1, onWaited: (ms, got) => waits.push([ms, got]) })
    const holder = places.tryEnter(one('a'))
    const waiting = places.wait(one('a'), noSignal)
    context.mock.timers.tick(1000)
    assert.equal(await waiting, 'time-out')
    assert.deepEqual([places.waiting, waits.length, waits[0]?.[1]], [0, 1, false])
    leave(holder)
    assert.equal(places.users, 0)
  })

  test('whoever goes away leaves the queue at once', async () => {
    const places = placesOf({ limit: 1 })
    const holder = places.tryEnter(one('a'))
    const gone = new AbortController()
    const waiting = places.wait(one('b'), gone.signal)
    assert.equal(places.waiting, 1)
    gone.abort(new Error('gone'))
    assert.equal(places.waiting, 0)
    await assert.rejects(waiting, /gone/)
    await assert.rejects(places.wait(one('b'), gone.signal), /gone/)
    leave(holder)
    assert.deepEqual([places.held, places.users], [0, 0])
  })

  test('one user cannot fill the room to wait in', async () => {
    const places = placesOf({ limit: 1, waitingMax: 10 })
    places.tryEnter(one('noisy'))
    const gone = new AbortController()
    const waiting = Array.from({ length: 20 }, () => places.wait(one('noisy'), gone.signal))
    assert.equal(places.waiting, 5)
    const other = places.wait(one('polite'), gone.signal)
    assert.equal(places.waiting, 6)
    gone.abort(new Error('over'))
    const outcomes = await Promise.allSettled([...waiting, other])
    assert.equal(outcomes.filter(({ status }) => status === 'rejected').length, 6)
    const [full] = outcomes.filter((outcome) => outcome.status === 'fulfilled')
    assert.equal(full?.value, 'queue-full')
  })

  test('without a limit, it only counts', () => {
    const places = placesOf({ limit: Number.POSITIVE_INFINITY })
    const taken = Array.from({ length: 1000 }, () => places.tryEnter(one('a')))
    assert.deepEqual([places.held, taken.includes(undefined)], [1000, false])
  })

  test('whatever happens in whatever order: bounds hold, nobody is forgotten, nothing leaks', async (context) => {
    const { timers } = context.mock
    timers.enable({ apis: ['setTimeout'] })
    await fc.assert(
      fc.asyncProperty(scenario, (steps) => play(steps, timers)),
      { numRuns: 300 },
    )
  })

  test('nobody lines up behind one of the same user that has been waiting for long', async () => {
    let now = 0
    const places = placesOf({ firstWaitMsMax: 500, clock: { now: () => now } })
    const [first] = takeAll(places, 'noisy')
    const results: unknown[] = []
    const wait = (): void => {
      void places.wait(one('noisy'), noSignal).then((got) => results.push(typeof got))
    }
    wait()
    now = 499
    wait()
    assert.equal(places.waiting, 2)
    now = 500
    assert.equal(await places.wait(one('noisy'), noSignal), 'queue-full')
    // The next in line has come later.
    leave(first)
    await settle()
    assert.deepEqual([places.waiting, results], [1, ['object']])
    wait()
    assert.equal(places.waiting, 2)
  })
})

type Step =
  | { readonly do: 'enter'; readonly user: string; readonly width: number }
  | { readonly do: 'leave' | 'abort'; readonly which: number }
  | { readonly do: 'pass'; readonly ms: number }

const LIMIT = 12
const WAITING_MAX = 8
const WIDTH_MAX = 4
const WAIT_MS = 1000

const scenario = fc.array(
  fc.oneof(
    fc.record({
      do: fc.constant('enter' as const),
      user: fc.constantFrom('a', 'b', 'c', '__proto__'),
      width: fc.integer({ min: 1, max: WIDTH_MAX }),
    }),
    fc.record({ do: fc.constantFrom('leave' as const, 'abort' as const), which: fc.nat(30) }),
    fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: WAIT_MS }) }),
  ),
  { maxLength: 80 },
)

/** Plays the steps, looks after each, and at the end lets everybody go. */
async function play(steps: readonly Step[], timers: MockTimers): Promise<void> {
  const world = new World(timers)
  for (const step of steps) {
    world.take(step)
    await settleMicrotasks()
    world.check()
  }
  await world.end()
}

/** Everything that is decided has been told. */
async function settleMicrotasks(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await undefined
}

class World {
  readonly #places = placesOf({ limit: LIMIT, waitingMax: WAITING_MAX, waitMs: () => WAIT_MS })
  readonly #holding: { user: string; width: number; place: Place }[] = []
  readonly #waiting: { user: string; gone: AbortController }[] = []
  readonly #timers: MockTimers

  constructor(timers: MockTimers) {
    this.#timers = timers
  }

  take(step: Step): void {
    if (step.do === 'enter') this.#enter(step)
    else if (step.do === 'pass') this.#timers.tick(step.ms)
    else if (step.do === 'leave') {
      leave(this.#holding.splice(step.which % (this.#holding.length || 1), 1)[0]?.place)
    } else {
      const waiter = this.#waiting[step.which % (this.#waiting.length || 1)]
      waiter?.gone.abort(new Error('gone'))
    }
  }

  check(): void {
    const held = this.#holding.reduce((sum, { width }) => sum + width, 0)
    assert.equal(this.#places.held, held)
    assert.equal(this.#places.entered, this.#holding.length)
    assert.equal(this.#places.waiting, this.#waiting.length)
    assert.ok(held < LIMIT + WIDTH_MAX)
    assert.ok(this.#waiting.length <= WAITING_MAX)
    const users = new Set([...this.#holding, ...this.#waiting].map(({ user }) => user))
    assert.equal(this.#places.users, users.size)
    // Nobody waits who has nothing while there is a free place.
    const hungry = this.#waiting.some(({ user }) => !this.#holding.some((h) => h.user === user))
    assert.ok(!hungry || held >= LIMIT)
  }

  async end(): Promise<void> {
    for (let left = this.#waiting.length + this.#holding.length; left > 0; left--) {
      leave(this.#holding.shift()?.place)
      await settleMicrotasks()
      this.check()
    }
    assert.deepEqual([this.#waiting.length, this.#places.held, this.#places.users], [0, 0, 0])
  }

  #enter(entering: { user: string; width: number }): void {
    const place = this.#places.tryEnter(entering)
    if (place !== undefined) {
      this.#holding.push({ ...entering, place })
      return
    }
    const waiter = { user: entering.user, gone: new AbortController() }
    this.#waiting.push(waiter)
    const over = (): void => {
      this.#waiting.splice(this.#waiting.indexOf(waiter), 1)
    }
    const told = (got: Place | RefusalReason): void => {
      over()
      if (typeof got !== 'string') this.#holding.push({ ...entering, place: got })
    }
    void this.#places.wait(entering, waiter.gone.signal).then(told, over)
  }
}
