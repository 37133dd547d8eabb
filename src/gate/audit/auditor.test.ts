import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { StatusError, unauthorized } from '../../api/status.ts'
import type { Request } from '../../http/exchange.ts'
import type { Json } from '../../lib/json.ts'
import { attributesOf } from '../attributes.ts'
import type { User } from '../user.ts'
import { readAuditPolicy } from './audit-policy.ts'
import { Auditor, type AuditTrail } from './auditor.ts'

const ada: User = { name: 'ada', uid: '7', groups: ['ops'], extra: { scope: ['all'] } }
const WHEN = Date.UTC(2026, 10, 15, 4, 2, 47) + 123.456
const PATH = '/apis/events.k8s.io/v1/namespaces/shop/events'

function asked(change: Partial<Request> = {}): Request {
  return {
    method: 'GET',
    path: PATH,
    query: new URLSearchParams(),
    headers: { 'user-agent': 'kubectl/v1.36' },
    peer: { address: '192.0.2.7', isLoopback: false, clientCertificate: () => undefined },
    signal: new AbortController().signal,
    body: async () => Buffer.alloc(0),
    ...change,
  }
}

// biome-ignore lint/suspicious/noExplicitAny: whatever a line says.
type Line = any

function auditing(
  rule: Json = { level: 'Metadata' },
  request = asked(),
): { trail: AuditTrail; lines: Line[]; auditor: Auditor } {
  const policy = readAuditPolicy({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [rule] })
  const lines: Line[] = []
  let now = WHEN
  const auditor = new Auditor({
    policy: () => policy,
    write: (line) => {
      assert.match(line, /^[^\n]+\n$/)
      lines.push(JSON.parse(line))
    },
    written: async () => {},
    wallTime: () => now++,
  })
  return { trail: auditor.begin(request, attributesOf(request), 'id-1'), lines, auditor }
}

