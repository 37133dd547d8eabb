import assert from 'node:assert/strict'
import { describe, type MockTimers, test } from 'node:test'
import fc from 'fast-check'
import { FairSlots, type FairSlotsOptions, type RefusalReason, type Slot } from './fair-slots.ts'

const noSignal = new AbortController().signal
const leave = (slot: Slot | undefined): void => slot?.[Symbol.dispose]()
const one = (user: string, width = 1): { user: string; width: number } => ({ user, width })

function slotsOf(options: Partial<FairSlotsOptions> = {}): FairSlots {
  return new FairSlots({ limit: 100, waitingMax: 100, waitMs: () => 1000, ...options })
}

/** Takes all slots that a user can have. */
function takeAll(slots: FairSlots, user: string): Slot[] {
  const taken: Slot[] = []
  for (let slot = slots.tryEnter(one(user)); slot; slot = slots.tryEnter(one(user))) {
    taken.push(slot)
  }
  return taken
}

/** `order` has the users of admitted requests. */
function recorder(slots: FairSlots): { order: string[]; wait: (user: string) => void } {
  const order: string[] = []
  return {
    order,
    wait: (user) => {
      void slots.wait(one(user), noSignal).then((got) => {
        if (typeof got !== 'string') order.push(user)
      })
    },
  }
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('FairSlots', () => {
  test('one user alone gets three quarters of the shared slots, and another gets a slot at once', () => {
    const slots = slotsOf({ limit: 400 })
    assert.equal(takeAll(slots, 'noisy').length, 270)
    assert.ok(slots.tryEnter(one('polite')))
  })

  test('users that take all slots they can end up with equal shares, and some slots stay free', () => {
    const slots = slotsOf({ limit: 400 })
    const held = ['a', 'b', 'c', 'd', 'e'].map((user) => ({ user, slots: takeAll(slots, user) }))
    assert.deepEqual(
      held.map((holder) => holder.slots.length),
      [270, 67, 17, 4, 1],
    )
    for (let round = 0; round < 500; round++) {
      for (const holder of held) {
        leave(holder.slots.shift())
        holder.slots.push(...takeAll(slots, holder.user))
      }
    }
    for (const holder of held) assert.equal(Math.round(holder.slots.length / 10), 7)
    assert.equal(takeAll(slots, 'newcomer').length > 10, true)
  })

  test('one free slot admits one waiting request', async () => {
    const slots = slotsOf({ limit: 1 })
    const holder = slots.tryEnter(one('first'))
    const { order, wait } = recorder(slots)
    for (const user of ['noisy', 'noisy', 'noisy', 'a', 'b']) wait(user)
    leave(holder)
    await settle()
    assert.deepEqual(order, ['noisy'])
  })

  test('waiting requests are admitted round-robin, user by user', async () => {
    const slots = slotsOf({ limit: 1 })
    const order: string[] = []
    const first = slots.tryEnter(one('first'))
    const all = ['noisy', 'noisy', 'noisy', 'a', 'b'].map(async (user) => {
      const slot = await slots.wait(one(user), noSignal)
      assert.ok(typeof slot !== 'string')
      order.push(user)
      leave(slot)
    })
    leave(first)
    await Promise.all(all)
    assert.deepEqual(order, ['noisy', 'a', 'b', 'noisy', 'noisy'])
    assert.deepEqual([slots.held, slots.waiting, slots.users], [0, 0, 0])
  })

  test('gives a request at most an eighth of the slots', () => {
    const slots = slotsOf({ limit: 400 })
    using _wide = slots.tryEnter(one('a', 1000))
    assert.equal(slots.held, 50)
  })

  test('wide requests leave the reserved slots to users who hold none', () => {
    const slots = slotsOf({ limit: 200 })
    for (const user of ['a', 'b', 'c']) {
      while (slots.tryEnter(one(user, 20)) !== undefined);
    }
    assert.ok(slots.held <= 180)
    const newcomers = Array.from({ length: 20 }, (_, n) => slots.tryEnter(one(`newcomer ${n}`)))
    assert.ok(!newcomers.includes(undefined))
    assert.equal(slots.tryEnter(one('newcomer 0')), undefined)
  })

  test('narrow requests do not overtake a wide one of a user who holds less', async () => {
    const slots = slotsOf({ limit: 100 })
    const held = takeAll(slots, 'noisy')
    const { order, wait } = recorder(slots)
    takeAll(slots, 'other')
    void slots.wait(one('wide', 12), noSignal).then(() => order.push('wide'))
    wait('noisy')
    while (order.length === 0 && held.length > 0) {
      leave(held.shift())
      await settle()
    }
    assert.deepEqual(order, ['wide'])
  })

  test('a reserved slot that is given back goes to a waiting user who holds none', async () => {
    const slots = slotsOf({ limit: 10 })
    const held = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'].map((user) =>
      slots.tryEnter(one(user)),
    )
    const reserved = slots.tryEnter(one('j'))
    assert.ok(!held.includes(undefined) && reserved !== undefined)
    const { order, wait } = recorder(slots)
    wait('a')
    wait('k')
    leave(reserved)
    await settle()
    assert.deepEqual(order, ['k'])
  })

  test('a slot that is given back twice counts once', () => {
    const slots = slotsOf()
    const slot = slots.tryEnter(one('a'))
    leave(slot)
    leave(slot)
    assert.deepEqual([slots.held, slots.entered, slots.users], [0, 0, 0])
  })

  test('a request that waits too long ends with time-out', async (context) => {
    context.mock.timers.enable({ apis: ['setTimeout'] })
    const waits: [number, boolean][] = []
    const slots = slotsOf({ limit: 1, onWaited: (ms, got) => waits.push([ms, got]) })
    const holder = slots.tryEnter(one('a'))
    const waiting = slots.wait(one('a'), noSignal)
    context.mock.timers.tick(1000)
    assert.equal(await waiting, 'time-out')
    assert.deepEqual([slots.waiting, waits.length, waits[0]?.[1]], [0, 1, false])
    leave(holder)
    assert.equal(slots.users, 0)
  })

  test('a request that is cancelled leaves the queue at once', async () => {
    const slots = slotsOf({ limit: 1 })
    const holder = slots.tryEnter(one('a'))
    const gone = new AbortController()
    const waiting = slots.wait(one('b'), gone.signal)
    assert.equal(slots.waiting, 1)
    gone.abort(new Error('gone'))
    assert.equal(slots.waiting, 0)
    await assert.rejects(waiting, /gone/)
    await assert.rejects(slots.wait(one('b'), gone.signal), /gone/)
    leave(holder)
    assert.deepEqual([slots.held, slots.users], [0, 0])
  })

  test('one user cannot fill the queue', async () => {
    const slots = slotsOf({ limit: 1, waitingMax: 10 })
    slots.tryEnter(one('noisy'))
    const gone = new AbortController()
    const waiting = Array.from({ length: 20 }, () => slots.wait(one('noisy'), gone.signal))
    assert.equal(slots.waiting, 5)
    const other = slots.wait(one('polite'), gone.signal)
    assert.equal(slots.waiting, 6)
    gone.abort(new Error('over'))
    const outcomes = await Promise.allSettled([...waiting, other])
    assert.equal(outcomes.filter(({ status }) => status === 'rejected').length, 6)
    const [full] = outcomes.filter((outcome) => outcome.status === 'fulfilled')
    assert.equal(full?.value, 'queue-full')
  })

  test('without a limit, requests are only counted', () => {
    const slots = slotsOf({ limit: Number.POSITIVE_INFINITY })
    const taken = Array.from({ length: 1000 }, () => slots.tryEnter(one('a')))
    assert.deepEqual([slots.held, taken.includes(undefined)], [1000, false])
  })

  test('limits hold, no waiter starves and nothing leaks, for any order of operations', async (context) => {
    const { timers } = context.mock
    timers.enable({ apis: ['setTimeout'] })
    await fc.assert(
      fc.asyncProperty(scenario, (steps) => play(steps, timers)),
      { numRuns: 300 },
    )
  })

  test('a request does not queue behind one of the same user that has waited for firstWaitMsMax', async () => {
    let now = 0
    const slots = slotsOf({ firstWaitMsMax: 500, clock: { now: () => now } })
    const [first] = takeAll(slots, 'noisy')
    const results: unknown[] = []
    const wait = (): void => {
      void slots.wait(one('noisy'), noSignal).then((got) => results.push(typeof got))
    }
    wait()
    now = 499
    wait()
    assert.equal(slots.waiting, 2)
    now = 500
    assert.equal(await slots.wait(one('noisy'), noSignal), 'queue-full')
    // The request that is now first arrived later.
    leave(first)
    await settle()
    assert.deepEqual([slots.waiting, results], [1, ['object']])
    wait()
    assert.equal(slots.waiting, 2)
  })
})

