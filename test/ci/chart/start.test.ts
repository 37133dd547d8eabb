/**
 * The rendered command line starts the program, with files laid out as the volumes say; its probes
 * succeed; and changed files are used although a kubelet changes them through links.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { CertificateAuthority } from '../../support/certs.ts'
import { find, render } from '../../support/chart.ts'
import { ChartReplica, made } from '../../support/chart-replica.ts'
import { type EtcdCluster, startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'

const KUBECONFIG = `apiVersion: v1
kind: Config
clusters: [{ name: c, cluster: { server: "https://127.0.0.1:1/" } }]
users: [{ name: u, user: { token: t } }]
contexts: [{ name: mirror, context: { cluster: c, user: u } }]
current-context: mirror
`
const VIEW = (name: string, group: string) => `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: ${name} }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view }
subjects: [{ kind: Group, apiGroup: rbac.authorization.k8s.io, name: ${group} }]
`
const EVENTS = '/api/v1/events'
const READY_MS_MAX = 20_000
const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

describe('a replica of the chart', () => {
  let etcd: EtcdCluster
  let secure: EtcdCluster
  let authority: CertificateAuthority
  before(async () => {
    ;[etcd, secure] = await Promise.all([startEtcd(), startEtcd({ encrypted: true })])
    authority = await CertificateAuthority.create('kube')
  })
  after(async () => {
    await etcd[Symbol.asyncDispose]()
    await secure[Symbol.asyncDispose]()
  })

  /** What the cluster has besides the chart: the service account and its authority. */
  const cluster = () => ({
    'service-account': { token: 'token-of-the-account' },
    'kube-root-ca.crt': { 'ca.crt': String(authority.cert) },
  })

  /** Probes as a kubelet does: without credentials. */
  const probe = async (replica: ChartReplica) => {
    const { container } = replica
    const isReady = async () => (await replica.ask('/readyz')).status === 200
    await eventually('it is ready', isReady, READY_MS_MAX)
    for (const name of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      const { path, scheme } = container[name].httpGet
      assert.equal(scheme, 'HTTPS')
      const { status, body } = await replica.ask(path, {
        timeoutMs: container[name].timeoutSeconds * 1000,
      })
      assert.equal(`${status} ${body}`, '200 ok', name)
    }
    assert.equal((await replica.ask(EVENTS)).status, 401)
    // These requests come from loopback, as those of kubectl port-forward and of sidecars do.
    for (const path of ['/metrics', '/metrics/slis', '/version']) {
      assert.equal((await replica.ask(path)).status, 401, path)
    }
  }

  test('with the defaults', async () => {
    const { ca, cert, key } = secure.tls ?? assert.fail('etcd has no TLS')
    const manifests = await render('default')
    const given = {
      'tidings-etcd': { 'ca.crt': String(ca), 'tls.crt': String(cert), 'tls.key': String(key) },
    }
    await using replica = await ChartReplica.start(manifests, {
      given,
      etcdServers: secure.endpoints.join(),
    })
    await probe(replica)
    const warned = replica.server.log.filter(({ msg }) => msg === 'File permissions are too open')
    assert.deepEqual(warned, [])
    // The grace period counts from the signal: nothing is in flight, so only the delay passes.
    replica.server.kill('SIGTERM')
    await replica.server.logged('Shutdown event')
    assert.equal((await replica.ask('/livez')).status, 200)
    assert.equal((await replica.ask('/readyz')).status, 500)
  })

  test('with the values of a trial, and a token of an administrator', async () => {
    const manifests = await render('trial')
    const given = { ...cluster(), 'tidings-tokens': { 'tokens.csv': 't,me,1,system:masters\n' } }
    await using replica = await ChartReplica.start(manifests, {
      given,
      etcdServers: etcd.endpoints.join(),
    })
    await probe(replica)
    assert.equal((await replica.ask(EVENTS, as('t'))).status, 200)
    // The mirror of the own cluster is configured, and cannot reach it from here.
    const { body } = await replica.ask('/apis/tidings.dev/v1alpha1/clusters/local', as('t'))
    assert.match(body, /"mirror":/)
  })

  test('with tokens, roles, clusters and their kubeconfigs, which all change while it runs', async () => {
    const manifests = await render('clusters', [
      '--set-json',
      'retention={"policy":{"rules":[{"name":"w","type":"Warning","lifetime":"7d"}]}}',
    ])
    const given = {
      ...cluster(),
      'tidings-tokens': { 'users.csv': 'ada-1,ada,1,operators\n' },
      'prod-eu': { kubeconfig: KUBECONFIG },
      staging: { 'mirror.kubeconfig': KUBECONFIG },
      'fleet-roles': { 'fleet.yaml': VIEW('fleet', 'fleet') },
    }
    await using replica = await ChartReplica.start(manifests, {
      given,
      etcdServers: etcd.endpoints.join(),
    })
    await probe(replica)
    const { server } = replica
    const status = async (path: string, token: string) =>
      (await replica.ask(path, as(token))).status
    assert.equal(await status(EVENTS, 'ada-1'), 200)
    assert.equal(await status(`/clusters/prod-eu${EVENTS}`, 'ada-1'), 403)

    await replica.update('tokens', { 'users.csv': 'ada-2,ada,1,operators\neve,eve,2,others\n' })
    await eventually('it is used', async () => (await status(EVENTS, 'ada-2')) === 200)
    assert.equal(await status(EVENTS, 'ada-1'), 401)

    assert.equal(await status(EVENTS, 'eve'), 403)
    await replica.update('roles', { 'others.yaml': VIEW('others', 'others') })
    await eventually('it is used', async () => (await status(EVENTS, 'eve')) === 200)
    assert.equal(await status(EVENTS, 'ada-2'), 403, 'the file of ada is gone')

    await replica.update('cluster-roles-0', { 'fleet.yaml': VIEW('fleet', 'others') })
    await eventually(
      'it is used',
      async () => (await status(`/clusters/prod-eu${EVENTS}`, 'eve')) === 200,
    )

    const config = made(manifests)['tidings-config'] ?? assert.fail()
    const files = {
      ...config,
      'kubeconfigs/prod-eu': KUBECONFIG,
      'kubeconfigs/staging': KUBECONFIG,
    }
    const clusters = String(config['clusters.yaml']).replace('name: "written"', 'name: renamed')
    const retention = String(config['retention.yaml']).replace('7d', '9d')
    await replica.update('config', {
      ...files,
      'clusters.yaml': clusters,
      'retention.yaml': retention,
    })
    await server.logged('Clusters file reloaded')
    await server.logged('Retention policy reloaded')

    const ca = await CertificateAuthority.create('renewed')
    const { cert, key } = await ca.issueServer(['127.0.0.1', 'localhost'])
    await replica.update('tls', { 'tls.crt': String(cert), 'tls.key': String(key) })
    await server.logged('Serving certificate reloaded')
    assert.equal((await replica.ask('/livez', { ca: String(ca.cert) })).status, 200)
    // A look between two steps of the kubelet may miss a file of the roles that goes away. The next
    // look finds the rest; the changes above were used all the same.
    const messages = server.log.map(({ msg }) => msg)
    const failed = messages.filter((msg) => / not reloaded$/.test(msg))
    assert.deepEqual(
      failed.filter((msg) => msg !== 'RBAC policy not reloaded'),
      [],
    )
    assert.equal(
      messages.findLast((msg) => msg.startsWith('RBAC policy')),
      'RBAC policy reloaded',
    )
  })

  test('with policies, limits and tracing in the values', async () => {
    const manifests = await render('inline-config')
    await using replica = await ChartReplica.start(manifests, {
      etcdServers: etcd.endpoints.join(),
    })
    await probe(replica)
  })

  test('with the page, and without it', async () => {
    for (const [set, status] of [
      ['exposed', 200],
      ['minimal', 401],
    ] as const) {
      const etcdServers = etcd.endpoints.join()
      await using replica = await ChartReplica.start(await render(set), { etcdServers })
      await probe(replica)
      assert.equal((await replica.ask('/ui/')).status, status, set)
    }
  })

  test('the budget of memory holds the heap that NODE_OPTIONS allows', async () => {
    const [container] = find(await render('default'), 'Deployment')['spec'].template.spec.containers
    const [{ value }] = container.env
    const [, heapMb = ''] = /--max-old-space-size=(\d+)/.exec(value) ?? []
    assert.equal(container.resources.limits.memory, '2Gi')
    assert.ok(Number(heapMb) <= 1024)
  })
})
