import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { StatusError, tooManyRequests } from '../api/status.ts'
import { bearerTokens } from '../gate/authentication/bearer-token.ts'
import { alwaysAllow } from '../gate/authorization/standing-rights.ts'
import { Gate } from '../gate/gate.ts'
import { type Limits, RequestLimits } from '../gate/limits/limits.ts'
import { makeRequest } from '../gate/request.fixture.ts'
import { AUTHENTICATED } from '../gate/user.ts'
import type { Handler, Request, Response } from '../http/exchange.ts'
import { ExchangeError } from '../http/exchange.ts'
import { MemoryLedger } from '../lib/client-memory/ledger.ts'
import { silentLog } from '../lib/log/log.ts'
import { RunQueue } from '../lib/run-queue.ts'
import type { RequestObserver } from './observe/request-tallies.ts'
import { inTime } from './request/timeout.ts'
import { lateResponse, serve } from './serve.ts'
import { Services } from './services.ts'

/** From this host, unless `isRemote`. */
function request(path: string, change: Partial<Request> & { isRemote?: boolean } = {}): Request {
  const { isRemote = false, ...rest } = change
  return makeRequest({ path, peer: { isLoopback: !isRemote }, ...rest })
}

function serving(
  handler: Handler,
  options: {
    missing?: boolean
    isShuttingDown?: boolean
    limits?: Limits
    observer?: RequestObserver
  } = {},
): Handler {
  const services = new Services(['one', 'probe', ...(options.missing === true ? ['two'] : [])])
  services.install({
    name: 'one',
    paths: ['/one'],
    isOpenToHost: true,
    find: ({ path }) => (path.startsWith('/one') ? handler : undefined),
  })
  services.install({
    name: 'probe',
    paths: ['/livez'],
    isOpenToHost: true,
    isAboutServer: true,
    isServedAtShutdown: true,
    find: ({ path }) => (path === '/livez' ? handler : undefined),
  })
  return serve({
    runQueue: new RunQueue(),
    services,
    gate: new Gate({
      authenticators: [bearerTokens([])],
      authorizers: [alwaysAllow],
      allowsAnonymous: false,
    }),
    limits: options.limits ?? unlimited,
    observer: options.observer ?? { begun: () => {}, ended: () => {} },
    log: silentLog,
    clusterName: 'local',
    isTurningAway: () => options.isShuttingDown === true,
  })
}

const unlimited = new RequestLimits({
  requestsInFlight: 0,
  mutatingRequestsInFlight: 0,
  watches: 0,
  watchesPerUser: 0,
})
/** Limits and an observer that record what happens to slots and responses. */
function recordedSlots(): {
  limits: Limits
  observer: RequestObserver
  events: string[]
  ended: [number, number][]
} {
  const events: string[] = []
  const ended: [number, number][] = []
  const record = (event: string) => (): void => void events.push(event)
  const entry = { settle: record('settled'), [Symbol.dispose]: record('released') }
  const limits: Limits = {
    enter: () => {
      events.push('acquired')
      return entry
    },
  }
  const observer: RequestObserver = {
    begun: () => {},
    ended: (_attributes, { status: code, bytes }) => ended.push([code, bytes]),
  }
  return { limits, observer, events, ended }
}
const fine: Handler = async () => ({ status: 200, headers: {}, body: 'fine' })
const throwing = (error: unknown): Handler =>
  serving(async () => {
    throw error
  })

