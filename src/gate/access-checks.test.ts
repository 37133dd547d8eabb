import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, mock, test } from 'node:test'
import { forbidden, type StatusError, unauthorized, unavailable } from '../api/status.ts'
import { silentLog } from '../lib/log/log.ts'
import { RunQueue } from '../lib/run-queue.ts'
import { AccessChecks } from './access-checks.ts'

async function settle(): Promise<void> {
  for (let tick = 0; tick < 5; tick++) await new Promise((resolve) => setImmediate(resolve))
}

function start(graceMs?: number) {
  const time = { now: 0 }
  const reasons: string[] = []
  const checks = new AccessChecks({
    log: silentLog,
    clock: { now: () => time.now },
    onEnded: (reason) => reasons.push(reason),
    graceMs,
  })
  let late: { readonly at: number; readonly resolve: () => void }[] = []
  const advance = async (seconds: number): Promise<void> => {
    for (let step = 0; step < seconds * 2; step++) {
      time.now += 500
      for (const { at, resolve } of late) if (at <= time.now) resolve()
      late = late.filter(({ at }) => at > time.now)
      mock.timers.tick(500)
      await settle()
    }
  }
  /** A check that takes this many seconds, as with a slow webhook. */
  const slow = (seconds: number) => (): Promise<void> =>
    new Promise((resolve) => {
      late.push({ at: time.now + seconds * 1000, resolve })
    })
  return { checks, reasons, advance, slow }
}

const forbiddenNow = (): StatusError =>
  forbidden('ada', { isResource: false, verb: 'get', path: '/x' })

