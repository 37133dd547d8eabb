import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { StatusError, tooManyRequests } from '../api/status.ts'
import { readAuditPolicy } from '../gate/audit/audit-policy.ts'
import { Auditor } from '../gate/audit/auditor.ts'
import { bearerTokens } from '../gate/authentication/bearer-token.ts'
import { Gate } from '../gate/gate.ts'
import { RequestLimits } from '../gate/limits/limits.ts'
import type { Handler, Request, Response } from '../http/exchange.ts'
import { silentLog } from '../lib/log.ts'
import { lateResponse, serve } from './serve.ts'
import { Services } from './services.ts'

const PATH = '/apis/events.k8s.io/v1/namespaces/shop/events/e1'

// biome-ignore lint/suspicious/noExplicitAny: whatever a line says.
type Line = any

function request(change: Partial<Request> = {}): Request {
  return {
    method: 'GET',
    path: PATH,
    query: new URLSearchParams(),
    headers: { authorization: 'Bearer ada' },
    peer: { address: '192.0.2.7', isLoopback: false, clientCertificate: () => undefined },
    signal: new AbortController().signal,
    body: async () => Buffer.from('{}'),
    ...change,
  }
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

/** Serves one path to ada, who may only get, and to nobody else. */
function serving(
  handler: Handler,
  audit: Auditor | undefined,
  change: { isTurningAway?: boolean; isFull?: boolean } = {},
): Handler {
  const services = new Services(['one'])
  const find = (path: string): Handler | undefined => (path === PATH ? handler : undefined)
  services.install({ name: 'one', isOpenToHost: false, find })
  const limits = new RequestLimits({
    requestsInFlight: 0,
    mutatingRequestsInFlight: 0,
    watches: 0,
    watchesPerUser: 0,
  })
  const full = {
    enter: () => Promise.reject(tooManyRequests('too many', 1)),
    enterRefused: () => ({ [Symbol.dispose]: () => {} }),
  }
  return serve({
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
    isTurningAway: () => change.isTurningAway === true,
  })
}

const fine: Handler = async () => ({
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: '{"fine":true}',
})

/** How a request went, in a word for each line. */
async function story(
  asked: Request,
  handler: Handler = fine,
  change: { isTurningAway?: boolean; isFull?: boolean } = {},
): Promise<{ answer: Response; told: string[]; lines: Line[] }> {
  const { auditor, lines } = auditing()
  const answer = await serving(handler, auditor, change)(asked)
  for (const { auditID } of lines) assert.equal(auditID, answer.headers['audit-id'])
  const told = lines.map(({ stage, user, responseStatus, annotations }) =>
    [
      stage,
      user.username ?? '-',
      responseStatus?.code ?? '-',
      annotations?.['authorization.k8s.io/decision'] ?? '-',
      annotations?.['authorization.k8s.io/reason'] ?? '-',
    ].join('|'),
  )
  return { answer, told, lines }
}

describe('serve with an audit log', () => {
  test('whoever is let in, refused, or turned away for want of room is told of', async () => {
    const received = 'RequestReceived|ada|-|-|-'
    assert.deepEqual((await story(request())).told, [
      received,
      'ResponseComplete|ada|200|allow|may read',
    ])
    assert.deepEqual((await story(request({ method: 'DELETE' }))).told, [
      received,
      'ResponseComplete|ada|403|forbid|may only read',
    ])
    assert.deepEqual((await story(request({ path: '/nowhere' }))).told, [
      received,
      'ResponseComplete|ada|404|allow|may read',
    ])
    assert.deepEqual((await story(request(), fine, { isFull: true })).told, [
      received,
      'ResponseComplete|ada|429|-|-',
    ])
  })

  test('a stranger leaves one line, and its body is not read', async () => {
    for (const headers of [{}, { authorization: 'Bearer s3cr3t' }]) {
      let reads = 0
      const body = async (): Promise<Buffer> => {
        reads += 1
        return Buffer.from('')
      }
      const { told, lines } = await story(request({ headers, body }))
      assert.deepEqual(told, ['ResponseStarted|-|401|-|-'])
      assert.ok(!JSON.stringify(lines).includes('s3cr3t'))
      assert.equal(reads, 0)
    }
  })

  test('a refusal is no bug, and a bug is a panic that tells no details', async () => {
    const refusing: Handler = async () => {
      throw new StatusError('Conflict', 'somebody was quicker')
    }
    assert.equal(
      (await story(request(), refusing)).told[1],
      'ResponseComplete|ada|409|allow|may read',
    )
    const { told, lines } = await story(request(), async () => {
      throw new Error('s3cr3t detail')
    })
    assert.equal(told[1], 'Panic|ada|500|allow|may read')
    assert.ok(!JSON.stringify(lines).includes('s3cr3t'))
  })

  test('who is turned away at shutdown is not told of, as nobody has asked who it is', async () => {
    const { answer, told } = await story(request(), fine, { isTurningAway: true })
    assert.equal(answer.status, 429)
    assert.deepEqual(told, [])
    assert.match(answer.headers['audit-id'] ?? '', /^[0-9a-f-]{36}$/)
  })

  test('the body that a handler reads is kept with the answer it gave', async () => {
    const { lines } = await story(request(), async (asked) => {
      await asked.body()
      return fine(asked)
    })
    assert.deepEqual(lines[1].requestObject, {})
    assert.deepEqual(lines[1].responseObject, { fine: true })
  })

  test('an answer waits for its lines', async () => {
    const gate = Promise.withResolvers<void>()
    const { auditor, lines } = auditing(() => gate.promise)
    let isAnswered = false
    const answer = serving(
      fine,
      auditor,
    )(request()).then(() => {
      isAnswered = true
    })
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(lines.length, 2)
    assert.equal(isAnswered, false)
    gate.resolve()
    await answer
  })

  test('an answer given for a handler that is late has the id of its lines', async () => {
    const { auditor, lines } = auditing()
    const asked = request()
    void serving(() => new Promise(() => {}), auditor)(asked)
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(lateResponse(asked, auditor).headers['audit-id'], lines[0].auditID)
  })
})
