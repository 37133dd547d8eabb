import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { StatusError, tooManyRequests } from '../api/status.ts'
import { bearerTokens } from '../gate/authentication/bearer-token.ts'
import { alwaysAllow } from '../gate/authorization/always-allow.ts'
import { type Caller, Gate } from '../gate/gate.ts'
import { type Limits, RequestLimits } from '../gate/limits/limits.ts'
import { AUTHENTICATED } from '../gate/user.ts'
import type { Handler, Request, Response } from '../http/exchange.ts'
import { ExchangeError } from '../http/exchange.ts'
import { MemoryLedger } from '../lib/ledger.ts'
import { silentLog } from '../lib/log.ts'
import type { RequestObserver } from './request-tallies.ts'
import { lateResponse, serve } from './serve.ts'
import { Services } from './services.ts'
import { inTime } from './timeout.ts'

/** A request as a literal: from this host unless said otherwise. */
function request(path: string, change: Partial<Request> & { isRemote?: boolean } = {}): Request {
  const { isRemote = false, ...rest } = change
  return {
    method: 'GET',
    path,
    query: new URLSearchParams(),
    headers: {},
    peer: { address: '', isLoopback: !isRemote, clientCertificate: () => undefined },
    signal: new AbortController().signal,
    body: async () => Buffer.alloc(0),
    ...rest,
  }
}

function serving(
  handler: Handler,
  options: {
    missing?: boolean
    turnedAway?: boolean
    limits?: Limits
    observer?: RequestObserver
  } = {},
): Handler {
  const services = new Services(options.missing === true ? ['one', 'two'] : ['one'])
  services.install({
    name: 'one',
    isOpenToHost: true,
    find: (path) => (path.startsWith('/one') || path === '/livez' ? handler : undefined),
  })
  return serve({
    services,
    gate: new Gate({
      authenticators: [bearerTokens([])],
      authorizers: [alwaysAllow],
      allowsAnonymous: false,
    }),
    limits: options.limits ?? unlimited,
    observer: options.observer ?? { begun: () => {}, ended: () => {} },
    log: silentLog,
    isTurningAway: () => options.turnedAway === true,
  })
}

const unlimited = new RequestLimits({
  requestsInFlight: 0,
  mutatingRequestsInFlight: 0,
  watches: 0,
  watchesPerUser: 0,
})
/** Notes what becomes of places, and of answers. */
function placesOf(): {
  limits: Limits
  observer: RequestObserver
  told: string[]
  ended: [number, number][]
} {
  const told: string[] = []
  const ended: [number, number][] = []
  const tell = (what: string) => (): void => void told.push(what)
  const entry = { settle: tell('settled'), [Symbol.dispose]: tell('left') }
  const limits: Limits = {
    enter: () => {
      told.push('entered')
      return entry
    },
    enterRefused: () => {
      told.push('refused')
      return { [Symbol.dispose]: tell('told') }
    },
  }
  const observer: RequestObserver = {
    begun: () => {},
    ended: (_asked, { status: code, bytes }) => ended.push([code, bytes]),
  }
  return { limits, observer, told, ended }
}
const stranger: Caller = { user: { name: 'ada', groups: [] }, authorize: async () => {} }
const fine: Handler = async () => ({ status: 200, headers: {}, body: 'fine' })
const throwing = (error: unknown): Handler =>
  serving(async () => {
    throw error
  })