describe('AccessChecks', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setInterval'] }))
  afterEach(() => mock.timers.reset())

  test('a watch is checked at least once a minute, until it is disposed of', async () => {
    const { checks, advance } = start()
    let calls = 0
    const entry = checks.add(
      async () => void calls++,
      () => assert.fail(),
    )
    await advance(60)
    assert.ok(calls >= 1 && calls <= 2, `checked ${calls} times`)
    entry[Symbol.dispose]()
    const before = calls
    await advance(120)
    assert.deepEqual([calls, checks.size], [before, 0])
  })

  test('a watch that loses its access ends once, with the reason; others continue', async () => {
    const { checks, reasons, advance } = start()
    const ended: string[] = []
    const failing = (error: StatusError) => (): Promise<void> => Promise.reject(error)
    checks.add(failing(unauthorized()), (why) => ended.push(`a ${why.code}`))
    checks.add(failing(forbiddenNow()), (why) => ended.push(`b ${why.code}`))
    checks.add(
      async () => {},
      () => assert.fail(),
    )
    await advance(90)
    assert.deepEqual(ended, ['a 401', 'b 403'])
    assert.deepEqual([reasons, checks.size], [['Unauthorized', 'Forbidden'], 1])
  })

  test('a check may have a grace period of its own', async () => {
    const { checks, advance } = start()
    const ended: string[] = []
    const failing = async (): Promise<void> => {
      throw unavailable('down', 1)
    }
    checks.add(failing, () => ended.push('usual'), 'ours')
    const short = Object.assign(() => failing(), { graceMs: 30_000 })
    checks.add(short, ({ message }) => ended.push(message), 'theirs')
    await advance(59)
    assert.deepEqual(ended, [])
    await advance(2)
    assert.deepEqual(ended, ['the access of this watch could not be checked for 30 s'])
    await advance(200)
    assert.equal(ended.length, 1)
  })

  test('a change checks all watches at once', async () => {
    const { checks, advance } = start()
    let calls = 0
    for (let n = 0; n < 1000; n++)
      checks.add(
        async () => void calls++,
        () => {},
      )
    await advance(1)
    assert.equal(calls, 0)
    checks.changed()
    await advance(1)
    assert.equal(calls, 1000)
    await advance(28)
    assert.equal(calls, 1000)
  })

  test('at most 16 checks are in flight', async () => {
    const { checks, advance } = start()
    let inFlight = 0
    let most = 0
    const finishers: (() => void)[] = []
    const check = (): Promise<void> => {
      most = Math.max(most, ++inFlight)
      return new Promise((resolve) => {
        finishers.push(() => {
          inFlight -= 1
          resolve()
        })
      })
    }
    for (let n = 0; n < 100; n++) checks.add(check, () => {})
    checks.changed()
    let finished = 0
    while (finished < 100) {
      await advance(1)
      for (const finish of finishers.splice(0)) {
        finished += 1
        finish()
      }
    }
    assert.ok(most <= 16, `${most} at once`)
  })

  test('a user whose checks are slow does not delay those of others', async () => {
    const { checks, advance, slow } = start()
    for (let n = 0; n < 500; n++) checks.add(slow(10), () => {}, 'slow')
    await advance(5)
    let calls = 0
    checks.add(
      async () => void calls++,
      () => {},
      'quick',
    )
    await advance(60)
    assert.ok(calls >= 1, 'never checked')
  })

  test('checks that never end do not block those of other users', async () => {
    const { checks, advance } = start()
    for (let user = 0; user < 40; user++) {
      for (let n = 0; n < 10; n++)
        checks.add(
          () => new Promise(() => {}),
          () => {},
          `slow ${user}`,
        )
    }
    let calls = 0
    checks.add(
      async () => void calls++,
      () => {},
      'quick',
    )
    await advance(60)
    const first = calls
    await advance(60)
    assert.ok(first >= 1 && calls > first, `checked ${first} times, then ${calls - first}`)
  })

  test('a watch that is never checked ends with 503 after the grace period', async () => {
    const { checks, advance } = start(100_000)
    const ended: number[] = []
    for (let n = 0; n < 50; n++)
      checks.add(
        () => new Promise(() => {}),
        ({ code }) => ended.push(code),
        'slow',
      )
    await advance(125)
    assert.deepEqual(ended, [])
    await advance(10)
    assert.deepEqual([ended.length, new Set(ended)], [50, new Set([503])])
    assert.equal(checks.size, 0)
  })

  test('a user without watches is removed', async () => {
    const { checks, advance } = start()
    for (let n = 0; n < 100; n++)
      checks
        .add(
          async () => {},
          () => {},
          `${n}`,
        )
        [Symbol.dispose]()
    await advance(60)
    assert.deepEqual([checks.size, checks.users], [0, 0])
  })

  test('a watch whose checks fail with 503 ends after the grace period', async () => {
    const { checks, advance } = start(100_000)
    const ended: StatusError[] = []
    const webhook = { isDown: true }
    checks.add(
      async () => {
        if (webhook.isDown) throw unavailable('not now', 1)
      },
      (why) => ended.push(why),
    )
    await advance(100)
    assert.deepEqual(ended, [])
    webhook.isDown = false
    await advance(40)
    webhook.isDown = true
    await advance(100)
    assert.deepEqual(ended, [], 'the grace period starts at the last successful check')
    await advance(70)
    assert.deepEqual(
      ended.map(({ code }) => code),
      [503],
    )
  })

  test('a watch that is disposed of during its check is not ended again', async () => {
    const { checks, advance } = start()
    const { promise, reject } = Promise.withResolvers<void>()
    const entry = checks.add(
      () => promise,
      () => assert.fail(),
    )
    checks.changed()
    await settle()
    entry[Symbol.dispose]()
    reject(unauthorized())
    await advance(1)
  })

  test('the wait for a slow check does not use up the turn of others', async () => {
    const time = { now: 0 }
    const clock = { now: () => time.now }
    const runQueue = new RunQueue({ clock })
    const checks = new AccessChecks({ log: silentLog, clock, runQueue })
    const answer = Promise.withResolvers<void>()
    checks.add(
      () => answer.promise,
      () => assert.fail(),
    )
    checks.changed()
    await settle()
    time.now += 100
    answer.resolve()
    for (let tick = 0; tick < 20; tick++) await Promise.resolve()
    assert.equal(runQueue.userLane('ada').enter(), undefined)
    await settle()
    checks.stop()
  })
})
