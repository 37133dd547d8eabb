/** The program with a clusters file: an API server of a cluster decides about its users. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type EtcdCluster, startEtcd } from '../../support/etcd.ts'
import { Folder } from '../../support/gate.ts'
import { type Answer, runToEnd, Tidings } from '../../support/tidings.ts'
import { WebhookServer } from '../../support/webhook-server.ts'

const EVENTS = '/api/v1/namespaces/x/events'
const CLUSTERS = `apiVersion: tidings.dev/v1alpha1
kind: ClusterConfiguration
clusters:
- name: prod
  kubeconfig: prod.kubeconfig
  authorization: origin
  tokens: { opaque: true }
`

interface Review {
  readonly kind: string
  readonly apiVersion: string
  readonly spec: {
    readonly token?: string
    readonly resourceAttributes?: { readonly verb: string }
  }
}

describe('users of a cluster', () => {
  let origin: WebhookServer
  let etcd: EtcdCluster
  let folder: Folder
  let server: Tidings

  before(async () => {
    folder = await Folder.create()
    origin = await WebhookServer.start((question, response) => {
      const { kind, apiVersion, spec } = question as Review
      const status =
        kind === 'TokenReview'
          ? {
              authenticated: spec.token === 'theirs',
              user: { username: 'ada', groups: ['system:masters'] },
            }
          : { allowed: spec.resourceAttributes?.verb === 'list' }
      response.writeHead(201).end(JSON.stringify({ kind, apiVersion, status }))
    })
    await folder.write('prod.kubeconfig', origin.kubeconfig)
    etcd = await startEtcd()
    server = await Tidings.start([
      `--etcd-servers=${etcd.endpoints[0]}`,
      `--token-auth-file=${await folder.write('tokens.csv', 'ours,ada,1\n')}`,
      '--authorization-mode=AlwaysAllow',
      `--clusters-file=${await folder.write('clusters.yaml', CLUSTERS)}`,
    ])
    await server.until('/readyz', ({ status }) => status === 200, 20_000)
  })
  after(async () => {
    await server?.[Symbol.asyncDispose]()
    await etcd?.[Symbol.asyncDispose]()
    await folder[Symbol.asyncDispose]()
  })

  const ask = (token: string, path: string, method = 'GET'): Promise<Answer> =>
    server.ask(path, { method, headers: { authorization: `Bearer ${token}` } })

  test('the cluster decides about them, and has no say about users of this server', async () => {
    assert.equal((await ask('theirs', `/clusters/prod${EVENTS}`)).status, 200)
    assert.equal((await ask('theirs', `/clusters/prod${EVENTS}`, 'DELETE')).status, 403)
    for (const path of [EVENTS, `/clusters/other${EVENTS}`, `/clusters/*${EVENTS}`, '/metrics']) {
      assert.equal((await ask('theirs', path)).status, 401, path)
    }
    assert.equal((await ask('unknown', `/clusters/prod${EVENTS}`)).status, 401)
    assert.equal((await ask('ours', `/clusters/prod${EVENTS}`, 'DELETE')).status, 200)
  })

  test('a cluster that is down gets 503 with Retry-After', async () => {
    await origin[Symbol.asyncDispose]()
    const { status, headers } = await ask('another', `/clusters/prod${EVENTS}`)
    assert.deepEqual([status, headers['retry-after']], [503, '1'])
    assert.equal((await ask('ours', `/clusters/prod${EVENTS}`)).status, 200)
  })

  test('a file that cannot be used ends the start, with flag, file and field', async () => {
    const file = await folder.write('wrong.yaml', CLUSTERS.replace('origin', 'Origin'))
    const { code, stderr } = await runToEnd([
      '--etcd-servers=http://127.0.0.1:1',
      '--secure-port=0',
      '--bind-address=127.0.0.1',
      `--cert-dir=${folder.path}/certificates`,
      `--clusters-file=${file}`,
    ])
    assert.equal(code, 1)
    for (const text of ['--clusters-file', file, 'clusters[0].authorization', 'rbac, origin']) {
      assert.ok(stderr.includes(text), stderr)
    }
  })
})
