import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { StatusError, tooManyRequests } from '../api/status.ts'
import { readAuditPolicy } from '../gate/audit/audit-policy.ts'
import { Auditor } from '../gate/audit/auditor.ts'
import { bearerTokens } from '../gate/authentication/bearer-token.ts'
import { Gate } from '../gate/gate.ts'
import { RequestLimits } from '../gate/limits/limits.ts'
import { makeRequest } from '../gate/request.fixture.ts'
import type { Target } from '../gate/target.ts'
import type { Handler, Request, Response } from '../http/exchange.ts'
import { silentLog } from '../lib/log/log.ts'
import { RunQueue } from '../lib/run-queue.ts'
import { lateResponse, serve } from './serve.ts'
import { Services } from './services.ts'

const PATH = '/apis/events.k8s.io/v1/namespaces/shop/events/e1'

// biome-ignore lint/suspicious/noExplicitAny: a parsed line of the audit log.
type Line = any

function request(change: Partial<Request> = {}): Request {
  return makeRequest({
    path: PATH,
    headers: { authorization: 'Bearer ada' },
    peer: { address: '192.0.2.7' },
    body: async () => Buffer.from('{}'),
    ...change,
  })
}

function auditing(written: () => Promise<void> = async () => {}): {
  auditor: Auditor
  lines: Line[]
} {
  const lines: Line[] = []
  const policy = readAuditPolicy({
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    rules: [{ level: 'RequestResponse' }],
  })
  const write = (line: string): void => void lines.push(JSON.parse(line))
  const auditor = new Auditor({ policy: () => policy, write, written, wallTime: () => 0 })
  return { auditor, lines }
}

/** Serves one path to ada, who may only get; other users are not authenticated. */
function serving(
  handler: Handler,
  audit: Auditor | undefined,
  change: { isTurningAway?: boolean; isFull?: boolean; hasSecretBodies?: boolean } = {},
): Handler {
  const services = new Services(['one'])
  const find = ({ path }: Target): Handler | undefined => (path === PATH ? handler : undefined)
  const { hasSecretBodies = false } = change
  services.install({ name: 'one', paths: [PATH], isOpenToHost: false, hasSecretBodies, find })
  const limits = new RequestLimits({
    requestsInFlight: 0,
    mutatingRequestsInFlight: 0,
    watches: 0,
    watchesPerUser: 0,
  })
  const full = {
    enter: () => Promise.reject(tooManyRequests('too many', 1)),
  }
  return serve({
    runQueue: new RunQueue(),
    services,
    gate: new Gate({
      authenticators: [
        bearerTokens([
          { userOf: (token) => (token === 'ada' ? { name: 'ada', groups: [] } : undefined) },
        ]),
      ],
      authorizers: [
        {
          decide: async (_user, { verb }) =>
            verb === 'get'
              ? { verdict: 'allow', reason: 'may read' }
              : { verdict: 'no-opinion', reason: 'may only read' },
        },
      ],
      allowsAnonymous: false,
    }),
    limits: change.isFull === true ? full : limits,
    observer: { begun: () => {}, ended: () => {} },
    audit,
    log: silentLog,
    clusterName: 'local',
    isTurningAway: () => change.isTurningAway === true,
  })
}

const fine: Handler = async () => ({
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: '{"fine":true}',
})

/** The response to a request, its audit lines, and a summary of each line. */
async function audited(
  request: Request,
  handler: Handler = fine,
  change: { isTurningAway?: boolean; isFull?: boolean } = {},
): Promise<{ response: Response; summaries: string[]; lines: Line[] }> {
  const { auditor, lines } = auditing()
  const response = await serving(handler, auditor, change)(request)
  for (const { auditID } of lines) assert.equal(auditID, response.headers['audit-id'])
  const summaries = lines.map(({ stage, user, responseStatus, annotations }) =>
    [
      stage,
      user.username ?? '-',
      responseStatus?.code ?? '-',
      annotations?.['authorization.k8s.io/decision'] ?? '-',
      annotations?.['authorization.k8s.io/reason'] ?? '-',
    ].join('|'),
  )
  return { response, summaries, lines }
}