describe('serve', () => {
  test('a request about the server itself asks for a slot of its own', async () => {
    const asked: unknown[] = []
    const { limits, observer } = recordedSlots()
    const enter: Limits['enter'] = (entrant) => {
      asked.push([entrant.target.path, entrant.isAboutServer])
      return limits.enter(entrant)
    }
    const handler = serving(fine, { limits: { ...limits, enter }, observer })
    for (const path of ['/one', '/livez']) await handler(request(path))
    assert.deepEqual(asked, [
      ['/one', false],
      ['/livez', true],
    ])
  })

  test('a response has Audit-Id and Cache-Control', async () => {
    const { headers } = await serving(fine)(request('/one'))
    assert.match(headers['audit-id'] ?? '', /^[0-9a-f-]{36}$/)
    assert.equal(headers['cache-control'], 'no-cache, private')
  })

  test("the response repeats the caller's Audit-Id if it is valid", async () => {
    const sentBack = async (id: string): Promise<string | undefined> =>
      (await serving(fine)(request('/one', { headers: { 'audit-id': id } }))).headers['audit-id']
    assert.equal(await sentBack('abc-123'), 'abc-123')
    assert.notEqual(await sentBack('a b'), 'a b')
    assert.notEqual(await sentBack('x'.repeat(129)), 'x'.repeat(129))
  })

  test('an unauthenticated client gets 401 for known and unknown paths, and its connection is closed', async () => {
    for (const path of ['/one', '/nowhere']) {
      const response = await serving(fine)(request(path, { isRemote: true }))
      assert.equal(response.status, 401)
      assert.equal(response.closeConnection, true)
    }
  })

  test('a page of another origin is refused before its credentials are read', async () => {
    const slots = recordedSlots()
    const failed: unknown[] = []
    const observer = { ...slots.observer, failed: (_: unknown, why: unknown) => failed.push(why) }
    const handler = serving(fine, { ...slots, observer })
    for (const path of ['/one', '/livez', '/nowhere']) {
      const headers = { 'sec-fetch-site': 'cross-site', authorization: 'Bearer wrong' }
      const response = await handler(request(path, { headers }))
      assert.equal(response.status, 403)
      assert.match(status(response).message, /web pages of other origins/)
    }
    assert.deepEqual(slots.events, [])
    assert.deepEqual(failed, ['Forbidden', 'Forbidden', 'Forbidden'])
  })

  test('an unknown path is a 404, and a 503 while services are missing', async () => {
    assert.equal((await serving(fine)(request('/nowhere'))).status, 404)
    const early = await serving(fine, { missing: true })(request('/nowhere'))
    assert.equal(early.status, 503)
    assert.equal(early.headers['retry-after'], '5')
    assert.equal(status(early).details.retryAfterSeconds, 5)
  })

  test('an error of a handler becomes a Status', async () => {
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
      const response = await throwing(thrown)(request('/one'))
      assert.equal(response.status, code)
      assert.equal(status(response).reason, reason)
      assert.equal(status(response).code, code)
      assert.ok(!String(response.body).includes('secret detail'))
    }
  })

  test('a 413 names the limit in the words of Kubernetes', async () => {
    const response = await throwing(new ExchangeError('too-large', 'limit is 3145728'))(
      request('/one'),
    )
    assert.equal(status(response).message, 'Request entity too large: limit is 3145728')
  })

  test('sends Retry-After for a late read, but not for a late write', () => {
    assert.equal(lateResponse(request('/one')).headers['retry-after'], '1')
    const write = lateResponse(request('/one', { method: 'POST' }))
    assert.equal(write.status, 504)
    assert.equal(write.headers['retry-after'], undefined)
  })

  test('during shutdown all requests except probes get 429', async () => {
    const handler = serving(fine, { isShuttingDown: true })
    const response = await handler(request('/one'))
    assert.equal(response.status, 429)
    assert.equal(response.headers['retry-after'], '5')
    assert.equal((await handler(request('/livez'))).status, 200)
  })

  test('the slot is given back before a response is sent, whatever its status', async () => {
    const refuse = async (): Promise<Response> => {
      throw new StatusError('BadRequest', 'no')
    }
    for (const [answer, code] of [
      [fine, 200],
      [refuse, 400],
    ] as const) {
      const slots = recordedSlots()
      const response = await serving(answer, slots)(request('/one'))
      assert.deepEqual(slots.events, ['acquired', 'settled'])
      response.onEnd?.({ status: code, bytes: 4 })
      assert.deepEqual(slots.events, ['acquired', 'settled', 'released'])
      assert.deepEqual(slots.ended, [[code, 4]])
    }
  })

  test('a streamed response holds its slot until it only waits for its client', async () => {
    const slots = recordedSlots()
    const streaming: Handler = async () => ({
      status: 200,
      headers: {},
      body: (async function* () {
        yield 'part'
      })(),
    })
    const response = await serving(streaming, slots)(request('/one'))
    assert.deepEqual(slots.events, ['acquired'])
    response.onIdle?.()
    assert.deepEqual(slots.events, ['acquired', 'settled'])
  })

  test('a client that is not permitted, or whose body has not arrived, takes no slot', async () => {
    const slots = recordedSlots()
    const handler = serving(fine, slots)
    assert.equal((await handler(request('/one', { isRemote: true }))).status, 401)
    assert.deepEqual(slots.events, [])

    const body = Promise.withResolvers<void>()
    const received = (): Promise<void> => body.promise
    const sent = handler(request('/one', { method: 'POST', received }))
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(slots.events, [])
    body.resolve()
    assert.equal((await sent).status, 200)
    assert.deepEqual(slots.events, ['acquired', 'settled'])
  })

  test('a body that arrives too slowly is a 408 with Retry-After', async () => {
    const response = await throwing(new ExchangeError('too-slow', 'too slow'))(request('/one'))
    assert.deepEqual([response.status, response.headers['retry-after']], [408, '1'])
  })

  test('does not give back the slot of a handler that still runs after a timeout', async () => {
    const slots = recordedSlots()
    const working = Promise.withResolvers<Response>()
    const endpoint = inTime(() => working.promise)
    const handler = serving((received) => endpoint(received), slots)
    const response = await handler(request('/one', { query: new URLSearchParams('timeout=1ms') }))
    assert.equal(response.status, 504)
    response.onEnd?.({ status: 504, bytes: 4 })
    assert.deepEqual(slots.events, ['acquired'])
    working.resolve({ status: 200, headers: {}, body: 'late' })
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(slots.events, ['acquired', 'released'])
  })

  test('a watch counts as a request until its initial events are sent', async () => {
    const { promise: settled, resolve: settle } = Promise.withResolvers<void>()
    const slots = recordedSlots()
    const watch = { status: 200, headers: {}, body: '', longRunning: true }
    const response = await serving(async () => ({ ...watch, settled }), slots)(request('/one'))
    assert.deepEqual(slots.events, ['acquired'])
    settle()
    await settled
    assert.deepEqual(slots.events, ['acquired', 'settled'])
    response.onEnd?.({ status: 200, bytes: 4 })
    assert.deepEqual(slots.events, ['acquired', 'settled', 'released'])

    const quick = recordedSlots()
    await serving(async () => watch, quick)(request('/one'))
    assert.deepEqual(quick.events, ['acquired', 'settled'])
  })

  test('the list at the start of a watch is observed when it has been sent', async () => {
    for (const isWatchList of [true, false]) {
      const { promise: settled, resolve: settle } = Promise.withResolvers<void>()
      const listed: string[] = []
      const observer = {
        ...{ begun: () => {}, ended: () => {} },
        listed: ({ path }: { readonly path: string }, ms: number) =>
          listed.push(`${path} ${ms >= 0}`),
      }
      const watch = { status: 200, headers: {}, body: '', longRunning: true, isWatchList, settled }
      await serving(async () => watch, { observer })(request('/one'))
      assert.deepEqual(listed, [])
      settle()
      await settled
      assert.deepEqual(listed, isWatchList ? ['/one true'] : [])
    }
  })

  test('a request that gets no slot is a 429 with Retry-After', async () => {
    const refusal = tooManyRequests('Too many requests, please try again later.', 3)
    const full = {
      enter: () => Promise.reject(refusal),
    }
    const response = await serving(fine, { limits: full })(request('/one'))
    assert.equal(response.status, 429)
    assert.equal(response.headers['retry-after'], '3')
    assert.equal(status(response).reason, 'TooManyRequests')
  })

  test('a Status is indented for curl and compact for other clients', async () => {
    const refused = throwing(new StatusError('BadRequest', 'no'))
    const plain = await refused(request('/one'))
    assert.ok(String(plain.body).endsWith('}\n'))
    const curl = await refused(request('/one', { headers: { 'user-agent': 'curl/8' } }))
    assert.ok(String(curl.body).startsWith('{\n  "kind": "Status"'))
    const query = new URLSearchParams({ pretty: 'false' })
    const overruled = await refused(request('/one', { headers: { 'user-agent': 'curl/8' }, query }))
    assert.equal(overruled.body, plain.body)
  })
})