describe('serve', () => {
  test('an answer carries Audit-Id and Cache-Control', async () => {
    const { headers } = await serving(fine)(request('/one'))
    assert.match(headers['audit-id'] ?? '', /^[0-9a-f-]{36}$/)
    assert.equal(headers['cache-control'], 'no-cache, private')
  })

  test("the caller's Audit-Id comes back when it is a sensible one", async () => {
    const ask = async (id: string): Promise<string | undefined> =>
      (await serving(fine)(request('/one', { headers: { 'audit-id': id } }))).headers['audit-id']
    assert.equal(await ask('abc-123'), 'abc-123')
    assert.notEqual(await ask('a b'), 'a b')
    assert.notEqual(await ask('x'.repeat(129)), 'x'.repeat(129))
  })

  test('a stranger gets 401 for known and unknown paths alike, and the connection is closed', async () => {
    for (const path of ['/one', '/nowhere']) {
      const answer = await serving(fine)(request(path, { isRemote: true }))
      assert.equal(answer.status, 401)
      assert.equal(answer.closeConnection, true)
    }
  })

  test('an unknown path is 404, and 503 as long as services are missing', async () => {
    assert.equal((await serving(fine)(request('/nowhere'))).status, 404)
    const early = await serving(fine, { missing: true })(request('/nowhere'))
    assert.equal(early.status, 503)
    assert.equal(early.headers['retry-after'], '5')
    assert.equal(status(early).details.retryAfterSeconds, 5)
  })

  test('what a handler throws becomes a Status', async () => {
    const cases: readonly [unknown, number, string][] = [
      [new StatusError('BadRequest', 'no'), 400, 'BadRequest'],
      [new ExchangeError('too-large', 'limit is 3145728'), 413, 'RequestEntityTooLarge'],
      [new ExchangeError('malformed', 'no chunks'), 400, 'BadRequest'],
      [new ExchangeError('timeout', ''), 504, 'Timeout'],
      [new ExchangeError('shutdown', ''), 503, 'ServiceUnavailable'],
      [new Error('secret detail'), 500, 'InternalError'],
      ['not even an error', 500, 'InternalError'],
    ]
    for (const [thrown, code, reason] of cases) {
      const answer = await throwing(thrown)(request('/one'))
      assert.equal(answer.status, code)
      assert.equal(status(answer).reason, reason)
      assert.equal(status(answer).code, code)
      assert.ok(!String(answer.body).includes('secret detail'))
    }
  })

  test('413 says the limit in the words clients know', async () => {
    const answer = await throwing(new ExchangeError('too-large', 'limit is 3145728'))(
      request('/one'),
    )
    assert.equal(status(answer).message, 'Request entity too large: limit is 3145728')
  })

  test('a late read may be sent again, a late write not', () => {
    assert.equal(lateResponse(request('/one')).headers['retry-after'], '1')
    const write = lateResponse(request('/one', { method: 'POST' }))
    assert.equal(write.status, 504)
    assert.equal(write.headers['retry-after'], undefined)
  })

  test('on the way out: 429 for all but probes', async () => {
    const handler = serving(fine, { turnedAway: true })
    const answer = await handler(request('/one'))
    assert.equal(answer.status, 429)
    assert.equal(answer.headers['retry-after'], '5')
    assert.equal((await handler(request('/livez'))).status, 200)
  })

  test('a place is kept until the answer has been sent', async () => {
    const places = placesOf()
    const answer = await serving(fine, places)(request('/one'))
    assert.deepEqual(places.told, ['entered'])
    answer.onEnd?.({ status: 200, bytes: 4 })
    assert.deepEqual(places.told, ['entered', 'left'])
    assert.deepEqual(places.ended, [[200, 4]])
  })

  test('a place is kept until an error has been sent', async () => {
    const places = placesOf()
    const handler = serving(async () => {
      throw new StatusError('BadRequest', 'no')
    }, places)
    const answer = await handler(request('/one'))
    assert.deepEqual(places.told, ['entered'])
    answer.onEnd?.({ status: 400, bytes: 4 })
    assert.deepEqual(places.told, ['entered', 'left'])
    assert.deepEqual(places.ended, [[400, 4]])
  })

  test('a stranger takes a place of its own while it is told', async () => {
    const places = placesOf()
    const handler = serving(fine, places)
    const answer = await handler(request('/one', { isRemote: true }))
    assert.equal(answer.status, 401)
    assert.deepEqual(places.told, ['refused'])
    answer.onEnd?.({ status: 401, bytes: 4 })
    assert.deepEqual(places.told, ['refused', 'told'])
  })

  test('a place is kept by what goes on behind an answer that came too late', async () => {
    const places = placesOf()
    const working = Promise.withResolvers<Response>()
    const path = { kind: 'everything', isWatchPath: false } as const
    const endpoint = inTime(() => working.promise)
    const handler = serving((asked) => endpoint(asked, path, stranger), places)
    const answer = await handler(request('/one', { query: new URLSearchParams('timeout=1ms') }))
    assert.equal(answer.status, 504)
    answer.onEnd?.({ status: 504, bytes: 4 })
    assert.deepEqual(places.told, ['entered'])
    working.resolve({ status: 200, headers: {}, body: 'late' })
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(places.told, ['entered', 'left'])
  })

  test('a watch counts as a request until it has begun', async () => {
    const { promise: settled, resolve: settle } = Promise.withResolvers<void>()
    const places = placesOf()
    const watch = { status: 200, headers: {}, body: '', longRunning: true }
    const answer = await serving(async () => ({ ...watch, settled }), places)(request('/one'))
    assert.deepEqual(places.told, ['entered'])
    settle()
    await settled
    assert.deepEqual(places.told, ['entered', 'settled'])
    answer.onEnd?.({ status: 200, bytes: 4 })
    assert.deepEqual(places.told, ['entered', 'settled', 'left'])

    const quick = placesOf()
    await serving(async () => watch, quick)(request('/one'))
    assert.deepEqual(quick.told, ['entered', 'settled'])
  })

  test('a request for which there is no place is told when to come back', async () => {
    const refusal = tooManyRequests('Too many requests, please try again later.', 3)
    const full = {
      enter: () => Promise.reject(refusal),
      enterRefused: () => ({ [Symbol.dispose]: () => {} }),
    }
    const answer = await serving(fine, { limits: full })(request('/one'))
    assert.equal(answer.status, 429)
    assert.equal(answer.headers['retry-after'], '3')
    assert.equal(status(answer).reason, 'TooManyRequests')
  })

  test('a refusal for which there is no room has no body for a user and cuts a stranger, and both are counted', async () => {
    const { observer, ended } = placesOf()
    const limits = {
      enter: () => Promise.reject(tooManyRequests('Too many requests', 3)),
      enterRefused: () => undefined,
    }
    const handler = serving(fine, { limits, observer })
    const user = await handler(request('/one'))
    const unknown = await handler(request('/one', { isRemote: true }))
    assert.deepEqual([user.status, user.body, user.dropsConnection], [429, '', undefined])
    assert.equal(user.headers['retry-after'], '10')
    assert.equal(unknown.dropsConnection, true)
    for (const { onEnd } of [user, unknown]) onEnd?.({ status: 429, bytes: 0 })
    assert.deepEqual(ended, [
      [429, 0],
      [429, 0],
    ])
  })

  test('a Status is indented for people and compact for programs', async () => {
    const refused = throwing(new StatusError('BadRequest', 'no'))
    const plain = await refused(request('/one'))
    assert.ok(String(plain.body).endsWith('}\n'))
    const curl = await refused(request('/one', { headers: { 'user-agent': 'curl/8' } }))
    assert.ok(String(curl.body).startsWith('{\n  "kind": "Status"'))
    const asked = new URLSearchParams({ pretty: 'false' })
    const overruled = await refused(
      request('/one', { headers: { 'user-agent': 'curl/8' }, query: asked }),
    )
    assert.equal(overruled.body, plain.body)
  })
})

