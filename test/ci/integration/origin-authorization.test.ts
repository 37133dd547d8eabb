/**
 * Clusters whose own API servers decide about their users, over real TLS connections: two servers
 * play TokenReview and SubjectAccessReview, each with a table of its own.
 */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { ClustersFile } from '../../../src/clusters/clusters-file.ts'
import { admitted } from '../../../src/gate/admitted.fixture.ts'
import { bearerTokens } from '../../../src/gate/authentication/bearer-token.ts'
import { alwaysAllow, standingRights } from '../../../src/gate/authorization/standing-rights.ts'
import { type Caller, Gate } from '../../../src/gate/gate.ts'
import { Origins } from '../../../src/gate/origin/origins.ts'
import { readTarget } from '../../../src/gate/target.ts'
import { accountOf, type User } from '../../../src/gate/user.ts'
import type { Request } from '../../../src/http/exchange.ts'
import { silentLog } from '../../../src/lib/log/log.ts'
import { serverCommand } from '../../../src/options/commands.ts'
import { parseFlags } from '../../../src/options/parse.ts'
import { openGate } from '../../../src/server/gate.ts'
import { eventually } from '../../support/eventually.ts'
import { Folder } from '../../support/gate.ts'
import { type WebhookAnswer, WebhookServer } from '../../support/webhook-server.ts'

interface Review {
  readonly kind: string
  readonly apiVersion: string
  readonly spec: {
    readonly token?: string
    readonly user?: string
    readonly groups?: readonly string[]
    readonly resourceAttributes?: Readonly<Record<string, string>>
    readonly nonResourceAttributes?: Readonly<Record<string, string>>
  }
}

/** The users of a cluster by token, and what they may do, as `user verb namespace/resource name`. */
class Table {
  readonly users = new Map<string, { readonly username: string; readonly groups: string[] }>()
  readonly allowed = new Set<string>()
  /** Overrides the responses. */
  failure: WebhookAnswer | undefined
  tokenReviews = 0
  accessReviews = 0

  readonly answer: WebhookAnswer = (question, response) => {
    const { kind, apiVersion, spec } = question as Review
    if (kind === 'TokenReview') this.tokenReviews += 1
    else this.accessReviews += 1
    if (this.failure !== undefined) {
      this.failure(question, response)
      return
    }
    const status = kind === 'TokenReview' ? this.#token(spec) : this.#access(spec)
    response.writeHead(201).end(JSON.stringify({ kind, apiVersion, spec, status }))
  }

  #token({ token = '' }: Review['spec']): object {
    const user = this.users.get(token)
    return user === undefined ? { error: 'unknown' } : { authenticated: true, user }
  }

  #access({ user, resourceAttributes: on, nonResourceAttributes: path }: Review['spec']): object {
    const what =
      path === undefined
        ? `${on?.['verb']} ${on?.['namespace'] ?? ''}/${on?.['resource']} ${on?.['name'] ?? ''}`
        : `${path['verb']} ${path['path']}`
    return { allowed: this.allowed.has(`${user} ${what.trim()}`), reason: 'by its table' }
  }
}

interface Sent {
  readonly token?: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly isLoopback?: boolean
}