function status(response: Response) {
  return JSON.parse(String(response.body))
}

describe('the memory charged for a watch', () => {
  const GROUP = 'g'.repeat(1000)
  const ada = { name: 'ada', groups: ['dev', AUTHENTICATED], extra: { scopes: ['s'.repeat(500)] } }
  const handler = serve({
    runQueue: new RunQueue(),
    services: new Services([]),
    gate: new Gate({
      authenticators: [bearerTokens([{ userOf: () => ada }])],
      authorizers: [alwaysAllow],
      allowsAnonymous: false,
    }),
    limits: unlimited,
    observer: { begun: () => {}, ended: () => {} },
    log: silentLog,
    clusterName: 'local',
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

  test('includes the token and the identity that are retained to recheck access', async () => {
    const bytes = await charged([])
    assert.ok(bytes >= 300 + 500 && bytes < 4096, `${bytes}`)
  })

  test('includes the impersonated user, the groups and the path', async () => {
    const plain = await charged([])
    const groups = Array.from({ length: 100 }, (_, n) => ['impersonate-group', GROUP + n] as const)
    const impersonated = await charged([['impersonate-user', 'bob'], ...groups])
    assert.ok(impersonated - plain >= 100_000, `${impersonated - plain}`)
    assert.ok((await charged([], 'n'.repeat(2001))) - plain >= 2000, 'the path is charged')
  })
})
