import assert from 'node:assert/strict'
import { describe, type MockTimers, type TestContext, test } from 'node:test'
import { RefusalPace, type RefusalPaceOptions } from './refusal-pace.ts'

const TICK_MS = 20
const noSignal = new AbortController().signal
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A pace whose time is moved by hand, and the numbers of those who have been told. */
class Setting {
  readonly told: number[] = []
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
      void this.pace.turn(noSignal).then(() => this.told.push(number))
    }
  }

  async tick(times = 1): Promise<number> {
    const before = this.told.length
    for (let time = 0; time < times; time++) {
      this.#now += TICK_MS
      this.#timers.tick(TICK_MS)
    }
    await settle()
    return this.told.length - before
  }
}

describe('RefusalPace', () => {
  test('with time to spare, twenty are told every 20 ms, first come first', async (context) => {
    const setting = new Setting(context, { busyPart: () => 0.5 })
    setting.hold(50)
    await settle()
    assert.equal(setting.told.length, 0)
    assert.deepEqual(
      [await setting.tick(), await setting.tick(), await setting.tick()],
      [20, 20, 10],
    )
    assert.deepEqual(
      setting.told,
      setting.told.toSorted((a, b) => a - b),
    )
    assert.equal(setting.pace.held, 0)
  })

  test('while busy, one is told for four that are served', async (context) => {
    const setting = new Setting(context, { busyPart: () => 0.9 })
    setting.hold(100)
    for (const [served, told] of [
      [20, 5],
      [8, 2],
      [6, 1],
      [6, 2],
      [400, 20],
    ]) {
      for (let one = 0; one < (served ?? 0); one++) setting.pace.served()
      assert.equal(await setting.tick(), told, `${served} served`)
    }
  })

  test('what was served before anybody had to be refused does not count', async (context) => {
    const setting = new Setting(context, { busyPart: () => 0.9 })
    for (let one = 0; one < 1000; one++) setting.pace.served()
    setting.hold(100)
    assert.equal(await setting.tick(), 1)
  })

  test('while busy with something else, there is an end to it all the same', async (context) => {
    const setting = new Setting(context, { busyPart: () => 1 })
    setting.hold(12_000)
    assert.equal(await setting.tick(), 1)
    await setting.tick(15_000 / TICK_MS - 2)
    assert.equal(setting.told.length, 749)
    // Who has been held for 15 s is told, but not all in one turn.
    assert.equal(await setting.tick(), 61)
    await setting.tick(4000 / TICK_MS)
    assert.equal(setting.pace.held, 0)
  })

  test('nobody is held for longer than requests may take', async (context) => {
    const setting = new Setting(context, { busyPart: () => 1, heldMsMax: 200 })
    setting.hold(50)
    await setting.tick(9)
    assert.equal(setting.told.length, 9)
    await setting.tick()
    assert.equal(setting.pace.held, 0)
  })

  test('when it is released all are told, and nobody is held any more', async (context) => {
    const setting = new Setting(context, { busyPart: () => 1 })
    setting.hold(3)
    setting.pace.release()
    await settle()
    assert.deepEqual(setting.told, [0, 1, 2])
    setting.hold(1)
    await settle()
    assert.equal(setting.told.length, 4)
    assert.equal(setting.pace.held, 0)
  })

  test('more than can be held are told at once', async (context) => {
    const setting = new Setting(context, { busyPart: () => 1, heldMax: 3 })
    setting.hold(5)
    await settle()
    assert.deepEqual(setting.told, [3, 4])
    assert.equal(setting.pace.held, 3)
  })

  test('whoever leaves is forgotten, and those behind move up', async (context) => {
    const setting = new Setting(context, { busyPart: () => 1 })
    const gone = new AbortController()
    const leaving = setting.pace.turn(gone.signal)
    setting.hold(1)
    gone.abort(new Error('gone'))
    await assert.rejects(leaving, /gone/)
    assert.equal(setting.pace.held, 1)
    assert.equal(await setting.tick(), 1)
    await assert.rejects(setting.pace.turn(gone.signal), /gone/)
    assert.equal(setting.pace.held, 0)
  })

  test('one that comes after all have been told starts it anew', async (context) => {
    const setting = new Setting(context, { busyPart: () => 1 })
    setting.hold(1)
    assert.equal(await setting.tick(), 1)
    setting.hold(1)
    assert.equal(await setting.tick(), 1)
  })

  test('how busy the event loop is, it sees for itself', async () => {
    const pace = new RefusalPace()
    const told = Array.from({ length: 500 }, () => pace.turn(noSignal))
    const endsAt = performance.now() + 400
    const burn = (): void => {
      const until = performance.now() + 10
      while (performance.now() < until);
      if (performance.now() < endsAt) setImmediate(burn)
    }
    burn()
    await new Promise((resolve) => setTimeout(resolve, 400))
    assert.ok(pace.held > 350, `${pace.held} held`)
    await Promise.all(told)
  })
})
