import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { forbidden, StatusError, unauthorized, unavailable } from '../api/status.ts'
import type { Request } from '../http/exchange.ts'
import type { Log, LogFields } from '../lib/log/log.ts'
import { silentLog } from '../lib/log/log.ts'
import { bearerTokens } from './authentication/bearer-token.ts'
import { NotIdentified, notIdentified, REFUSALS, type Refusal, RefusalLog } from './refusal.ts'
import { makeRequest } from './request.fixture.ts'

const PATH = '/apis/events.k8s.io/v1/events'
const attributes = { isResource: false, verb: 'get', path: '/metrics' }

function requestFrom(address: string): Request {
  return makeRequest({
    path: PATH,
    headers: { authorization: 'Bearer very-secret' },
    peer: { address },
  })
}

function started(): {
  refusals: RefusalLog
  lines: LogFields[]
  counted: Refusal[]
  pass(ms: number): void
} {
  const lines: LogFields[] = []
  const counted: Refusal[] = []
  let now = 0
  const log: Log = { ...silentLog, info: (msg, fields) => lines.push({ msg, ...fields }) }
  return {
    refusals: new RefusalLog({
      log,
      clock: { now: () => now },
      onRefused: (refusal) => counted.push(refusal),
    }),
    lines,
    counted,
    pass: (ms) => {
      now += ms
    },
  }
}

describe('NotIdentified', () => {
  test('does not send the reason to the client', () => {
    for (const refusal of REFUSALS) {
      const refused = notIdentified(refusal)
      assert.equal(refused.refusal, refusal)
      assert.deepEqual(refused.status(), unauthorized().status())
    }
    const unsure = unavailable('ask later', 1)
    assert.deepEqual(new NotIdentified('webhook-failed', unsure).status(), unsure.status())
  })

  test('no error is created for a request with invalid credentials', async () => {
    const noTokens = bearerTokens([])
    const refused = async (): Promise<unknown> => {
      try {
        return await noTokens.authenticate(requestFrom('10.0.0.1'), { cluster: 'local' })
      } catch (error) {
        return error
      }
    }
    const [first, second] = await Promise.all([refused(), refused()])
    assert.ok(first instanceof NotIdentified && Object.isFrozen(first))
    assert.equal(first, second)
  })
})

describe('RefusalLog', () => {
  test('logs one line a minute per reason, with the number of refusals that were not logged', () => {
    const { refusals, lines, counted, pass } = started()
    const refuse = (refusal: Refusal, address: string): void =>
      refusals.refused(notIdentified(refusal), requestFrom(address))
    for (let count = 1; count <= 1000; count++) refuse('bad-token', `10.0.0.${count % 256}`)
    refuse('no-credentials', '10.0.1.1')
    pass(59_999)
    refuse('bad-token', '10.0.2.1')
    pass(1)
    refuse('bad-token', '10.0.2.2')
    refuse('bad-token', '10.0.2.3')
    pass(60_000)
    refuse('bad-token', '10.0.2.4')
    const msg = 'Request without valid credentials refused'
    const sent = { method: 'GET', path: PATH }
    assert.deepEqual(lines, [
      { msg, reason: 'bad-token', peer: '10.0.0.1', ...sent, unlogged: 0 },
      { msg, reason: 'no-credentials', peer: '10.0.1.1', ...sent, unlogged: 0 },
      { msg, reason: 'bad-token', peer: '10.0.2.2', ...sent, unlogged: 1000 },
      { msg, reason: 'bad-token', peer: '10.0.2.4', ...sent, unlogged: 1 },
    ])
    assert.equal(counted.length, 1005)
  })

  test('a forbidden request is logged with its user and the missing permission', () => {
    const { refusals, lines, counted } = started()
    for (let count = 0; count < 5; count++) {
      refusals.refused(forbidden('ada', attributes), requestFrom('10.0.0.7'))
    }
    assert.deepEqual(lines, [
      {
        msg: 'Request forbidden',
        user: 'ada',
        peer: '10.0.0.7',
        message: 'forbidden: User "ada" cannot get path "/metrics"',
        unlogged: 0,
      },
    ])
    assert.deepEqual(counted, [])
  })

  test('a user with many forbidden requests does not hide another user', () => {
    const { refusals, lines, pass } = started()
    const refuse = (user: string): void =>
      refusals.refused(forbidden(user, attributes), requestFrom('10.0.0.7'))
    for (let count = 0; count < 1000; count++) refuse('noisy')
    refuse('ada')
    // An error with warnings is another object.
    refusals.refused(forbidden('bob', attributes).withWarnings(['w']), requestFrom('10.0.0.7'))
    pass(60_000)
    refuse('ada')
    refuse('noisy')
    assert.deepEqual(
      lines.map(({ user, unlogged }) => [user, unlogged]),
      [
        ['noisy', 0],
        ['ada', 0],
        ['bob', 0],
        ['ada', 0],
        ['noisy', 999],
      ],
    )
  })

  test('many users fill neither log nor memory', () => {
    const { refusals, lines, pass } = started()
    const crowd = (name: string): void => {
      for (let count = 0; count < 1000; count++) {
        const user = `${name}-${count}`.padEnd(10_000, 'x')
        refusals.refused(forbidden(user, attributes), requestFrom('10.0.0.7'))
      }
    }
    const one = 'Request forbidden'
    const many = 'Request forbidden, as are requests of more than 100 other users'
    const logged = (): unknown[] => lines.splice(0).map(({ msg, unlogged }) => [msg, unlogged])
    crowd('one')
    const first = lines.map(({ user }) => String(user))
    assert.ok(first.every((user, at) => user.startsWith(`one-${at}x`) && user.length === 256))
    assert.deepEqual(logged(), [...Array(100).fill([one, 0]), [many, 0]])
    crowd('one')
    assert.deepEqual(logged(), [])
    pass(60_000)
    // The first hundred users of the last minute, each with one unlogged refusal, count as others.
    crowd('two')
    assert.deepEqual(logged(), [...Array(100).fill([one, 0]), [many, 899 + 900 + 100]])
  })

  test('other errors are ignored', () => {
    const { refusals, lines, counted } = started()
    refusals.refused(new StatusError('NotFound', 'gone'), requestFrom('10.0.0.7'))
    refusals.refused(unavailable('no etcd', 1), requestFrom('10.0.0.7'))
    assert.deepEqual([lines, counted], [[], []])
  })
})
