import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { startEtcd } from '../../support/etcd.ts'
import { Tidings } from '../../support/tidings.ts'

const root = join(import.meta.dirname, '../../..')
const promtool = join(root, '.cache/prometheus/usr/bin/promtool')
const rules = join(root, 'monitoring/alerts.yaml')
const EVENTS = '/apis/events.k8s.io/v1/namespaces/shop/events'
const EVENT = {
  metadata: { name: 'a.1', namespace: 'shop' },
  eventTime: '2026-01-01T00:00:00.000000Z',
  reportingController: 'example.org/shop',
  reportingInstance: 'shop-0',
  action: 'Start',
  reason: 'Started',
  type: 'Normal',
  regarding: { kind: 'Pod', name: 'a', namespace: 'shop' },
}

test('monitoring/alerts.yaml is accepted by promtool', async () => {
  await run(['check', 'rules', '--lint-fatal', rules])
})

test('every alert of monitoring/alerts.yaml fires when it should and only then', async () => {
  const cases = ['alerts.cases.yaml', 'alerts-of-hours.cases.yaml']
  await run(['test', 'rules', ...cases.map((name) => join(import.meta.dirname, name))])
})

test('/metrics and /metrics/slis are accepted by promtool and have every metric of the alerts', async () => {
  await using rest = new AsyncDisposableStack()
  const server = await serverWithEverything(rest)
  const metrics = (await server.ask('/metrics')).body
  await run(['check', 'metrics'], metrics)
  await run(['check', 'metrics'], (await server.ask('/metrics/slis')).body)
  const missing = metricsOf(await readFile(rules, 'utf8')).filter(
    (name) => !metrics.includes(`# TYPE ${name.replace(/_(bucket|sum|count)$/, '')} `),
  )
  assert.deepEqual(missing, [])
})

/** The metrics that the expressions use. */
function metricsOf(text: string): readonly string[] {
  const names = text.matchAll(/\b(?:tidings|apiserver|process|nodejs|etcd)_\w+/g)
  return [...new Set([...names].map(([name]) => name))]
}

/**
 * A server that has served a write, a read, a rejection and an unauthenticated request, with
 * optional features on.
 */
async function serverWithEverything(rest: AsyncDisposableStack): Promise<Tidings> {
  const folder = await mkdtemp(join(tmpdir(), 'tidings-alerts-'))
  rest.defer(() => rm(folder, { recursive: true, force: true }))
  const etcd = rest.use(await startEtcd())
  const write = async (name: string, text: string): Promise<string> => {
    await writeFile(join(folder, name), text, { mode: 0o600 })
    return join(folder, name)
  }
  const policy = 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{ level: Metadata }]\n'
  const limits = `apiVersion: eventratelimit.admission.k8s.io/v1alpha1
kind: Configuration
limits: [{ type: User, qps: 1, burst: 1 }]
`
  const clusters =
    'apiVersion: tidings.dev/v1alpha1\nkind: ClusterConfiguration\nclusters: [{ name: prod }]\n'
  const started = await Tidings.start([
    `--etcd-servers=${etcd.endpoints[0]}`,
    `--clusters-file=${await write('clusters.yaml', clusters)}`,
    `--token-auth-file=${await write('tokens.csv', 'master,admin,1,"system:masters"\n')}`,
    `--audit-policy-file=${await write('audit.yaml', policy)}`,
    `--audit-log-path=${join(folder, 'audit.log')}`,
    '--proxy-protocol-from=192.0.2.1',
    `--event-rate-limit-config-file=${await write('limits.yaml', limits)}`,
  ])
  const server = rest.use(started)
  await server.until('/readyz', ({ status }) => status === 200, 15_000)
  const headers = { authorization: 'Bearer master', 'content-type': 'application/json' }
  const ask = { method: 'POST', headers, body: JSON.stringify(EVENT) }
  assert.equal((await server.ask(EVENTS, ask)).status, 201)
  assert.equal((await server.ask(EVENTS, ask)).status, 429)
  assert.equal((await server.ask(EVENTS, { headers })).status, 200)
  assert.equal((await server.ask(EVENTS)).status, 401)
  return server
}

/** Fails with the output of promtool unless it is empty. */
async function run(args: readonly string[], input = ''): Promise<void> {
  assert.ok(existsSync(promtool), `there is no ${promtool}: npm run prometheus`)
  const child = spawn(promtool, args, { stdio: ['pipe', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      said += chunk
    })
  }
  child.stdin.end(input)
  const [code] = await once(child, 'close')
  assert.equal(code, 0, said)
}
