import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Log, type LogFields, silentLog } from '../../lib/log/log.ts'
import { RefusedCallers } from './refused-callers.ts'

function started(): { callers: RefusedCallers; lines: LogFields[]; pass(ms: number): void } {
  const lines: LogFields[] = []
  let now = 0
  const log: Log = { ...silentLog, info: (msg, fields) => lines.push({ msg, ...fields }) }
  return {
    callers: new RefusedCallers({ log, clock: { now: () => now } }),
    lines,
    pass: (ms) => {
      now += ms
    },
  }
}

const counts = (callers: RefusedCallers): (readonly [string, string, number])[] =>
  [...callers.all()].map(({ user, controller, count }) => [user, controller, count])

describe('refused callers', () => {
  test('refusals are counted by user and controller, and logged once a minute for each', () => {
    const { callers, lines, pass } = started()
    for (let count = 0; count < 5; count++) callers.refused('ada', 'web', 'User')
    callers.refused('ada', '', 'readOnly: time-out')
    pass(60_000)
    callers.refused('ada', 'web', 'Namespace')
    assert.deepEqual(counts(callers), [
      ['ada', '', 1],
      ['ada', 'web', 6],
    ])
    const msg = 'Request refused by a limit'
    assert.deepEqual(lines, [
      { msg, user: 'ada', controller: 'web', limit: 'User', unlogged: 0 },
      { msg, user: 'ada', controller: '', limit: 'readOnly: time-out', unlogged: 0 },
      { msg, user: 'ada', controller: 'web', limit: 'Namespace', unlogged: 4 },
    ])
  })

  test('gives a user that invents controllers ten entries, and does not evict others', () => {
    const { callers } = started()
    for (let index = 0; index < 1000; index++) callers.refused('eve', `c${index}`, 'User')
    callers.refused('ada', 'web', 'User')
    const all = counts(callers)
    assert.equal(all.length, 12)
    assert.deepEqual(all.slice(-2), [
      ['eve', 'other', 990],
      ['ada', 'web', 1],
    ])
  })

  test('entries are limited in number and length, and the sum stays right', () => {
    const { callers, lines } = started()
    const long = 'x'.repeat(10_000)
    for (let index = 0; index < 5000; index++) callers.refused(`u${index}${long}`, long, 'User')
    const all = counts(callers)
    assert.ok(all.length <= 202, `${all.length}`)
    assert.equal(
      all.reduce((sum, [, , count]) => sum + count, 0),
      5000,
    )
    assert.ok(all.every(([user, controller]) => user.length <= 128 && controller.length <= 128))
    assert.deepEqual(all.at(-1), ['other', 'other', 4800])
    assert.ok(lines.length <= 202, `${lines.length}`)
  })

  test('a caller that was not refused for an hour is evicted for a new one', () => {
    const { callers, pass } = started()
    for (let index = 0; index < 200; index++) callers.refused(`u${index}`, '', 'User')
    pass(30 * 60_000)
    callers.refused('u0', '', 'User')
    pass(30 * 60_000)
    callers.refused('new', '', 'User')
    assert.deepEqual(counts(callers).slice(-2), [
      ['u0', '', 2],
      ['new', '', 1],
    ])
  })

  test('a name that is a token is redacted', () => {
    const { callers, lines } = started()
    const jwt = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl'
    callers.refused(jwt, jwt, 'User')
    assert.doesNotMatch(JSON.stringify([counts(callers), lines]), /eyJ/)
  })
})
