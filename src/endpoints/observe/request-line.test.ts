import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { bearerTokens } from '../../gate/authentication/bearer-token.ts'
import { alwaysAllow } from '../../gate/authorization/standing-rights.ts'
import { Gate } from '../../gate/gate.ts'
import { RequestLimits } from '../../gate/limits/limits.ts'
import { makeRequest } from '../../gate/request.fixture.ts'
import { type LogFields, silentLog } from '../../lib/log/log.ts'
import { RunQueue } from '../../lib/run-queue.ts'
import { serve } from '../serve.ts'
import { Services } from '../services.ts'

const EVENTS = '/apis/events.k8s.io/v1/events'
const none = { requestsInFlight: 0, mutatingRequestsInFlight: 0, watches: 0, watchesPerUser: 0 }

/** The log lines of one request at a verbosity. */
async function linesOf(
  verbosity: number,
  { query, headers }: { query?: string; headers?: Record<string, string> },
): Promise<readonly LogFields[]> {
  const lines: LogFields[] = []
  const services = new Services(['one'])
  services.install({
    name: 'one',
    paths: [],
    isOpenToHost: false,
    find: () => async () => ({ status: 200, headers: {}, body: 'fine' }),
  })
  const gate = new Gate({
    authenticators: [bearerTokens([{ userOf: () => ({ name: 'ada', groups: [] }) }])],
    authorizers: [alwaysAllow],
    allowsAnonymous: false,
  })
  const handler = serve({
    runQueue: new RunQueue(),
    services,
    gate,
    limits: new RequestLimits(none),
    observer: { begun: () => {}, ended: () => {} },
    log: {
      ...silentLog,
      enabled: (level) => level <= verbosity,
      v: (_level, msg, fields) => lines.push({ msg, ...fields }),
    },
    clusterName: 'local',
    isTurningAway: () => false,
  })
  const request = makeRequest({
    path: EVENTS,
    query: new URLSearchParams(query),
    headers: { authorization: 'Bearer very-secret', 'audit-id': 'abc', ...headers },
    peer: { address: '10.0.0.7' },
  })
  await handler(request)
  for (const line of lines) assert.equal(typeof line['ms'], 'number')
  return lines.map(({ ms, ...rest }) => rest)
}

describe('the log line of a request', () => {
  const common = {
    msg: 'HTTP',
    method: 'GET',
    path: EVENTS,
    status: 200,
    peer: '10.0.0.7',
    auditId: 'abc',
  }

  test('the line has user, target and user agent, but not the query', async () => {
    const headers = { 'user-agent': `kubectl/${'1'.repeat(1000)}` }
    const userAgent = headers['user-agent'].slice(0, 256)
    assert.deepEqual(await linesOf(3, { query: 'watch=1&token=secret', headers }), [
      { ...common, verb: 'watch', user: 'ada', sender: undefined, userAgent },
    ])
    assert.deepEqual(await linesOf(3, {}), [
      { ...common, verb: 'list', user: 'ada', sender: undefined, userAgent: undefined },
    ])
  })

  test('the line has both the impersonated user and the sender', async () => {
    const headers = { 'impersonate-user': `bob${'b'.repeat(1000)}` }
    const user = headers['impersonate-user'].slice(0, 256)
    assert.deepEqual(await linesOf(3, { headers }), [
      { ...common, verb: 'list', user, sender: 'ada', userAgent: undefined },
    ])
  })

  test('the line of an unauthenticated request has no user', async () => {
    assert.deepEqual(await linesOf(3, { headers: { authorization: 'Basic abc' } }), [
      {
        ...common,
        status: 401,
        verb: 'list',
        user: undefined,
        sender: undefined,
        userAgent: undefined,
      },
    ])
  })

  test('the default verbosity logs no requests', async () => {
    assert.deepEqual(await linesOf(2, {}), [])
  })
})
