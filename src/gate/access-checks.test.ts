import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, mock, test } from 'node:test'
import { forbidden, type StatusError, unauthorized, unavailable } from '../api/status.ts'
import { silentLog } from '../lib/log.ts'
import { AccessChecks } from './access-checks.ts'

beforeEach(() => mock.timers.enable({ apis: ['setInterval'] }))
afterEach(() => mock.timers.reset())

async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
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
  /** A check that takes so long, as when a webhook is slow. */
  const slow = (seconds: number) => (): Promise<void> =>
    new Promise((resolve) => {
      late.push({ at: time.now + seconds * 1000, resolve })
    })
  return { checks, reasons, advance, slow }
}

const forbiddenNow = (): StatusError =>
  forbidden('ada', { isResource: false, verb: 'get', path: '/x' })

describe('AccessChecks', () => {
  test('each is asked at least once a minute, until it is disposed of', async () => {
    const { checks, advance } = start()
    let asked = 0
    const entry = checks.add(
      async () => void asked++,
      () => assert.fail(),
    )
    await advance(60)
    assert.ok(asked >= 1 && asked <= 2, `asked ${asked} times`)
    entry[Symbol.dispose]()
    const before = asked
    await advance(120)
    assert.deepEqual([asked, checks.size], [before, 0])
  })

  test('what loses its access ends once, with the reason; others go on', async () => {
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

  test('a change has all asked at once', async () => {
    const { checks, advance } = start()
    let asked = 0
    for (let n = 0; n < 1000; n++)
      checks.add(
        async () => void asked++,
        () => {},
      )
    await advance(1)
    assert.equal(asked, 0)
    checks.changed()
    await advance(1)
    assert.equal(asked, 1000)
    await advance(28)
    assert.equal(asked, 1000)
  })

  test('few are asked at a time, as a webhook would be', async () => {
    const { checks, advance } = start()
    let underWay = 0
    let most = 0
    const answers: (() => void)[] = []
    const ask = (): Promise<void> => {
      most = Math.max(most, ++underWay)
      return new Promise((resolve) => {
        answers.push(() => {
          underWay -= 1
          resolve()
        })
      })
    }
    for (let n = 0; n < 100; n++) checks.add(ask, () => {})
    checks.changed()
    let answered = 0
    while (answered < 100) {
      await advance(1)
      for (const answer of answers.splice(0)) {
        answered += 1
        answer()
      }
    }
    assert.ok(most <= 16, `${most} at once`)
  })

  test('a user whose checks are slow does not delay those of others', async () => {
    const { checks, advance, slow } = start()
    for (let n = 0; n < 500; n++) checks.add(slow(10), () => {}, 'slow')
    await advance(5)
    let asked = 0
    checks.add(
      async () => void asked++,
      () => {},
      'quick',
    )
    await advance(60)
    assert.ok(asked >= 1, 'never asked')
  })

  test('checks that never end do not keep those of others from being made', async () => {
    const { checks, advance } = start()
    for (let user = 0; user < 40; user++) {
      for (let n = 0; n < 10; n++)
        checks.add(
          () => new Promise(() => {}),
          () => {},
          `slow ${user}`,
        )
    }
    let asked = 0
    checks.add(
      async () => void asked++,
      () => {},
      'quick',
    )
    await advance(60)
    const first = asked
    await advance(60)
    assert.ok(first >= 1 && asked > first, `asked ${first} times, then ${asked - first}`)
  })

  test('a watch whose turn does not come ends as one of which nobody can say', async () => {
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

  test('users who have none any more are forgotten', async () => {
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

  test('where nobody can say, a watch goes on for a while only', async () => {
    const { checks, advance } = start(100_000)
    const ended: StatusError[] = []
    const unknown = { isAway: true }
    checks.add(
      async () => {
        if (unknown.isAway) throw unavailable('not now', 1)
      },
      (why) => ended.push(why),
    )
    await advance(100)
    assert.deepEqual(ended, [])
    unknown.isAway = false
    await advance(40)
    unknown.isAway = true
    await advance(100)
    assert.deepEqual(ended, [], 'the time counts from the last answer')
    await advance(70)
    assert.deepEqual(
      ended.map(({ code }) => code),
      [503],
    )
  })

  test('one that is disposed of while it is asked is not told', async () => {
    const { checks, advance } = start()
    const { promise, reject } = Promise.withResolvers<void>()
    const entry = checks.add(
      () => promise,
      () => assert.fail(),
    )
    checks.changed()
    entry[Symbol.dispose]()
    reject(unauthorized())
    await advance(1)
  })
})
