import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type EtcdCluster, startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { Tidings } from '../../support/tidings.ts'

const EVENTS = '/apis/events.k8s.io/v1/namespaces/shop/events'
const NO_ETCD = '--etcd-servers=http://127.0.0.1:1'
const bearer = (token: string): { authorization: string } => ({ authorization: `Bearer ${token}` })

const ROLES = `apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: ops-view, namespace: shop }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view }
subjects: [{ kind: Group, apiGroup: rbac.authorization.k8s.io, name: ops }]
`
const AUDIT_POLICY = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{ level: Metadata }]
`

/** What the log, the metrics and the audit log show an operator. */
describe("the operator's view", () => {
  let folder: string
  let etcd: EtcdCluster
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-operator-'))
    etcd = await startEtcd()
    await mkdir(join(folder, 'roles'))
    await writeFile(join(folder, 'roles', 'ops.yaml'), ROLES)
    await writeFile(join(folder, 'tokens.csv'), 'ada-token,ada,1,"ops"\nbob-token,bob,2\n')
    await writeFile(join(folder, 'audit.yaml'), AUDIT_POLICY)
  })
  after(async () => {
    await etcd[Symbol.asyncDispose]()
    await rm(folder, { recursive: true })
  })

  test('a file that breaks and is repaired is logged, although its content is that of before', async () => {
    const file = join(folder, 'followed.csv')
    await writeFile(file, 'ada-token,ada,1\n')
    await using server = await Tidings.start([NO_ETCD, `--token-auth-file=${file}`])
    await server.until('/metrics', ({ status }) => status === 200, 10_000)
    const flag = '{flag="--token-auth-file"}'
    const usable = `tidings_file_last_reload_successful${flag}`
    const lookedAt = `tidings_file_last_reload_success_timestamp_seconds${flag}`
    assert.equal(await metric(server, usable), 1)
    await writeFile(file, '"never closed')
    await server.logged('Token file not reloaded')
    assert.equal(await metric(server, usable), 0)
    const brokenSince = await metric(server, lookedAt)
    assert.ok(Date.now() / 1000 - brokenSince < 30, `${brokenSince}`)
    await writeFile(file, 'ada-token,ada,1\n')
    await server.logged('Token file valid again, unchanged')
    assert.equal(await metric(server, usable), 1)
    assert.ok((await metric(server, lookedAt)) > brokenSince)
    assert.equal(await metric(server, 'tidings_file_last_reload_successful{flag="--cert-dir"}'), 1)
    const metrics = (await server.ask('/metrics')).body
    assert.ok(!metrics.includes(folder), 'no path is a label')
  })

  test('rejected requests are counted by reason, and logged once for each kind without tokens', async () => {
    await using server = await Tidings.start([
      `--etcd-servers=${etcd.endpoints[0]}`,
      `--token-auth-file=${join(folder, 'tokens.csv')}`,
    ])
    await server.until('/readyz', ({ status }) => status === 200, 15_000)
    for (let count = 0; count < 3; count++) {
      assert.equal((await server.ask(EVENTS)).status, 401)
      assert.equal((await server.ask(EVENTS, { headers: bearer('canary') })).status, 401)
      assert.equal((await server.ask(EVENTS, { headers: bearer('bob-token') })).status, 403)
    }
    const failures = (reason: string): Promise<number> =>
      metric(server, `tidings_authentication_failures_total{reason="${reason}"}`)
    assert.equal(await failures('no-credentials'), 3)
    assert.equal(await failures('bad-token'), 3)
    assert.equal(await failures('expired-token'), 0)
    const refused = server.log.filter(({ msg }) => msg.startsWith('Request '))
    assert.deepEqual(
      refused.map(({ reason, peer, message }) => [reason ?? message, peer]),
      [
        ['no-credentials', '127.0.0.1'],
        ['bad-token', '127.0.0.1'],
        [
          'events.events.k8s.io is forbidden: User "bob" cannot list resource "events" in API group "events.k8s.io" in the namespace "shop"',
          '127.0.0.1',
        ],
      ],
    )
    assert.doesNotMatch(JSON.stringify(server.log), /canary|bob-token/)
  })

  test('requests rejected with 429 show user and controller in a metric and in the log', async () => {
    const limits = join(folder, 'limits.yaml')
    await writeFile(
      limits,
      `apiVersion: eventratelimit.admission.k8s.io/v1alpha1