describe('serve with an audit log', () => {
  test('secret bodies are not logged at any level', async () => {
    const logged = async (hasSecretBodies: boolean): Promise<unknown[]> => {
      const { auditor, lines } = auditing()
      const reading: Handler = async (received) => {
        await received.body()
        return fine(received)
      }
      await serving(reading, auditor, { hasSecretBodies })(request())
      return [lines.at(-1).requestObject, lines.at(-1).responseObject]
    }
    assert.deepEqual(await logged(false), [{}, { fine: true }])
    assert.deepEqual(await logged(true), [undefined, undefined])
  })

  test('a page of another origin is logged without a user', async () => {
    const { auditor, lines } = auditing()
    const headers = { authorization: 'Bearer ada', origin: 'https://evil.example', host: 'a' }
    const response = await serving(fine, auditor)(request({ headers }))
    assert.equal(response.status, 403)
    const [line] = lines
    assert.equal(lines.length, 1)
    assert.equal(line.stage, 'ResponseStarted')
    assert.equal(line.responseStatus.code, 403)
    assert.match(line.responseStatus.message, /Origin is not the host/)
  })

  test('admitted, forbidden and rate-limited requests are audited', async () => {
    const received = 'RequestReceived|ada|-|-|-'
    assert.deepEqual((await audited(request())).summaries, [
      received,
      'ResponseComplete|ada|200|allow|may read',
    ])
    assert.deepEqual((await audited(request({ method: 'DELETE' }))).summaries, [
      received,
      'ResponseComplete|ada|403|forbid|may only read',
    ])
    assert.deepEqual((await audited(request({ path: '/nowhere' }))).summaries, [
      received,
      'ResponseComplete|ada|404|allow|may read',
    ])
    assert.deepEqual((await audited(request(), fine, { isFull: true })).summaries, [
      received,
      'ResponseComplete|ada|429|allow|may read',
    ])
  })

  test('writes one line for an unauthenticated request, without reading its body', async () => {
    for (const headers of [{}, { authorization: 'Bearer s3cr3t' }]) {
      let reads = 0
      const body = async (): Promise<Buffer> => {
        reads += 1
        return Buffer.from('')
      }
      const { summaries, lines } = await audited(request({ headers, body }))
      assert.deepEqual(summaries, ['ResponseStarted|-|401|-|-'])
      assert.ok(!JSON.stringify(lines).includes('s3cr3t'))
      assert.equal(reads, 0)
    }
  })

  test('a StatusError is not a panic; another error is a panic, without its details', async () => {
    const refusing: Handler = async () => {
      throw new StatusError('Conflict', 'another write came first')
    }
    assert.equal(
      (await audited(request(), refusing)).summaries[1],
      'ResponseComplete|ada|409|allow|may read',
    )
    const { summaries, lines } = await audited(request(), async () => {
      throw new Error('s3cr3t detail')
    })
    assert.equal(summaries[1], 'Panic|ada|500|allow|may read')
    assert.ok(!JSON.stringify(lines).includes('s3cr3t'))
  })

  test('a request refused at shutdown is not audited, since its user is not authenticated', async () => {
    const { response, summaries } = await audited(request(), fine, { isTurningAway: true })
    assert.equal(response.status, 429)
    assert.deepEqual(summaries, [])
    assert.match(response.headers['audit-id'] ?? '', /^[0-9a-f-]{36}$/)
  })

  test('the body that a handler reads is audited with the response', async () => {
    const { lines } = await audited(request(), async (received) => {
      await received.body()
      return fine(received)
    })
    assert.deepEqual(lines[1].requestObject, {})
    assert.deepEqual(lines[1].responseObject, { fine: true })
  })

  test('a response waits until its lines are written', async () => {
    const gate = Promise.withResolvers<void>()
    const { auditor, lines } = auditing(() => gate.promise)
    let isDone = false
    const responding = serving(
      fine,
      auditor,
    )(request()).then(() => {
      isDone = true
    })
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(lines.length, 2)
    assert.equal(isDone, false)
    gate.resolve()
    await responding
  })

  test('the response for a late handler has the audit id of its lines', async () => {
    const { auditor, lines } = auditing()
    const received = request()
    void serving(() => new Promise(() => {}), auditor)(received)
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(lateResponse(received, auditor).headers['audit-id'], lines[0].auditID)
  })
})
