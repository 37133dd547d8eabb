import assert from 'node:assert/strict'
import { describe, type MockTimers, type TestContext, test } from 'node:test'
import { RefusalPace, type RefusalPaceOptions } from './refusal-pace.ts'

const TICK_MS = 20
const noSignal = new AbortController().signal
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A pace with a manual clock. `sent` has the numbers of the refusals that were sent. */
class Setting {
  readonly sent: number[] = []
  readonly pace: RefusalPace
  #now = 0
  readonly #timers: MockTimers

  constructor({ mock }: TestContext, options: RefusalPaceOptions) {
    mock.timers.enable({ apis: ['setInterval'] })
    this.#timers = mock.timers
    this.pace = new RefusalPace({ clock: { now: () => this.#now }, ...options })
  }

  hold(count: number): void {
    for (let number = 0; number < count; number++) {
      void this.pace.hold(noSignal).then(() => this.sent.push(number))
    }
  }

  /** One tick, when several are due. */
  async lateTick(ms: number): Promise<void> {
    this.#now += ms
    this.#timers.tick(TICK_MS)
    await settle()
  }

  async tick(times = 1): Promise<number> {
    const before = this.sent.length
    for (let time = 0; time < times; time++) {
      this.#now += TICK_MS
      this.#timers.tick(TICK_MS)
    }
    await settle()
    return this.sent.length - before
  }
}

describe('RefusalPace', () => {
  test('an idle event loop sends twenty refusals every 20 ms, in the order of arrival', async (context) => {
    const setting = new Setting(context, { busyPart: () => 0 })
    setting.hold(50)
    await settle()
    assert.equal(setting.sent.length, 0)
    assert.deepEqual(
      [await setting.tick(), await setting.tick(), await setting.tick()],
      [20, 20, 10],
    )
    assert.deepEqual(
      setting.sent,
      setting.sent.toSorted((a, b) => a - b),
    )
    assert.equal(setting.pace.held, 0)
  })

  test('the busier the event loop, the fewer refusals are sent', async (context) => {
    let busyPart = 0.35
    const setting = new Setting(context, { busyPart: () => busyPart })
    setting.hold(50)
    assert.equal(await setting.tick(), 10)
    busyPart = 0.7
    assert.equal(await setting.tick(), 1)
  })

  test('a busy event loop sends one refusal for four requests served', async (context) => {
    const setting = new Setting(context, { busyPart: () => 0.9 })
    setting.hold(100)
    for (const [served, sent] of [
      [20, 5],
      [8, 2],
      [6, 1],
      [6, 2],
      [400, 20],
    ]) {
      for (let one = 0; one < (served ?? 0); one++) setting.pace.served()
      assert.equal(await setting.tick(), sent, `${served} served`)
    }
  })

  test('requests served before the first refusal do not count', async (context) => {
    const setting = new Setting(context, { busyPart: () => 0.9 })
    for (let one = 0; one < 1000; one++) setting.pace.served()
    setting.hold(100)
    assert.equal(await setting.tick(), 1)
  })

  test('all refusals are sent in the end, even if no request is served', async (context) => {
    const setting = new Setting(context, { busyPart: () => 1 })
    setting.hold(12_000)
    assert.equal(await setting.tick(), 1)
    await setting.tick(15_000 / TICK_MS - 2)
    assert.equal(setting.sent.length, 749)
    // Refusals held for 15 s are sent, but not all at once: within another 15 s.
    assert.equal(await setting.tick(), 17)
    await setting.tick(7500 / TICK_MS)
    assert.ok(setting.pace.held > 4000, `${setting.pace.held} are held`)
    await setting.tick(7500 / TICK_MS)
    assert.equal(setting.pace.held, 0)
  })

  test('no refusal is held for longer than twice overdueMs', async (context) => {
    const setting = new Setting(context, { busyPart: () => 1, overdueMs: 200, heldMax: 100 })
    setting.hold(100)
    await setting.tick(9)
    assert.equal(setting.sent.length, 9)
    assert.equal(await setting.tick(), 1 + 10)
    await setting.tick(10)
    assert.equal(setting.pace.held, 0)
  })

  test('late ticks send as many overdue refusals as all ticks would have', async (context) => {
    const setting = new Setting(context, { busyPart: () => 1, overdueMs: 200, heldMax: 100 })
    setting.hold(100)
    await setting.tick(10)
    const before = setting.pace.held
    await setting.lateTick(100)
    assert.equal(before - setting.pace.held, 1 + 50)
  })

  test('a release sends all held refusals, and later ones are not held', async (context) => {
    const setting = new Setting(context, { busyPart: () => 1 })
    setting.hold(3)
    setting.pace.release()
    await settle()
    assert.deepEqual(setting.sent, [0, 1, 2])
    setting.hold(1)
    await settle()
    assert.equal(setting.sent.length, 4)
    assert.equal(setting.pace.held, 0)
  })

  test('refusals beyond heldMax are sent at once', async (context) => {
    const setting = new Setting(context, { busyPart: () => 1, heldMax: 3 })
    setting.hold(5)
    await settle()
    assert.deepEqual(setting.sent, [3, 4])
    assert.equal(setting.pace.held, 3)
  })

  test('a request that is cancelled is removed, and the next ones move up', async (context) => {
    const setting = new Setting(context, { busyPart: () => 1 })
    const gone = new AbortController()
    const leaving = setting.pace.hold(gone.signal)
    setting.hold(1)
    gone.abort(new Error('gone'))
    await assert.rejects(leaving, /gone/)
    assert.equal(setting.pace.held, 1)
    assert.equal(await setting.tick(), 1)
    await assert.rejects(setting.pace.hold(gone.signal), /gone/)
    assert.equal(setting.pace.held, 0)
  })

  test('a refusal after all others were sent starts the timer again', async (context) => {
    const setting = new Setting(context, { busyPart: () => 1 })
    setting.hold(1)
    assert.equal(await setting.tick(), 1)
    setting.hold(1)
    assert.equal(await setting.tick(), 1)
  })

  test('the utilization of the event loop is measured by default', async () => {
    const pace = new RefusalPace()
    const sent = Array.from({ length: 500 }, () => pace.hold(noSignal))
    const endsAt = performance.now() + 400
    const burn = (): void => {
      const until = performance.now() + 10
      while (performance.now() < until);
      if (performance.now() < endsAt) setImmediate(burn)
    }
    burn()
    await new Promise((resolve) => setTimeout(resolve, 400))
    assert.ok(pace.held > 350, `${pace.held} held`)
    await Promise.all(sent)
  })
})