kind: Configuration
limits: [{ type: User, qps: 1, burst: 1 }]
`,
    )
    await using server = await Tidings.start([
      `--etcd-servers=${etcd.endpoints[0]}`,
      `--token-auth-file=${join(folder, 'tokens.csv')}`,
      `--event-rate-limit-config-file=${limits}`,
      '--authorization-mode=AlwaysAllow',
    ])
    await server.until('/readyz', ({ status }) => status === 200, 15_000)
    const body = JSON.stringify({
      metadata: { generateName: 'a-' },
      eventTime: '2026-01-01T00:00:00.000000Z',
      reportingController: 'example.org/busy',
      reportingInstance: 'busy-0',
      action: 'Start',
      reason: 'Started',
      type: 'Normal',
      regarding: { kind: 'Pod', name: 'a', namespace: 'shop' },
    })
    const headers = { ...bearer('ada-token'), 'content-type': 'application/json' }
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => server.ask(EVENTS, { method: 'POST', headers, body })),
    )
    const codes = answers.map(({ status }) => status)
    assert.ok(codes.includes(201) && codes.includes(429), codes.join())
    const caller = '{user="ada",controller="example.org/busy"}'
    const counted = await metric(server, `tidings_refused_requests_total${caller}`)
    const total = await metric(
      server,
      'tidings_event_rate_limited_total{type="User",unit="events"}',
    )
    assert.ok(counted > 0 && counted === total, `${counted} of ${total}`)
    const lines = server.log.filter(({ msg }) => msg === 'Request refused by a limit')
    assert.deepEqual(
      lines.map(({ user, controller, limit, unlogged }) => [user, controller, limit, unlogged]),
      [['ada', 'example.org/busy', 'User: events', 0]],
    )
  })

  test('the audit log has the binding that allowed a request, or that there is none', async () => {
    const auditLog = join(folder, 'audit.log')
    await using server = await Tidings.start([
      `--etcd-servers=${etcd.endpoints[0]}`,
      `--token-auth-file=${join(folder, 'tokens.csv')}`,
      `--rbac-policy-path=${join(folder, 'roles')}`,
      `--audit-policy-file=${join(folder, 'audit.yaml')}`,
      `--audit-log-path=${auditLog}`,
    ])
    await server.until('/readyz', ({ status }) => status === 200, 15_000)
    await server.ask(EVENTS, { headers: bearer('ada-token') })
    await server.ask('/version', { headers: bearer('ada-token') })
    await server.ask(EVENTS, { headers: bearer('bob-token') })
    const lines = async (): Promise<string[][]> =>
      (await readFile(auditLog, 'utf8'))
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line))
        .filter(({ user }) => user.username === 'ada' || user.username === 'bob')
        .map(({ user, annotations }) => [
          user.username,
          annotations['authorization.k8s.io/decision'],
          annotations['authorization.k8s.io/reason'],
        ])
    await eventually('all are written', async () => (await lines()).length === 3)
    const allowed = 'RBAC: allowed by'
    assert.deepEqual(await lines(), [
      [
        'ada',
        'allow',
        `${allowed} RoleBinding "ops-view/shop" of ClusterRole "view" to Group "ops"`,
      ],
      [
        'ada',
        'allow',
        `${allowed} ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" to Group "system:authenticated"`,
      ],
      ['bob', 'forbid', ''],
    ])
  })

  test('plain HTTP on the TLS port gets a response, and is counted', async () => {
    await using server = await Tidings.start([NO_ETCD])
    await server.until('/metrics', ({ status }) => status === 200, 10_000)
    const socket = connect(server.port, '127.0.0.1')
    socket.write('GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n')
    let answer = ''
    for await (const chunk of socket) answer += chunk
    assert.equal(
      answer,
      'HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n',
    )
    assert.equal(await metric(server, 'apiserver_tls_handshake_errors_total'), 1)
    assert.ok(!server.log.some(({ msg }) => /handshake|HTTP/.test(msg)), 'nothing is logged')
  })

  test('a server without authentication logs that at its start', async () => {
    await using server = await Tidings.start([NO_ETCD])
    const line = server.log.find(({ msg }) => msg.startsWith('No authentication is configured'))
    assert.match(String(line?.['help']), /--token-auth-file/)
  })

  test('a replica with another --event-ttl than the sweeping one logs it', async () => {
    const flags = [`--etcd-servers=${etcd.endpoints[0]}`, '--etcd-prefix=/ttl']
    await using first = await Tidings.start([...flags, '--event-ttl=1h'])
    await first.logged('This replica sweeps and compacts', 15_000)
    await using same = await Tidings.start([...flags, '--event-ttl=60m'])
    await using other = await Tidings.start([...flags, '--event-ttl=2h'])
    const msg = 'The sweeping replica has different settings; give all replicas the same'
    const { there, here } = await other.logged(msg, 15_000)
    assert.equal(there, '--event-ttl=1h0m0s --etcd-compaction-interval=5m0s')
    assert.equal(here, '--event-ttl=2h0m0s --etcd-compaction-interval=5m0s')
    await same.until('/readyz', ({ status }) => status === 200, 15_000)
    assert.ok(!same.log.some((line) => line.msg === msg))
  })
})

async function metric(server: Tidings, series: string): Promise<number> {
  const { body } = await server.ask('/metrics')
  const line = body.split('\n').find((text) => text.startsWith(`${series} `))
  assert.ok(line !== undefined, `${series} is not among\n${body}`)
  return Number(line.slice(series.length + 1))
}
