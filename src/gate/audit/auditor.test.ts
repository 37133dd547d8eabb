import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { StatusError, unauthorized } from '../../api/status.ts'
import type { Request } from '../../http/exchange.ts'
import type { Json } from '../../lib/json.ts'
import { makeRequest } from '../request.fixture.ts'
import { readTarget } from '../target.ts'
import { ANONYMOUS, type User } from '../user.ts'
import { readAuditPolicy } from './audit-policy.ts'
import type { AuditTrail } from './auditor.ts'
import { Auditor } from './auditor.ts'

const ada: User = { name: 'ada', uid: '7', groups: ['ops'], extra: { scope: ['all'] } }
const WHEN = Date.UTC(2026, 10, 15, 4, 2, 47) + 123.456
const PATH = '/apis/events.k8s.io/v1/namespaces/shop/events'

function requestWith(change: Partial<Request> = {}): Request {
  return makeRequest({
    path: PATH,
    headers: { 'user-agent': 'kubectl/v1.36' },
    peer: { address: '192.0.2.7' },
    ...change,
  })
}

// biome-ignore lint/suspicious/noExplicitAny: parsed JSON of any line.
type Line = any

interface Auditing {
  readonly trail: AuditTrail
  readonly lines: Line[]
  readonly auditor: Auditor
  /** The last line. */
  readonly lastText: () => string
}

function auditing(
  rule: Json = { level: 'Metadata' },
  request = requestWith(),
  limit: { readonly unauthenticatedPerSecond?: number; now?(): number } = {},
): Auditing {
  const policy = readAuditPolicy({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [rule] })
  const lines: Line[] = []
  let now = WHEN
  let last = ''
  const auditor = new Auditor({
    policy: () => policy,
    write: (line) => {
      assert.match(line, /^[^\n]+\n$/)
      lines.push(JSON.parse(line))
      last = line
    },
    written: async () => {},
    wallTime: () => now++,
    ...limit,
  })
  const trail = auditor.begin(request, readTarget(request, 'local'), 'id-1')
  return { trail, lines, auditor, lastText: () => last }
}