describe('auditor', () => {
  test('a request leaves a line when it arrives and one when it is answered', () => {
    const { trail, lines, auditor } = auditing({ level: 'Metadata' }, asked({ method: 'POST' }))
    trail.identified(ada)
    trail.decided('allow', 'RBAC: allowed by a role')
    trail.ended({ code: 201, createdName: 'e1' })
    const common = {
      kind: 'Event',
      apiVersion: 'audit.k8s.io/v1',
      level: 'Metadata',
      auditID: 'id-1',
      requestURI: PATH,
      verb: 'create',
      user: { username: 'ada', uid: '7', groups: ['ops'], extra: { scope: ['all'] } },
      sourceIPs: ['192.0.2.7'],
      userAgent: 'kubectl/v1.36',
      requestReceivedTimestamp: '2026-11-15T04:02:47.123456Z',
    }
    const ref = {
      resource: 'events',
      namespace: 'shop',
      apiGroup: 'events.k8s.io',
      apiVersion: 'v1',
    }
    assert.deepEqual(lines, [
      {
        ...common,
        stage: 'RequestReceived',
        objectRef: ref,
        stageTimestamp: '2026-11-15T04:02:47.123456Z',
      },
      {
        ...common,
        stage: 'ResponseComplete',
        objectRef: { ...ref, name: 'e1' },
        responseStatus: { metadata: {}, code: 201 },
        stageTimestamp: '2026-11-15T04:02:47.124456Z',
        annotations: {
          'authorization.k8s.io/decision': 'allow',
          'authorization.k8s.io/reason': 'RBAC: allowed by a role',
        },
      },
    ])
    assert.equal(auditor.eventCount, 2)
    assert.deepEqual(auditor.levels, { None: 0, Metadata: 1, Request: 0, RequestResponse: 0 })
  })

  test('members stand in the order of Kubernetes', () => {
    const { trail, lines } = auditing({ level: 'RequestResponse' })
    trail.identified(ada)
    trail.impersonated({ name: 'bob', groups: [] })
    trail.decided('allow', '')
    trail.ended({ code: 200, bodies: { request: '{}', response: '{}', isTruncated: true } })
    assert.deepEqual(Object.keys(lines[1] ?? {}), [
      'kind',
      'apiVersion',
      'level',
      'auditID',
      'stage',
      'requestURI',
      'verb',
      'user',
      'impersonatedUser',
      'sourceIPs',
      'userAgent',
      'objectRef',
      'responseStatus',
      'requestObject',
      'responseObject',
      'requestReceivedTimestamp',
      'stageTimestamp',
      'annotations',
    ])
    assert.deepEqual(lines[1]?.impersonatedUser, { username: 'bob', groups: [] })
    assert.equal(lines[1]?.annotations['audit.k8s.io/truncated'], 'true')
  })

  test('at level None nothing is written, and stages that are left out are not', () => {
    const none = auditing({ level: 'None' })
    none.trail.identified(ada)
    none.trail.started(200)
    none.trail.ended({ code: 200 })
    assert.deepEqual(none.lines, [])
    assert.equal(none.trail.isKept, false)

    const some = auditing({ level: 'Metadata', omitStages: ['RequestReceived', 'ResponseStarted'] })
    some.trail.identified(ada)
    some.trail.started(200)
    some.trail.ended({ code: 200 })
    assert.deepEqual(
      some.lines.map(({ stage }) => stage),
      ['ResponseComplete'],
    )
  })

  test('a long answer is told of when it begins and when it ends, once', () => {
    const { trail, lines } = auditing()
    trail.identified(ada)
    trail.started(200)
    trail.ended({ code: 200 })
    trail.ended({ code: 500 })
    assert.deepEqual(
      lines.map(({ stage, responseStatus }) => [stage, responseStatus?.code]),
      [
        ['RequestReceived', undefined],
        ['ResponseStarted', 200],
        ['ResponseComplete', 200],
      ],
    )
  })

  test('who did not show who it is leaves one line: without a user, and with what was tried', () => {
    const cases: readonly [Partial<Request>, string][] = [
      [{ headers: {} }, 'no credentials provided'],
      [{ headers: { authorization: 'Bearer s3cr3t' } }, 'attempted: bearer'],
      [{ headers: { authorization: 'basic s3cr3t' } }, 'attempted: basic'],
      [{ headers: { authorization: 's3cr3t' } }, 'no credentials provided'],
      [{ query: new URLSearchParams('access_token=s3cr3t') }, 'attempted: access_token'],
    ]
    for (const [change, tried] of cases) {
      const { trail, lines } = auditing({ level: 'RequestResponse' }, asked(change))
      trail.ended({ code: 401, error: unauthorized() })
      assert.equal(lines.length, 1)
      const [line] = lines
      assert.equal(line.stage, 'ResponseStarted')
      assert.deepEqual(line.user, {})
      assert.equal(line.responseStatus.message, `Authentication failed, ${tried}`)
      assert.equal(line.responseStatus.code, 401)
      assert.ok(!JSON.stringify(line).includes('s3cr3t'))
    }
  })

  test('a failure is told with its reason; one that quotes what was sent, only with the body', () => {
    const ended = (level: string, error: StatusError): Line => {
      const { trail, lines } = auditing({ level })
      trail.identified(ada)
      trail.ended({ code: error.code, error })
      return lines[1].responseStatus
    }
    assert.deepEqual(ended('Metadata', new StatusError('NotFound', 'no such event')), {
      metadata: {},
      status: 'Failure',
      message: 'no such event',
      reason: 'NotFound',
      code: 404,
    })
    const invalid = new StatusError('Invalid', 'bad value "s3cr3t"', {
      details: { causes: [{ message: 's3cr3t' }] },
    })
    assert.deepEqual(ended('Metadata', invalid), {
      metadata: {},
      status: 'Failure',
      reason: 'Invalid',
      code: 422,
    })
    assert.equal(ended('Request', invalid).message, 'bad value "s3cr3t"')
  })

  test('an error that nobody planned for is a panic', () => {
    const { trail, lines } = auditing()
    trail.identified(ada)
    trail.ended({ code: 500, isPanic: true })
    assert.equal(lines[1].stage, 'Panic')
  })

  test('addresses: what proxies say comes first, the one we saw last', () => {
    const ips = (headers: Record<string, string>): Line => {
      const { trail, lines } = auditing({ level: 'Metadata' }, asked({ headers }))
      trail.identified(ada)
      return lines[0].sourceIPs
    }
    assert.deepEqual(ips({}), ['192.0.2.7'])
    assert.deepEqual(ips({ 'x-forwarded-for': '198.51.100.1, 2001:db8::1, s3cr3t' }), [
      '198.51.100.1',
      '2001:db8::1',
      '192.0.2.7',
    ])
    assert.deepEqual(ips({ 'x-real-ip': '192.0.2.7' }), ['192.0.2.7'])
    const many = Array.from({ length: 100 }, (_, index) => `10.0.0.${index}`).join(',')
    assert.equal(ips({ 'x-forwarded-for': many }).length, 17)
  })

  test('what a client sends stays inside its member, and is cut', () => {
    const agent = '"},\n{"kind":"Event" Bearer s3cr3t'
    const headers = { 'user-agent': agent + 'x'.repeat(5000) }
    const { trail, lines } = auditing({ level: 'Metadata' }, asked({ headers, path: '/a"\nb' }))
    trail.identified({ name: '"\n', groups: ['\u2028'] })
    assert.ok(lines[0].userAgent.startsWith('"},\n{"kind":"Event" Bearer [redacted]'))
    assert.ok(lines[0].userAgent.length < 1100)
    assert.equal(lines[0].user.username, '"\n')
    assert.equal(lines[0].requestURI, '/a%22%0Ab')
    assert.equal(lines[0].objectRef, undefined)
  })

  test('tokens are left out of names, and of what is said about a user', () => {
    const jwt = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl'
    const { trail, lines } = auditing({ level: 'Metadata' }, asked({ path: `${PATH}/${jwt}` }))
    const extra = { token: ['s3cr3t'], scope: ['all'], other: [`Bearer ${jwt}`] }
    trail.identified({ ...ada, extra })
    trail.impersonated({ name: 'bob', groups: [], extra: { 'example.com/password': ['s3cr3t'] } })
    trail.ended({
      code: 404,
      error: new StatusError('NotFound', `"${jwt}" not found`, { details: { name: jwt } }),
    })
    assert.doesNotMatch(JSON.stringify(lines), /s3cr3t|eyJ|c2lnbmF0dXJl/)
    assert.equal(lines[1].objectRef.name, '[redacted]')
    assert.deepEqual(lines[1].user.extra.scope, ['all'])
    assert.deepEqual(lines[1].user.extra.token, ['[redacted]'])
  })
})
