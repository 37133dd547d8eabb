import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { bearerTokens } from '../gate/authentication/bearer-token.ts'
import { alwaysAllow } from '../gate/authorization/standing-rights.ts'
import { Gate } from '../gate/gate.ts'
import { RequestLimits } from '../gate/limits/limits.ts'
import { makeRequest } from '../gate/request.fixture.ts'
import type { Handler, Request, Response } from '../http/exchange.ts'
import { DEFAULT_LEDGER_LIMITS, MemoryLedger } from '../lib/client-memory/ledger.ts'
import { silentLog } from '../lib/log/log.ts'
import { RunQueue } from '../lib/run-queue.ts'
import type { RecordedSpan } from '../tracing/trace.ts'
import { Tracer } from '../tracing/tracer.ts'
import { serve } from './serve.ts'
import { Services } from './services.ts'

const PATH = '/apis/events.k8s.io/v1/namespaces/shop/events'
const REMOTE = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' }
const TRACEPARENT = `00-${REMOTE.traceId}-${REMOTE.spanId}-01`
const CODE = 'http.response.status_code'
const ALL = 1_000_000

function request(change: Partial<Request> = {}): Request {
  return makeRequest({
    path: PATH,
    headers: { authorization: 'Bearer ada' },
    peer: { address: '192.0.2.7' },
    ...change,
  })
}

/** Serves one path to ada, and to a monitor whose traceparent is trusted. */
function tracing(
  samplingRatePerMillion: number,
  {
    isTurningAway = false,
    ...response
  }: Partial<Response> & { readonly isTurningAway?: boolean } = {},
): { handle: Handler; spans: RecordedSpan[] } {
  const services = new Services(['one'])
  const handler: Handler = async () => ({ status: 200, headers: {}, body: '{}', ...response })
  services.install({ name: 'one', paths: [PATH], isOpenToHost: false, find: () => handler })
  const spans: RecordedSpan[] = []
  const groups = new Map([
    ['ada', ['system:authenticated']],
    ['monitor', ['system:monitoring']],
  ])
  const handle = serve({
    runQueue: new RunQueue(),
    services,
    gate: new Gate({
      authenticators: [
        bearerTokens([
          {
            userOf: (name) => {
              const found = groups.get(name)
              return found && { name, groups: found }
            },
          },
        ]),
      ],
      authorizers: [alwaysAllow],
      allowsAnonymous: false,
    }),
    limits: new RequestLimits({
      requestsInFlight: 0,
      mutatingRequestsInFlight: 0,
      watches: 0,
      watchesPerUser: 0,
    }),
    observer: {
      begun: () => {},
      ended: () => {},
      labelsOf: () => ({
        verb: 'LIST',
        group: 'events.k8s.io',
        version: 'v1',
        resource: 'events',
        subresource: '',
        scope: 'namespace',
      }),
    },
    tracer: new Tracer({ samplingRatePerMillion, onSpan: (span) => spans.push(span) }),
    log: silentLog,
    clusterName: 'local',
    isTurningAway: () => isTurningAway,
  })
  return { handle, spans }
}

function rootOf(spans: readonly RecordedSpan[]): RecordedSpan {
  return spans.find(({ kind }) => kind === 'server') ?? assert.fail('the request is not recorded')
}

function namesOf(spans: readonly RecordedSpan[]): readonly string[] {
  return spans.filter(({ kind }) => kind === 'internal').map(({ name }) => name)
}

describe('serve: the code of a recorded request', () => {
  test('is the one that was sent, not the one from the handler', async () => {
    const { handle, spans } = tracing(ALL)
    const { onEnd } = await handle(request())
    onEnd?.({ status: 504, bytes: 100 })
    assert.equal(rootOf(spans).values[CODE], 504)
    assert.equal(rootOf(spans).failure, 'server-error')
    assert.equal(rootOf(spans).values['http.response.body.size'], 100)
  })

  test('is missing when the client disconnected before the response', async () => {
    const { handle, spans } = tracing(ALL)
    const { onEnd } = await handle(request())
    onEnd?.({ status: 0, bytes: 0 })
    assert.ok(!(CODE in rootOf(spans).values))
    assert.equal(rootOf(spans).failure, 'client-disconnected')
  })

  test('is final when a watch is established: its end changes nothing', async () => {
    const { handle, spans } = tracing(ALL, { longRunning: true })
    const { onEnd } = await handle(request())
    const root = rootOf(spans)
    assert.equal(root.values[CODE], 200)
    const { endMs } = root
    onEnd?.({ status: 200, bytes: 1000 })
    assert.equal(spans.filter((span) => span === root).length, 1)
    assert.ok(!('http.response.body.size' in root.values))
    assert.equal(root.endMs, endMs)
  })
})

describe('serve: what is recorded before a request is admitted', () => {
  test('records a successful authentication of a user whose memory is used up', async () => {
    const { handle, spans } = tracing(0)
    const ledger = new MemoryLedger({ ...DEFAULT_LEDGER_LIMITS, userBytes: 1 })
    const memory = ledger.connection(() => {}).open(1000)
    const headers = { authorization: 'Bearer monitor', traceparent: TRACEPARENT }
    const { status, onEnd } = await handle(request({ headers, memory }))
    assert.equal(status, 429)
    onEnd?.({ status, bytes: 0 })
    const root = rootOf(spans)
    assert.equal(root.context.traceId, REMOTE.traceId)
    assert.equal(root.values[CODE], 429)
    const authentication = spans.find(({ name }) => name === 'authentication')
    assert.equal(authentication?.failure, undefined)
    assert.equal(authentication?.startMs, root.startMs)
    assert.deepEqual(namesOf(spans), ['authentication', 'send'])
  })

  test('a request that is turned away was not authenticated', async () => {
    const { handle, spans } = tracing(ALL, { isTurningAway: true })
    const { status, onEnd } = await handle(request())
    onEnd?.({ status, bytes: 0 })
    assert.equal(rootOf(spans).values[CODE], 429)
    assert.deepEqual(namesOf(spans), ['send'])
  })

  test('without valid credentials, no text of the client is recorded', async () => {
    const sent = { 'audit-id': 'canary', traceparent: TRACEPARENT }
    for (const [token, isKnown] of [
      ['ada', true],
      ['eve', false],
    ] as const) {
      const { handle, spans } = tracing(ALL)
      const headers = { ...sent, authorization: `Bearer ${token}` }
      const { status, onEnd } = await handle(request({ headers }))
      assert.equal(status, isKnown ? 200 : 401)
      onEnd?.({ status, bytes: 0 })
      const { values, links } = rootOf(spans)
      assert.equal(values['audit-id'], isKnown ? 'canary' : undefined)
      assert.equal(values['namespace'], isKnown ? 'shop' : undefined)
      assert.deepEqual(links, isKnown ? [REMOTE] : [])
      assert.equal(values['http.route'], '/apis/events.k8s.io/v1/namespaces/{:namespace}/events')
    }
    const { handle, spans } = tracing(ALL)
    const { status, headers, onEnd } = await handle(request({ headers: {} }))
    onEnd?.({ status, bytes: 0 })
    assert.equal(rootOf(spans).values['audit-id'], headers['audit-id'], 'an id of ours')
  })
})