type Step =
  | { readonly do: 'enter'; readonly user: string; readonly width: number }
  | { readonly do: 'leave' | 'abort'; readonly which: number }
  | { readonly do: 'pass'; readonly ms: number }

const LIMIT = 32
const RESERVED = 3
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

/** Runs the steps, checks the state after each, and ends all requests at the end. */
async function play(steps: readonly Step[], timers: MockTimers): Promise<void> {
  const world = new World(timers)
  for (const step of steps) {
    world.take(step)
    await settleMicrotasks()
    world.check()
  }
  await world.end()
}

/** Afterwards, all promises that were resolved have called their handlers. */
async function settleMicrotasks(): Promise<void> {
  for (let count = 0; count < 5; count++) await undefined
}

class World {
  readonly #slots = slotsOf({ limit: LIMIT, waitingMax: WAITING_MAX, waitMs: () => WAIT_MS })
  readonly #holding: { user: string; width: number; slot: Slot }[] = []
  readonly #waiting: { user: string; width: number; gone: AbortController }[] = []
  readonly #timers: MockTimers

  constructor(timers: MockTimers) {
    this.#timers = timers
  }

  take(step: Step): void {
    if (step.do === 'enter') this.#enter(step)
    else if (step.do === 'pass') this.#timers.tick(step.ms)
    else if (step.do === 'leave') {
      leave(this.#holding.splice(step.which % (this.#holding.length || 1), 1)[0]?.slot)
    } else {
      const waiter = this.#waiting[step.which % (this.#waiting.length || 1)]
      waiter?.gone.abort(new Error('gone'))
    }
  }

  check(): void {
    const held = this.#holding.reduce((sum, { width }) => sum + width, 0)
    assert.equal(this.#slots.held, held)
    assert.equal(this.#slots.entered, this.#holding.length)
    assert.equal(this.#slots.waiting, this.#waiting.length)
    assert.ok(held <= LIMIT)
    assert.ok(this.#waiting.length <= WAITING_MAX)
    const users = new Set([...this.#holding, ...this.#waiting].map(({ user }) => user))
    assert.equal(this.#slots.users, users.size)
    // A user without slots does not wait for one slot while the reserve has any.
    const isStarving = this.#waiting.some(
      ({ user, width }) => width === 1 && !this.#holding.some((holder) => holder.user === user),
    )
    assert.ok(!isStarving || held >= RESERVED)
  }

  async end(): Promise<void> {
    for (let left = this.#waiting.length + this.#holding.length; left > 0; left--) {
      leave(this.#holding.shift()?.slot)
      await settleMicrotasks()
      this.check()
    }
    assert.deepEqual([this.#waiting.length, this.#slots.held, this.#slots.users], [0, 0, 0])
  }

  #enter(wanted: { user: string; width: number }): void {
    const slot = this.#slots.tryEnter(wanted)
    if (slot !== undefined) {
      this.#holding.push({ ...wanted, slot })
      return
    }
    const waiter = { ...wanted, gone: new AbortController() }
    this.#waiting.push(waiter)
    const onEnd = (): void => {
      this.#waiting.splice(this.#waiting.indexOf(waiter), 1)
    }
    const onResult = (got: Slot | RefusalReason): void => {
      onEnd()
      if (typeof got !== 'string') this.#holding.push({ ...wanted, slot: got })
    }
    void this.#slots.wait(wanted, waiter.gone.signal).then(onResult, onEnd)
  }
}