function requestOf(path: string, { token, method, headers, isLoopback }: Sent): Request {
  const { pathname, searchParams } = new URL(path, 'https://localhost')
  return {
    method: method ?? 'GET',
    path: pathname,
    query: searchParams,
    headers: { ...headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
    peer: {
      address: '192.0.2.1',
      isLoopback: isLoopback ?? false,
      clientCertificate: () => undefined,
    },
    signal: new AbortController().signal,
    body: async () => Buffer.alloc(0),
  }
}

const EVENTS = '/api/v1/namespaces/x/events'

describe('clusters that decide about their users', () => {
  let folder: Folder
  let servers: Readonly<Record<'a' | 'b', WebhookServer>>
  let tables: Readonly<Record<'a' | 'b', Table>>
  let path: string
  const now = { ms: 0 }
  const lines: string[] = []
  const log = {
    ...silentLog,
    warn: (msg: string, fields?: object) =>
      void lines.push(
        `${msg} ${fields !== undefined && 'err' in fields ? String(fields.err) : ''}`,
      ),
  }
  let file: ClustersFile
  let origins: Origins
  let gate: Gate

  before(async () => {
    folder = await Folder.create()
    servers = { a: await WebhookServer.start(() => {}), b: await WebhookServer.start(() => {}) }
    for (const name of ['a', 'b'] as const)
      await folder.write(`${name}.conf`, servers[name].kubeconfig)
  })
  after(async () => {
    origins.stop()
    file.stop()
    for (const server of Object.values(servers)) await server[Symbol.asyncDispose]()
    await folder[Symbol.asyncDispose]()
  })

  /** Users of this server: `own-ada` may do everything (AlwaysAllow). */
  const ownTokens = new Map<string, string>()
  const own = {
    userOf: (token: string): User | undefined => {
      const name = token.startsWith('own-') ? token.slice(4) : ownTokens.get(token)
      return name === undefined ? undefined : { name, groups: [] }
    },
  }

  const writeClusters = async (
    authorization: Readonly<Record<string, string>>,
  ): Promise<string> => {
    const clusters = Object.entries(authorization).map(([name, by]) => ({
      name,
      kubeconfig: `${name}.conf`,
      authorization: by,
      ...(by === 'origin' ? { tokens: { issuers: [`https://${name}`], opaque: true } } : {}),
    }))
    const head = { apiVersion: 'tidings.dev/v1alpha1', kind: 'ClusterConfiguration' }
    return await folder.write('clusters.yaml', JSON.stringify({ ...head, clusters }))
  }

  beforeEach(async () => {
    origins?.stop()
    file?.stop()
    lines.length = 0
    tables = { a: new Table(), b: new Table() }
    for (const name of ['a', 'b'] as const) {
      servers[name].answer = tables[name].answer
      tables[name].users.set(`${name}-ada`, { username: 'ada', groups: ['dev'] })
      tables[name].users.set(`${name}-root`, { username: 'root', groups: ['system:masters'] })
    }
    path = await writeClusters({ a: 'origin', b: 'origin', c: 'rbac' }).catch(() => '')
    await folder.write('c.conf', servers.a.kubeconfig)
    file = await ClustersFile.open(path, { log: silentLog })
    origins = new Origins(file, { clock: { now: () => now.ms }, log })
    gate = new Gate({
      authenticators: [bearerTokens([own], origins.tokens)],
      authorizers: [origins.authorizer, standingRights, alwaysAllow],
      allowsAnonymous: false,
    })
  })

  const admit = (url: string, sent: Sent = {}): Promise<Caller> => {
    const request = requestOf(url, sent)
    return admitted(gate, request, readTarget(request, 'local'), {
      isOpenToHost: true,
      isOpenToHostUsers: true,
    })
  }
  const codeOf = async (url: string, sent: Sent = {}): Promise<number> => {
    try {
      await admit(url, sent)
      return 200
    } catch (error) {
      return (error as { code: number }).code
    }
  }

  test('the cluster of the request authenticates a token that is unknown here', async () => {
    tables.a.allowed.add('ada list x/events')
    const { user } = await admit(`/clusters/a${EVENTS}`, { token: 'a-ada' })
    assert.deepEqual(user, {
      name: 'ada',
      groups: ['dev', 'system:authenticated'],
      origin: 'a',
    })
    assert.deepEqual(servers.a.paths.slice(-2), [
      '/review/apis/authentication.k8s.io/v1/tokenreviews',
      '/review/apis/authorization.k8s.io/v1/subjectaccessreviews',
    ])
    const [asked] = servers.a.questions.slice(-1) as Review[]
    assert.deepEqual(asked?.spec, {
      user: 'ada',
      groups: ['dev', 'system:authenticated'],
      resourceAttributes: { namespace: 'x', verb: 'list', version: 'v1', resource: 'events' },
    })
    assert.equal(tables.b.tokenReviews, 0)
  })

  test('a token of one cluster never reaches the other', async () => {
    const jwt = (claims: object) =>
      ['{"alg":"RS256"}', JSON.stringify(claims), 'signature']
        .map((part) => Buffer.from(part).toString('base64url'))
        .join('.')
    const own = (name: string) => jwt({ iss: `https://${name}`, aud: [`https://${name}`] })
    tables.a.users.set(own('a'), { username: 'ada', groups: [] })
    tables.a.allowed.add('ada list x/events')
    assert.equal(await codeOf(`/clusters/a${EVENTS}`, { token: own('a') }), 200)
    const foreign = [
      own('a'),
      own('c'),
      jwt({ iss: 'https://b', aud: ['https://a'] }),
      jwt({ iss: 'https://b' }),
      jwt({ iss: 'https://b', aud: [7] }),
      jwt({ iss: ['https://b'], aud: ['https://b'] }),
      jwt({ aud: ['https://b'] }),
      jwt({}),
    ]
    const before = servers.b.questions.length
    for (const token of foreign) {
      const sent = admit(`/clusters/b${EVENTS}`, { token })
      await assert.rejects(sent, { code: 401, message: /not sent to cluster b: its issuer/ }, token)
    }
    assert.equal(servers.b.questions.length, before)
    // What the cluster issues is sent to it, whatever it then says.
    assert.equal(await codeOf(`/clusters/b${EVENTS}`, { token: own('b') }), 401)
    assert.equal(tables.b.tokenReviews, 1)
  })

  test('a token that is not a JWT is sent only where the clusters file allows it', async () => {
    const head = { apiVersion: 'tidings.dev/v1alpha1', kind: 'ClusterConfiguration' }
    const base = { kubeconfig: 'a.conf', authorization: 'origin' }
    const clusters = [
      { name: 'none', ...base },
      { name: 'jwts', ...base, tokens: { issuers: ['https://a'] } },
    ]
    const strict = await folder.write('strict.yaml', JSON.stringify({ ...head, clusters }))
    const strictFile = await ClustersFile.open(strict, { log: silentLog })
    const strictOrigins = new Origins(strictFile, { clock: { now: () => now.ms }, log })
    try {
      for (const cluster of ['none', 'jwts']) {
        await assert.rejects(
          async () => await strictOrigins.tokens.userOf('a-ada', '192.0.2.1', cluster),
          { code: 401, message: /not sent to cluster \w+: it is not a JWT/ },
        )
      }
      assert.equal(tables.a.tokenReviews, 0)
    } finally {
      strictOrigins.stop()
      strictFile.stop()
    }
  })

  test('a user of this server is not sent to a cluster, and has another account', async () => {
    const { user } = await admit(`/clusters/a${EVENTS}`, { token: 'own-ada' })
    assert.deepEqual(user, { name: 'ada', groups: ['system:authenticated'] })
    assert.equal(tables.a.tokenReviews + tables.a.accessReviews, 0)
    tables.a.allowed.add('ada list x/events')
    const other = await admit(`/clusters/a${EVENTS}`, { token: 'a-ada' })
    assert.notEqual(accountOf(other.user), accountOf(user))
  })

  test('each cluster decides exactly as its table, whatever this server allows', async () => {
    const scopes = [
      ['list', 'x/events', 'GET', EVENTS],
      ['watch', 'x/events', 'GET', `${EVENTS}?watch=true`],
      ['get', 'x/events one', 'GET', `${EVENTS}/one`],
      ['create', 'x/events', 'POST', EVENTS],
      ['list', '/events', 'GET', '/api/v1/events'],
      ['delete', 'x/events one', 'DELETE', `${EVENTS}/one`],
    ] as const
    const cases = (['a', 'b'] as const).flatMap((home) =>
      ['ada', 'root'].flatMap((user) => scopes.map((scope) => ({ home, user, scope }))),
    )
    // Every third, so that neither users nor clusters nor scopes are equal.
    for (const [at, { home, user, scope }] of cases.entries()) {
      if (at % 3 === 0) tables[home].allowed.add(`${user} ${scope[0]} ${scope[1]}`)
    }
    const elsewhere = { a: '/clusters/b', b: '/clusters/a' }
    for (const { home, user, scope } of cases) {
      const [verb, on, method, url] = scope
      const sent = { token: `${home}-${user}`, method }
      const isAllowed = tables[home].allowed.has(`${user} ${verb} ${on}`)
      const code = await codeOf(`/clusters/${home}${url}`, sent)
      assert.equal(code, isAllowed ? 200 : 403, `${home} ${user} ${verb} ${on}`)
      for (const prefix of [elsewhere[home], '/clusters/*', '', '/clusters/c']) {
        assert.equal(await codeOf(`${prefix}${url}`, sent), 401, `${prefix} ${user} ${verb}`)
      }
    }
  })

  test('an admitted user has no permission in other clusters, by whatever path', async () => {
    tables.a.allowed.add('root list x/events')
    tables.b.allowed.add('root list x/events')
    const caller = await admit(`/clusters/a${EVENTS}`, { token: 'a-root' })
    for (const cluster of ['b', 'c', 'local', '*']) {
      const request = requestOf(`/clusters/${cluster}${EVENTS}`, {})
      const target = readTarget(request, 'local')
      assert.equal((await gate.decide(caller.user, target)).verdict, 'deny', cluster)
      await assert.rejects(caller.authorize(target), { code: 403 }, cluster)
    }
    assert.equal(tables.b.accessReviews, 0)
  })

  test('paths and resources of the server itself are refused without a review', async () => {
    for (const url of [
      '/metrics',
      '/metrics/slis',
      '/readyz/etcd',
      '/healthz',
      '/debug',
      '/apix',
    ]) {
      tables.a.allowed.add(`root get ${url}`)
      const sent = { token: 'a-root' }
      assert.equal(await codeOf(`/clusters/a${url}`, sent), 403, url)
      assert.equal(await codeOf(`/clusters/a${url}`, { ...sent, isLoopback: true }), 403, url)
      assert.equal(await codeOf(url, sent), 401, url)
    }
    tables.a.allowed.add('root list /clusters')
    assert.equal(
      await codeOf('/clusters/a/apis/tidings.dev/v1alpha1/clusters', { token: 'a-root' }),
      403,
    )
    assert.equal(tables.a.accessReviews, 0)
  })

  test('discovery is decided by the cluster', async () => {
    tables.a.allowed.add('ada get /apis').add('ada get /openapi/v3').add('ada get /version')
    for (const url of ['/apis', '/openapi/v3', '/version']) {
      assert.equal(await codeOf(`/clusters/a${url}`, { token: 'a-ada' }), 200, url)
    }
    assert.equal(await codeOf('/clusters/a/api', { token: 'a-ada' }), 403)
  })

  test('the cluster decides about impersonation, and about the impersonated user', async () => {
    const sent = { token: 'a-ada', headers: { 'impersonate-user': 'bob' } }
    tables.a.allowed.add('bob list x/events')
    assert.equal(await codeOf(`/clusters/a${EVENTS}`, sent), 403)
    now.ms += 10_001
    tables.a.allowed.add('ada impersonate /users bob')
    const { user, sender } = await admit(`/clusters/a${EVENTS}`, sent)
    assert.deepEqual([user.name, user.origin, sender?.name], ['bob', 'a', 'ada'])
    const asMaster = {
      token: 'a-ada',
      headers: { 'impersonate-user': 'eve', 'impersonate-group': 'system:masters' },
    }
    tables.a.allowed.add('ada impersonate /users eve').add('ada impersonate /groups system:masters')
    assert.equal(await codeOf(`/clusters/a${EVENTS}`, asMaster), 403)
  })

  test('a user of this server that impersonates stays one of this server', async () => {
    const sent = { token: 'own-ada', headers: { 'impersonate-user': 'root' } }
    const { user } = await admit(`/clusters/a${EVENTS}`, sent)
    assert.equal(user.origin, undefined)
    assert.equal(tables.a.accessReviews, 0)
  })

  test('results are cached for ten seconds, and not longer', async () => {
    const sent = { token: 'a-ada' }
    const url = `/clusters/a${EVENTS}`
    tables.a.allowed.add('ada list x/events')
    assert.equal(await codeOf(url, sent), 200)
    assert.equal(await codeOf(url, { token: 'a-nobody' }), 401)
    const { tokenReviews, accessReviews } = tables.a
    tables.a.allowed.clear()
    now.ms += 9_999
    assert.equal(await codeOf(url, sent), 200)
    assert.equal(await codeOf(url, { token: 'a-nobody' }), 401)
    assert.deepEqual([tables.a.tokenReviews, tables.a.accessReviews], [tokenReviews, accessReviews])
    now.ms += 1
    assert.equal(await codeOf(url, sent), 403)
    tables.a.allowed.add('ada list x/events')
    now.ms += 9_999
    assert.equal(await codeOf(url, sent), 403)
    now.ms += 1
    assert.equal(await codeOf(url, sent), 200)
    tables.a.users.clear()
    now.ms += 10_000
    assert.equal(await codeOf(url, sent), 401)
  })

  for (const [what, failure, reason] of [
    ['drops connections', (_, response) => response.destroy(), /failed/],
    ['responds with an error', (_, response) => response.writeHead(500).end('{}'), /status 500/],
    [
      'refuses our credentials',
      (_, response) => {
        const message = 'tokenreviews is forbidden: User "tidings" cannot create it'
        response.writeHead(403).end(JSON.stringify({ kind: 'Status', message }))
      },
      /status 403: tokenreviews is forbidden/,
    ],
    ['responds with something else', (_, response) => response.end('{"kind":"Pod"}'), /not a /],
  ] as const satisfies readonly (readonly [string, WebhookAnswer, RegExp])[]) {
    test(`a cluster that ${what} gets 503 once cached results end, and no permission`, async () => {
      const sent = { token: 'a-ada' }
      const url = `/clusters/a${EVENTS}`
      const unavailable = { code: 503, details: { retryAfterSeconds: 1 } }
      tables.a.allowed.add('ada list x/events')
      const { user } = await admit(url, sent)
      tables.a.failure = failure
      assert.equal(await codeOf(url, sent), 200)
      now.ms += 10_000
      await assert.rejects(admit(url, sent), unavailable)
      assert.match(lines.join('\n'), reason)
      // The decision alone: a user that is still cached gets no other authorizer either.
      const target = readTarget(requestOf(url, {}), 'local')
      assert.deepEqual(await gate.decide(user, target), { verdict: 'deny', isUnsure: true })
      // The other cluster and users of this server are not affected.
      tables.b.allowed.add('ada list x/events')
      assert.equal(await codeOf(`/clusters/b${EVENTS}`, { token: 'b-ada' }), 200)
      assert.equal(await codeOf(url, { token: 'own-ada' }), 200)
      tables.a.failure = undefined
      assert.equal(await codeOf(url, sent), 200)
    })
  }

  test('a cluster that fails at access reviews only gets 503 as well', async () => {
    const sent = { token: 'a-ada' }
    tables.a.failure = (question, response) => {
      const { kind, apiVersion } = question as Review
      const status = { authenticated: true, user: { username: 'ada' } }
      if (kind !== 'TokenReview') response.destroy()
      else response.end(JSON.stringify({ kind, apiVersion, status }))
    }
    const unavailable = { code: 503, details: { retryAfterSeconds: 1 } }
    await assert.rejects(admit(`/clusters/a${EVENTS}`, sent), unavailable)
  })

  test('a watch does not continue with a user of this server of the same name', async () => {
    tables.a.allowed.add('ada watch x/events')
    const { recheck } = await admit(`/clusters/a${EVENTS}?watch=true`, { token: 'a-ada' })
    await recheck?.()
    ownTokens.set('a-ada', 'ada')
    try {
      await assert.rejects(recheck?.() ?? Promise.resolve(), { code: 401 })
    } finally {
      ownTokens.clear()
    }
  })

  test('a watch is rechecked at the cluster, and ends soon after an outage begins', async () => {
    tables.a.allowed.add('ada watch x/events')
    const { recheck } = await admit(`/clusters/a${EVENTS}?watch=true`, { token: 'a-ada' })
    assert.ok(recheck !== undefined)
    assert.equal(recheck.graceMs, 30_000)
    now.ms += 10_000
    await recheck()
    tables.a.failure = (_, response) => response.destroy()
    now.ms += 10_000
    await assert.rejects(recheck(), { code: 503 })
    tables.a.failure = undefined
    tables.a.allowed.clear()
    now.ms += 10_000
    await assert.rejects(recheck(), { code: 403 })
    tables.a.allowed.add('ada watch x/events')
    tables.a.users.set('a-ada', { username: 'somebody-else', groups: [] })
    now.ms += 10_000
    await assert.rejects(recheck(), { code: 401 })
  })

  test('a change of the file is in effect, and keeps the caches of other clusters', async () => {
    for (const name of ['a', 'b'] as const) tables[name].allowed.add('ada list x/events')
    const admitted = await admit(`/clusters/a${EVENTS}`, { token: 'a-ada' })
    assert.equal(await codeOf(`/clusters/b${EVENTS}`, { token: 'b-ada' }), 200)
    const { tokenReviews } = tables.b
    await writeClusters({ a: 'rbac', b: 'origin' })
    await eventually('the file is reloaded', () => file.clusters.get('a')?.authorization === 'rbac')
    assert.equal(await codeOf(`/clusters/a${EVENTS}`, { token: 'a-ada' }), 401)
    const target = readTarget(requestOf(`/clusters/a${EVENTS}`, {}), 'local')
    await assert.rejects(admitted.authorize(target), { code: 403 })
    assert.equal(await codeOf(`/clusters/b${EVENTS}`, { token: 'b-ada' }), 200)
    assert.equal(tables.b.tokenReviews, tokenReviews)
  })

  test('the gate of a server asks the clusters of its file first', async () => {
    const tokens = await folder.write('tokens.csv', 'own-ada,ada,1\n')
    const parsed = parseFlags(serverCommand, [
      '--etcd-servers=http://127.0.0.1:1',
      `--token-auth-file=${tokens}`,
      '--authorization-mode=AlwaysAllow',
      `--clusters-file=${path}`,
    ])
    assert.ok(parsed.kind === 'run')
    const opened = await openGate(parsed.options, silentLog, undefined, file)
    try {
      gate = opened.gate
      assert.equal(await codeOf(`/clusters/a${EVENTS}`, { token: 'own-ada' }), 200)
      assert.equal(await codeOf(`/clusters/a${EVENTS}`, { token: 'a-root' }), 403)
      assert.equal(await codeOf(`/clusters/b${EVENTS}`, { token: 'a-root' }), 401)
      const user: User = { name: 'root', groups: ['system:masters'], origin: 'a' }
      assert.deepEqual(opened.rulesFor(user, { cluster: 'a', namespace: 'x' }), {
        rules: [],
        isIncomplete: true,
      })
    } finally {
      opened.stop()
    }
  })
})