function status(response: Response) {
  return JSON.parse(String(response.body))
}

describe('what is charged for a watch', () => {
  const GROUP = 'g'.repeat(1000)
  const ada = { name: 'ada', groups: ['dev', AUTHENTICATED], extra: { scopes: ['s'.repeat(500)] } }
  const handler = serve({
    services: new Services([]),
    gate: new Gate({
      authenticators: [bearerTokens([{ userOf: () => ada }])],
      authorizers: [alwaysAllow],
      allowsAnonymous: false,
    }),
    limits: unlimited,
    observer: { begun: () => {}, ended: () => {} },
    log: silentLog,
    isTurningAway: () => false,
  })

  async function charged(sent: readonly (readonly [string, string])[], namespace = 'a') {
    const ledger = new MemoryLedger()
    const all = [['authorization', `Bearer ${'t'.repeat(300)}`] as const, ...sent]
    await handler(
      request(`/apis/events.k8s.io/v1/namespaces/${namespace}/events`, {
        query: new URLSearchParams('watch=1'),
        headers: Object.fromEntries(all),
        rawHeaders: all.flat(),
        memory: ledger.connection(() => {}).open(0),
      }),
    )
    return ledger.held.credentials
  }

  test('includes the token and the identity that are kept to check it again', async () => {
    const bytes = await charged([])
    assert.ok(bytes >= 300 + 500 && bytes < 4096, `${bytes}`)
  })

  test('includes whom it impersonates and what that takes', async () => {
    const plain = await charged([])
    const groups = Array.from({ length: 100 }, (_, n) => ['impersonate-group', GROUP + n] as const)
    const impersonated = await charged([['impersonate-user', 'bob'], ...groups])
    assert.ok(impersonated - plain >= 100_000, `${impersonated - plain}`)
    assert.ok((await charged([], 'n'.repeat(2001))) - plain >= 2000, 'the path is kept')
  })
})
