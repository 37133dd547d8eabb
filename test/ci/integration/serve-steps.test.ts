/**
 * Every step of the life of a request fails in turn, over real connections. Whatever fails, and
 * however (at once, later, or because the client leaves), nothing is left behind: no slot, no byte
 * of the ledger, no timer and no listener.
 */

import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { StatusError } from '../../../src/api/status.ts'
import type { RequestObserver } from '../../../src/endpoints/observe/request-tallies.ts'
import { inTime } from '../../../src/endpoints/request/timeout.ts'
import { serve } from '../../../src/endpoints/serve.ts'
import { Services } from '../../../src/endpoints/services.ts'
import { readAuditPolicy } from '../../../src/gate/audit/audit-policy.ts'
import { Auditor } from '../../../src/gate/audit/auditor.ts'
import type { Authorizer } from '../../../src/gate/decisions.ts'
import { type Authenticator, Gate } from '../../../src/gate/gate.ts'
import { type Limits, RequestLimits } from '../../../src/gate/limits/limits.ts'
import { RefusalPace } from '../../../src/gate/limits/refusal-pace.ts'
import type { Handler, Request, Response } from '../../../src/http/exchange.ts'
import { MemoryLedger } from '../../../src/lib/client-memory/ledger.ts'
import { silentLog } from '../../../src/lib/log/log.ts'
import { RunQueue } from '../../../src/lib/run-queue.ts'
import { Tracer } from '../../../src/tracing/tracer.ts'
import { eventually } from '../../support/eventually.ts'
import { type Client, openClient, type Protocol } from '../../support/http-client.ts'
import { startListener } from '../../support/listener.ts'

const ada = { name: 'ada', groups: ['system:authenticated'] }
const EVENTS = '/apis/events.k8s.io/v1/namespaces/a/events'
const failure = (): Error => new Error('planted')
const refusal = (): Error => new StatusError('BadRequest', 'planted')

/** What replaces the working parts. */
interface Parts {
  readonly find?: () => Handler | undefined
  readonly authenticate?: Authenticator['authenticate']
  readonly decide?: Authorizer['decide']
  readonly handler?: Handler
  readonly enter?: Limits['enter']
  /** Whether the audit log has written its lines. */
  readonly written?: () => Promise<void>
  readonly observer?: Partial<RequestObserver>
}

const later = async <T>(what: () => T | Promise<T>): Promise<T> => {
  await new Promise((resolve) => setTimeout(resolve, 5))
  return what()
}
const fine = async (): Promise<Response> => ({ status: 200, headers: {}, body: 'fine' })
const fails = (make: () => Error) => (): never => {
  throw make()
}

async function* brokenStream(parts: number): AsyncGenerator<string> {
  for (let n = 0; n < parts; n++) yield 'x'.repeat(10_000)
  throw failure()
}

const STEPS: Readonly<Record<string, Parts>> = {
  'finding the service throws': { find: fails(failure) },
  'there is no service': { find: () => undefined },
  'authentication throws': { authenticate: fails(refusal) },
  'authentication rejects': { authenticate: () => later(fails(refusal)) },
  'authentication has a bug': { authenticate: () => later(fails(failure)) },
  'nobody is authenticated': { authenticate: () => undefined },
  'authorization throws': { decide: fails(failure) },
  'authorization rejects': { decide: () => later(fails(failure)) },
  'authorization refuses': { decide: () => later(() => ({ verdict: 'no-opinion' as const })) },
  'admission throws': { enter: fails(failure) },
  'admission rejects': { enter: () => later(fails(refusal)) },
  'the audit log fails': { written: () => later(fails(failure)) },
  'the handler throws': { handler: fails(failure) },
  'the handler rejects': { handler: () => later(fails(refusal)) },
  'the handler rejects after its body': {
    handler: async (request) => {
      await request.body()
      throw failure()
    },
  },
  'the client has a timeout of its own': {
    handler: inTime(() => later(fine)),
  },
  'the stream fails at its start': {
    handler: async () => ({ status: 200, headers: {}, body: brokenStream(0) }),
  },
  'the stream fails later': {
    handler: async () => ({ status: 200, headers: {}, body: brokenStream(3) }),
  },
  'a header of the response is invalid': {
    handler: async () => ({ status: 200, headers: { bad: 'a\nb' }, body: '' }),
  },
  'the labels of the response have a bug': { observer: { labelsOf: fails(failure) } },
  'counting the beginning has a bug': {
    observer: { begun: fails(failure) },
    handler: async () => ({ status: 200, headers: {}, body: brokenStream(1), longRunning: true }),
  },
  'nothing fails': {},
}

