/**
 * A cluster with `authorization: origin` against a real Kubernetes API server: every request is
 * allowed or refused exactly as the API server allows or refuses the same request of the same user.
 * This server runs with AlwaysAllow, so that any decision of its own would show.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import https from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type EtcdCluster, startEtcd } from '../../support/etcd.ts'
import { KubeApiserver, withoutKubeApiserver } from '../../support/kube-apiserver.ts'
import { testSeed } from '../../support/seed.ts'
import { type Answer, Tidings } from '../../support/tidings.ts'
import { inParallel, questions, randomOf, writePolicy } from './origin-policy.ts'

/** How long results are cached, with time for the API server to see its own change. */
const CACHED_MS = 10_000
const EXPIRED_MS = CACHED_MS + 3_000
const REVIEWER_TOKEN = 'reviewer-token'
const OWN_TOKEN = 'own-token'
const RBAC = '/apis/rbac.authorization.k8s.io/v1'
const STATIC_USERS = [
  { token: 'token-0', user: 'ada', groups: ['dev'] },
  { token: 'token-1', user: 'bob', groups: ['ops'] },
  { token: 'token-2', user: 'carol', groups: ['dev', 'ops'] },
  { token: 'token-3', user: 'dora', groups: [] },
  { token: 'token-4', user: 'emil', groups: ['system:masters'] },
]