describe('auditor', () => {
  test('every line of a request that names a cluster names it too, and has the full path', () => {
    for (const [path, cluster] of [
      [`/clusters/prod-eu${PATH}`, 'prod-eu'],
      [`/clusters/*${PATH}`, '*'],
      [`/clusters/local${PATH}`, 'local'],
      [PATH, undefined],
    ] as const) {
      const { trail, lines } = auditing({ level: 'Metadata' }, requestWith({ path }))
      trail.identified(ada)
      trail.decided('allow', '')
      trail.ended({ code: 200 })
      assert.equal(lines.length, 2)
      for (const { annotations, requestURI, objectRef } of lines) {
        assert.equal(annotations?.['tidings.dev/cluster'], cluster)
        assert.equal(requestURI, path)
        assert.equal(objectRef.namespace, 'shop')
      }
    }
  })

  test('a rule about a user or group of this server does not match one of a cluster', () => {
    const theirs: User = { ...ada, origin: 'a' }
    for (const rule of [{ users: ['ada'] }, { userGroups: ['ops'] }]) {
      const { trail, lines } = auditing({ level: 'Metadata', ...rule })
      trail.identified(theirs)
      trail.ended({ code: 200 })
      assert.deepEqual(lines, [])
    }
    for (const rule of [{ users: ['clusters/a/ada'] }, { userGroups: ['clusters/a/ops'] }]) {
      const { trail, lines } = auditing({ level: 'Metadata', ...rule })
      trail.identified(theirs)
      trail.impersonated({ name: 'bob', groups: [], origin: 'a' })
      trail.ended({ code: 200 })
      const { user, impersonatedUser } = lines.at(-1)
      assert.deepEqual([user.username, user.groups], ['clusters/a/ada', ['clusters/a/ops']])
      assert.equal(impersonatedUser.username, 'clusters/a/bob')
    }
  })

  test('a request has one line when it arrives and one when its response is complete', () => {
    const { trail, lines, auditor } = auditing(
      { level: 'Metadata' },
      requestWith({ method: 'POST' }),
    )
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

  test('the members of a line have the order of Kubernetes', () => {
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

  test('requests of level None and omitted stages have no lines', () => {
    const none = auditing({ level: 'None' })
    none.trail.identified(ada)
    none.trail.started(200)
    none.trail.ended({ code: 200 })
    assert.deepEqual(none.lines, [])
    assert.equal(none.trail.isRecorded, false)

    const some = auditing({ level: 'Metadata', omitStages: ['RequestReceived', 'ResponseStarted'] })
    some.trail.identified(ada)
    some.trail.started(200)
    some.trail.ended({ code: 200 })
    assert.deepEqual(
      some.lines.map(({ stage }) => stage),
      ['ResponseComplete'],
    )
  })

  test('a long-running response has one line when it starts and one when it ends', () => {
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

  test('a request that fails authentication has one line, without a user, with the kinds it tried', () => {
    const cases: readonly [Partial<Request>, string][] = [
      [{ headers: {} }, 'no credentials provided'],
      [{ headers: { authorization: 'Bearer s3cr3t' } }, 'attempted: bearer'],
      [{ headers: { authorization: 'basic s3cr3t' } }, 'attempted: basic'],
      [{ headers: { authorization: 's3cr3t' } }, 'no credentials provided'],
      [{ query: new URLSearchParams('access_token=s3cr3t') }, 'attempted: access_token'],
    ]
    for (const [change, tried] of cases) {
      const { trail, lines } = auditing({ level: 'RequestResponse' }, requestWith(change))
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

  test('a failure has its reason, and a message that quotes the body only at levels with bodies', () => {
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

  test('an unexpected error is a Panic', () => {
    const { trail, lines } = auditing()
    trail.identified(ada)
    trail.ended({ code: 500, isPanic: true })
    assert.equal(lines[1].stage, 'Panic')
  })

  test('sourceIPs has the addresses claimed by proxies first and that of the connection last', () => {
    const ips = (headers: Record<string, string>): Line => {
      const { trail, lines } = auditing({ level: 'Metadata' }, requestWith({ headers }))
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

  test('the data that lines need is copied before the request drops its headers', () => {
    const omitted = { level: 'Metadata', omitStages: ['RequestReceived'] }
    for (const [user, rule] of [
      [ada, omitted],
      [ANONYMOUS, omitted],
      [ANONYMOUS, { level: 'Metadata' }],
    ] as const) {
      let isDropped = false
      const headers = { 'x-real-ip': '198.51.100.1', 'user-agent': 'kubectl/v1.36' }
      const query = new URLSearchParams('limit=7')
      const request = {
        ...requestWith(),
        get headers() {
          return isDropped ? {} : headers
        },
        get query() {
          return isDropped ? new URLSearchParams() : query
        },
      }
      const { trail, lines } = auditing(rule, request)
      trail.identified(user)
      isDropped = true
      trail.decided('allow', '')
      trail.ended({ code: 200 })
      for (const { sourceIPs, userAgent, requestURI } of lines) {
        assert.deepEqual(
          { sourceIPs, userAgent, requestURI },
          {
            sourceIPs: ['198.51.100.1', '192.0.2.7'],
            userAgent: 'kubectl/v1.36',
            requestURI: `${PATH}?limit=7`,
          },
        )
      }
      assert.equal(lines.at(-1)?.stage, 'ResponseComplete')
      assert.ok(trail.retainedBytes > 200 && trail.retainedBytes < 2000, `${trail.retainedBytes}`)
    }
  })

  test('copies nothing when the policy wants no line', () => {
    const stages = ['RequestReceived', 'ResponseStarted', 'ResponseComplete', 'Panic']
    for (const rule of [{ level: 'None' }, { level: 'Metadata', omitStages: stages }]) {
      const { trail } = auditing(rule)
      trail.identified(ada)
      assert.equal(trail.retainedBytes, 0)
    }
  })

  test('values from clients are escaped and truncated', () => {
    const agent = '"},\n{"kind":"Event" Bearer s3cr3t'
    const headers = { 'user-agent': agent + 'x'.repeat(5000) }
    const { trail, lines } = auditing(
      { level: 'Metadata' },
      requestWith({ headers, path: '/a"\nb' }),
    )
    trail.identified({ name: '"\n', groups: ['\u2028'] })
    assert.ok(lines[0].userAgent.startsWith('"},\n{"kind":"Event" Bearer [redacted]'))
    assert.ok(lines[0].userAgent.length < 1100)
    assert.equal(lines[0].user.username, '"\n')
    assert.equal(lines[0].requestURI, '/a%22%0Ab')
    assert.equal(lines[0].objectRef, undefined)
  })

  test('tokens are redacted in the path, in messages and in the extra of a user', () => {
    const jwt = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl'
    const { trail, lines } = auditing(
      { level: 'Metadata' },
      requestWith({ path: `${PATH}/${jwt}` }),
    )
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

  test('tokens are redacted in names, uids, groups and reasons', () => {
    const jwt = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl'
    const { trail, lines } = auditing({ level: 'Metadata' }, requestWith({ path: '/x' }))
    const named = { name: `u-${jwt}`, uid: jwt, groups: [jwt], extra: { [jwt]: ['x'] } }
    trail.identified(named)
    trail.impersonated(named)
    trail.decided('allow', `RBAC: allowed by ClusterRoleBinding "a" to User "${jwt}"`)
    trail.ended({ code: 200 })
    assert.equal(lines.length, 2)
    assert.doesNotMatch(JSON.stringify(lines), /eyJ|c2lnbmF0dXJl/)
    assert.equal(lines[1].impersonatedUser.username, 'u-[redacted]')
  })

  test('C1 controls and marks that change the writing direction are escaped', () => {
    const text = 'a\u009b31m\u202e\u2028\u007fb'
    const { trail, lines, lastText } = auditing(
      { level: 'Request' },
      requestWith({ headers: { 'user-agent': text }, path: `${PATH}/${text}` }),
    )
    trail.identified({ name: text, groups: [text] })
    trail.ended({ code: 200, bodies: { request: JSON.stringify(text), isTruncated: false } })
    assert.match(lastText(), /^[\x20-\x7e]+\n$/)
    const { userAgent, user, objectRef, requestObject } = lines[1]
    assert.deepEqual([userAgent, user.username, objectRef.name, requestObject], Array(4).fill(text))
  })

  test('writes at most 2 KiB about an unauthenticated client, whatever it sends', () => {
    const odd = '\u009b"\\\u2028é'.repeat(2000)
    const proxies = Array.from({ length: 99 }, () => '2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff')
    const headers = { 'user-agent': odd, 'x-forwarded-for': proxies.join(',') }
    const paths = [
      `/apis/${odd}/${odd}/namespaces/${odd}/${odd}/${odd}/${odd}`,
      `/${odd}`,
      `/apis/${'g'.repeat(900)}/v1/namespaces/${'n'.repeat(900)}/${'r'.repeat(900)}/${'o'.repeat(900)}/${'s'.repeat(900)}`,
    ]
    for (const path of paths) {
      const query = new URLSearchParams({ fieldSelector: odd })
      const request = requestWith({ method: 'X'.repeat(9000), path, query, headers })
      for (const user of [undefined, ANONYMOUS]) {
        const { trail, lastText } = auditing({ level: 'RequestResponse' }, request)
        if (user !== undefined) trail.identified(user)
        const error = new StatusError('Forbidden', odd, { details: { name: odd } })
        trail.ended({ code: 403, error })
        const bytes = Buffer.byteLength(lastText())
        assert.ok(bytes > 500 && bytes <= 2048, `${bytes} bytes: ${lastText()}`)
      }
    }
  })
})

describe('sampling of unauthenticated clients', () => {
  let now = 0
  const request = requestWith()
  const flood = (count: number, { auditor }: Auditing, user?: User): void => {
    for (let index = 0; index < count; index++) {
      const trail = auditor.begin(request, readTarget(request, 'local'), `id-${index}`)
      if (user !== undefined) trail.identified(user)
      if (user === ANONYMOUS) trail.decided('forbid', '')
      trail.ended({ code: user === undefined ? 401 : 403 })
    }
  }
  const limited = (rule: Json = { level: 'Metadata' }): Auditing =>
    auditing(rule, request, { unauthenticatedPerSecond: 2, now: () => now })

  test('some requests are logged in full, and the rest in a summary', () => {
    const all = limited()
    flood(5000, all)
    assert.equal(all.lines.length, 100)
    assert.equal(all.auditor.omittedCount, 4900)
    all.auditor.summarize()
    assert.equal(all.lines.length, 101)
    const { auditID, requestReceivedTimestamp, stageTimestamp, ...summary } = all.lines[100]
    assert.match(auditID, /^[0-9a-f-]{36}$/)
    assert.ok(requestReceivedTimestamp < stageTimestamp, `${stageTimestamp}`)
    assert.deepEqual(summary, {
      kind: 'Event',
      apiVersion: 'audit.k8s.io/v1',
      level: 'Metadata',
      stage: 'ResponseStarted',
      requestURI: '',
      verb: '',
      user: {},
      sourceIPs: ['192.0.2.7'],
      responseStatus: {
        metadata: {},
        message: '4900 requests without valid credentials were counted and not logged one by one',
        code: 401,
      },
      annotations: { 'audit.tidings/omitted': '4900' },
    })
    all.auditor.summarize()
    assert.equal(all.lines.length, 101, 'no summary without omitted requests')
    now += 3000
    flood(10, all)
    assert.equal(all.lines.length, 107, 'two a second')
  })

  test('requests of authenticated users are all logged meanwhile', () => {
    const all = limited()
    flood(200, all)
    flood(1000, all, ada)
    assert.equal(all.lines.filter(({ user }) => user.username === 'ada').length, 2000)
  })

  test('refused requests of the anonymous user are sampled, each with both of its lines', () => {
    const all = limited()
    flood(150, all, ANONYMOUS)
    assert.equal(all.lines.length, 200)
    assert.deepEqual(
      all.lines.slice(0, 2).map(({ stage, annotations }) => [stage, annotations]),
      [
        ['RequestReceived', undefined],
        [
          'ResponseComplete',
          { 'authorization.k8s.io/decision': 'forbid', 'authorization.k8s.io/reason': '' },
        ],
      ],
    )
    assert.equal(all.auditor.omittedCount, 50)
  })

  test('permitted requests of the anonymous user for objects are all logged', () => {
    const all = limited()
    flood(200, all)
    const trail = all.auditor.begin(request, readTarget(request, 'local'), 'allowed')
    trail.identified(ANONYMOUS)
    trail.decided('allow', '')
    trail.ended({ code: 200 })
    const own = all.lines.filter(({ auditID }) => auditID === 'allowed')
    assert.deepEqual(
      own.map(({ stage }) => stage),
      ['RequestReceived', 'ResponseComplete'],
    )
  })

  test('requests that the policy does not log take nothing from the allowance and are not counted', () => {
    const none = limited({ level: 'None' })
    flood(500, none)
    const left = limited({ level: 'Metadata', omitStages: ['ResponseStarted'] })
    flood(500, left)
    for (const { auditor, lines } of [none, left]) {
      auditor.summarize()
      assert.deepEqual([lines, auditor.omittedCount], [[], 0])
    }
  })
})