function served(parts: Parts, ledger: MemoryLedger) {
  const signals = new Set<AbortSignal>()
  let ended = 0
  const handler = parts.handler ?? fine
  const services = new Services(['events'])
  services.install({
    name: 'events',
    paths: [],
    isOpenToHost: false,
    find: parts.find ?? (() => handler),
  })
  const limits = new RequestLimits({
    requestsInFlight: 20,
    mutatingRequestsInFlight: 20,
    watches: 20,
    watchesPerUser: 0,
    pace: new RefusalPace(),
  })
  const gate = new Gate({
    authenticators: [{ authenticate: parts.authenticate ?? (() => ada) }],
    authorizers: [{ decide: parts.decide ?? (() => ({ verdict: 'allow' })) }],
    allowsAnonymous: false,
    distrustsHost: true,
  })
  const audit = new Auditor({
    policy: () =>
      readAuditPolicy({
        apiVersion: 'audit.k8s.io/v1',
        kind: 'Policy',
        rules: [{ level: 'RequestResponse' }],
      }),
    write: () => {},
    written: parts.written ?? (async () => {}),
    wallTime: () => 0,
  })
  const observer: RequestObserver = {
    begun: () => {},
    ended: () => {
      ended += 1
    },
    ...parts.observer,
  }
  const serving = serve({
    runQueue: new RunQueue(),
    services,
    gate,
    limits: parts.enter === undefined ? limits : { enter: parts.enter },
    observer,
    audit,
    tracer: new Tracer({ samplingRatePerMillion: 1e6, onSpan: () => {} }),
    log: silentLog,
    clusterName: 'local',
    isTurningAway: () => false,
  })
  const recorded = (request: Request): Promise<Response> => {
    signals.add(request.signal)
    return serving(request)
  }
  const held = (): unknown => ({
    reads: limits.inFlight('readOnly'),
    writes: limits.inFlight('mutating'),
    watches: limits.watching,
    waiting: limits.inQueue('readOnly') + limits.inQueue('mutating'),
    bytes: ledger.totalBytes,
    notEnded: signals.size - ended,
    listeners: [...signals].reduce((sum, one) => sum + getEventListeners(one, 'abort').length, 0),
  })
  return { handler: recorded, held, begun: () => signals.size }
}

const NOTHING = { reads: 0, writes: 0, watches: 0, waiting: 0, bytes: 0, notEnded: 0, listeners: 0 }
const timers = (): number =>
  process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length

/** A read, a write with its body, a watch, and a write whose client leaves before its body. */
async function sendAll(client: Client, protocol: Protocol, port: number): Promise<void> {
  const ignore = (): undefined => undefined
  const body = Buffer.from('{}')
  await client.request({ path: EVENTS }).catch(ignore)
  await client.request({ path: `${EVENTS}?timeout=1ms` }).catch(ignore)
  await client.request({ path: `${EVENTS}?watch=1` }).catch(ignore)
  await client.request({ method: 'POST', path: EVENTS, body }).catch(ignore)
  using leaving = await openClient(protocol, port)
  void leaving
    .request({ method: 'POST', path: EVENTS, headers: { 'content-length': '100' }, body })
    .catch(ignore)
  await new Promise((resolve) => setTimeout(resolve, 20))
}

for (const protocol of ['h2', 'h1'] as const) {
  describe(`a failing step leaves nothing behind, ${protocol}`, () => {
    for (const [name, parts] of Object.entries(STEPS)) {
      test(name, async () => {
        const ledger = new MemoryLedger()
        const { handler, held, begun } = served(parts, ledger)
        await using listener = await startListener(handler, { ledger })
        const before = timers()
        {
          using client = await openClient(protocol, listener.port)
          await sendAll(client, protocol, listener.port)
        }
        // Some of them close their connection, so not all of the others arrive.
        assert.ok(begun() >= 2)
        await eventually('nothing is held', () => isDeepStrictEqual(held(), NOTHING)).catch(() =>
          assert.deepEqual(held(), NOTHING),
        )
        await eventually('no timer is left', () => timers() <= before)
      })
    }
  })
}