describe('origin authorization at a real API server', { skip: withoutKubeApiserver }, () => {
  const seed = testSeed()
  let kube: KubeApiserver
  let etcd: EtcdCluster
  let server: Tidings
  let folder: string
  /** Tokens keyed by user name, service accounts included. */
  const tokens = new Map(STATIC_USERS.map(({ token, user }) => [user, token]))

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-origin-'))
    kube = await KubeApiserver.start({
      tokens: [...STATIC_USERS, { token: REVIEWER_TOKEN, user: 'tidings' }],
    })
    await kube.create(`${RBAC}/clusterrolebindings`, {
      metadata: { name: 'tidings-reviews' },
      roleRef: {
        apiGroup: 'rbac.authorization.k8s.io',
        kind: 'ClusterRole',
        name: 'system:auth-delegator',
      },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'tidings' }],
    })
    // The built-in role `view` is empty without a controller manager, which aggregates its rules.
    await kube.create(`${RBAC}/clusterroles`, {
      metadata: { name: 'reads-events' },
      rules: [{ apiGroups: [''], resources: ['events'], verbs: ['get', 'list', 'watch'] }],
    })
    for (const name of ['builder', 'viewer']) {
      const accounts = '/api/v1/namespaces/n1/serviceaccounts'
      await kube.create(accounts, { metadata: { name } })
      const made = await kube.create(`${accounts}/${name}/token`, { spec: {} })
      const { token } = made['status'] as { token: string }
      tokens.set(`system:serviceaccount:n1:${name}`, token)
    }
    const put = async (name: string, text: string): Promise<string> => {
      const path = join(folder, name)
      await writeFile(path, text, { mode: 0o600 })
      return path
    }
    await put('prod.kubeconfig', kube.kubeconfig(REVIEWER_TOKEN))
    const clusters = await put(
      'clusters.yaml',
      `apiVersion: tidings.dev/v1alpha1
kind: ClusterConfiguration
clusters:
- name: prod
  kubeconfig: prod.kubeconfig
  authorization: origin
  tokens: { opaque: true }
- name: other
`,
    )
    const own = await put('tokens.csv', `${OWN_TOKEN},ada,1\n`)
    etcd = await startEtcd()
    server = await Tidings.start([
      `--etcd-servers=${etcd.endpoints[0]}`,
      `--token-auth-file=${own}`,
      '--authorization-mode=AlwaysAllow',
      `--clusters-file=${clusters}`,
    ])
    await server.until('/readyz', ({ status }) => status === 200, 20_000)
  })
  after(async () => {
    await server?.[Symbol.asyncDispose]()
    await etcd?.[Symbol.asyncDispose]()
    await kube?.[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  const ask = (
    path: string,
    token: string,
    more: { method?: string; body?: string; headers?: Record<string, string> } = {},
  ): Promise<Answer> =>
    server.ask(path, {
      ...more,
      headers: { ...more.headers, authorization: `Bearer ${token}` },
      timeoutMs: 30_000,
    })
  const list = (token: string, namespace: string): Promise<Answer> =>
    ask(`/clusters/prod/api/v1/namespaces/${namespace}/events`, token)
  const grant = (name: string, user: string): Promise<unknown> =>
    kube.create(`${RBAC}/namespaces/late/rolebindings`, {
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'reads-events' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
    })
  const revoke = (name: string) =>
    kube.ask('DELETE', `${RBAC}/namespaces/late/rolebindings/${name}`)
  /** Polls until the status is the expected one; returns how long that took. */
  const timeUntil = async (status: number, request: () => Promise<Answer>): Promise<number> => {
    const startedAt = Date.now()
    for (;;) {
      const { status: found, body } = await request()
      const ms = Date.now() - startedAt
      if (found === status) return ms
      assert.ok(ms < 60_000, `${found} instead of ${status}: ${body}`)
      await sleep(100)
    }
  }

  test('requests are allowed and refused as at the API server', async (context) => {
    context.diagnostic(`seed ${seed}`)
    await writePolicy(kube, randomOf(seed), [...tokens.keys()])
    // The API server's own authorizer follows its objects with a short delay.
    await sleep(2000)
    let allowed = 0
    let compared = 0
    const wrong: string[] = []
    await inParallel(
      8,
      questions([...tokens.keys()]),
      async ({ user, method, path, body, headers }) => {
        const token = tokens.get(user) ?? ''
        const [theirs, ours] = await Promise.all([
          kube.ask(method, path, { token, body, headers }),
          ask(`/clusters/prod${path}`, token, { method, headers, body: JSON.stringify(body) }),
        ])
        compared += 1
        if (theirs.status !== 403) allowed += 1
        if ((ours.status === 403) !== (theirs.status === 403) || ours.status === 401) {
          wrong.push(
            `${user} ${method} ${path}: ${ours.status} ${ours.body}, there ${theirs.status}`,
          )
        }
      },
    )
    context.diagnostic(`${compared} requests compared, ${allowed} allowed`)
    assert.deepEqual(wrong, [])
    assert.ok(allowed > compared / 10 && allowed < (compared * 9) / 10, `${allowed}/${compared}`)
  })

  test('access reviews and identities are those of the API server', async () => {
    const verbs = ['get', 'list', 'watch', 'create', 'impersonate', 'bind', '*']
    const reviews = [...tokens.keys()].flatMap((user) =>
      verbs.flatMap((verb) => ['', 'n1', 'n2'].map((namespace) => ({ user, verb, namespace }))),
    )
    await inParallel(8, reviews, async ({ user, verb, namespace }) => {
      const token = tokens.get(user) ?? ''
      const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
      const body = {
        kind: 'SelfSubjectAccessReview',
        apiVersion: 'authorization.k8s.io/v1',
        spec: { resourceAttributes: { verb, namespace, resource: 'events' } },
      }
      const headers = { 'content-type': 'application/json' }
      const [theirs, ours] = await Promise.all([
        kube.ask('POST', path, { token, body }),
        ask(`/clusters/prod${path}`, token, {
          method: 'POST',
          headers,
          body: JSON.stringify(body),
        }),
      ])
      const allowed = [theirs, ours].map(({ body: text }) => JSON.parse(text).status.allowed)
      assert.equal(allowed[1], allowed[0], `${user} ${verb} ${namespace}: ${ours.body}`)
    })
    for (const [user, token] of tokens) {
      const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
      const body = { kind: 'SelfSubjectReview', apiVersion: 'authentication.k8s.io/v1' }
      const headers = { 'content-type': 'application/json' }
      const theirs = await kube.ask('POST', path, { token, body })
      const ours = await ask(`/clusters/prod${path}`, token, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      })
      const [one, other] = [theirs, ours].map((answer) => JSON.parse(answer.body).status.userInfo)
      assert.deepEqual(other, one, user)
    }
  })

  test('users of the cluster have no access to anything else, masters included', async () => {
    for (const token of tokens.values()) {
      for (const prefix of ['', '/clusters/other', '/clusters/*']) {
        assert.equal((await ask(`${prefix}/api/v1/events`, token)).status, 401, prefix)
      }
      for (const path of ['/metrics', '/readyz/etcd']) {
        assert.equal((await ask(path, token)).status, 401, path)
        assert.ok([403, 404].includes((await ask(`/clusters/prod${path}`, token)).status), path)
      }
    }
    assert.equal((await ask('/clusters/other/api/v1/events', OWN_TOKEN)).status, 200)
  })

  test('impersonation is decided by the cluster', async () => {
    const as = (token: string, user: string) =>
      ask('/clusters/prod/api/v1/namespaces/n1/events', token, {
        headers: { 'impersonate-user': user },
      })
    assert.equal((await as('token-4', 'emil-who-may-nothing')).status, 403)
    assert.match((await as('token-3', 'ada')).body, /cannot impersonate resource/)
    const asGroup = await ask('/clusters/prod/api/v1/namespaces/n1/events', 'token-4', {
      headers: { 'impersonate-user': 'x', 'impersonate-group': 'system:masters' },
    })
    assert.equal(asGroup.status, 200, asGroup.body)
  })

  test('a change of the roles is in effect when cached decisions end', async (context) => {
    const poll = (): Promise<Answer> => list('token-3', 'late')
    assert.equal((await poll()).status, 403)
    await grant('late', 'dora')
    const granted = await timeUntil(200, poll)
    await revoke('late')
    const revoked = await timeUntil(403, poll)
    context.diagnostic(`granted after ${granted} ms, revoked after ${revoked} ms`)
    for (const ms of [granted, revoked]) assert.ok(ms <= EXPIRED_MS, `${ms} ms`)
  })

  test('a running watch ends when the cluster takes the permission away', async () => {
    await grant('watching', 'dora')
    await timeUntil(200, () => list('token-3', 'late'))
    const request = https.get({
      host: '127.0.0.1',
      port: server.port,
      ca: server.ca,
      path: '/clusters/prod/api/v1/namespaces/late/events?watch=true&timeoutSeconds=600',
      headers: { authorization: 'Bearer token-3' },
      agent: false,
    })
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    assert.equal(response.statusCode, 200)
    await revoke('watching')
    let text = ''
    for await (const chunk of response) text += chunk
    assert.match(text, /"type":"ERROR".*"code":403/)
  })

  test('a deleted service account is not authenticated any more', async () => {
    const name = 'system:serviceaccount:n1:viewer'
    const token = tokens.get(name) ?? ''
    assert.notEqual((await list(token, 'n1')).status, 401)
    await kube.ask('DELETE', '/api/v1/namespaces/n1/serviceaccounts/viewer')
    // The API server itself caches tokens for ten seconds.
    const ms = await timeUntil(401, () => list(token, 'n1'))
    assert.ok(ms <= EXPIRED_MS + CACHED_MS, `${ms} ms`)
    tokens.delete(name)
  })

  for (const how of ['killed', 'paused'] as const) {
    test(`a cluster that is ${how} gets 503 with Retry-After, and recovers`, async (context) => {
      assert.equal((await list('token-4', how)).status, 200)
      if (how === 'killed') await kube.kill()
      else kube.signal('SIGSTOP')
      const downAt = Date.now()
      assert.equal((await list('token-4', how)).status, 200, 'cached')
      await timeUntil(503, () => list('token-4', how))
      const ms = Date.now() - downAt
      context.diagnostic(`503 after ${ms} ms`)
      // A paused server takes no request; each waits for its timeout of ten seconds.
      assert.ok(ms <= EXPIRED_MS + (how === 'paused' ? 20_000 : 0), `${ms} ms`)
      const down = await list('token-4', how)
      assert.equal(down.status, 503, down.body)
      assert.ok(Number(down.headers['retry-after']) > 0)
      assert.equal((await list('token-unknown', how)).status, 503)
      const own = await ask('/clusters/prod/api/v1/events', OWN_TOKEN)
      assert.equal(own.status, 200, 'users of this server are not affected')
      if (how === 'killed') await kube.run()
      else kube.signal('SIGCONT')
      await timeUntil(200, () => list('token-4', how))
    })
  }
})
