import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { startEtcd } from '../../support/etcd.ts'
import { EventClient } from '../../support/event-client.ts'
import { eventually } from '../../support/eventually.ts'
import { inParallel } from '../../support/load.ts'
import { MetricSums } from '../../support/metric-sums.ts'
import { OtlpReceiver, type ReceivedSpan } from '../../support/otlp-receiver.ts'
import { reservePort } from '../../support/ports.ts'
import { runToEnd, Tidings } from '../../support/tidings.ts'

const NO_ETCD = '--etcd-servers=http://127.0.0.1:1'
const ALL = 1_000_000
const TOKEN = 'canary-token-of-ada'
const MONITOR_TOKEN = 'canary-token-of-the-monitor'
const BODY_TEXT = 'canary text in the note of an event'
const REMOTE = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' }
const SAMPLED = `00-${REMOTE.traceId}-${REMOTE.spanId}-01`

let folder: string
let etcd: Awaited<ReturnType<typeof startEtcd>>
let servers = 0

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tidings-tracing-'))
  await writeFile(
    join(folder, 'tokens.csv'),
    `${TOKEN},ada,1,"ops"\n${MONITOR_TOKEN},prometheus,2,"system:monitoring"\n`,
  )
  etcd = await startEtcd()
})
after(async () => {
  await etcd[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
})

async function configFile(endpoint: string, rate?: number): Promise<string> {
  const file = join(folder, `tracing-${servers++}.yaml`)
  const text = `apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: ${endpoint}\n`
  await writeFile(file, rate === undefined ? text : `${text}samplingRatePerMillion: ${rate}\n`)
  return file
}

function flags(...more: readonly string[]): readonly string[] {
  return [
    `--etcd-servers=${etcd.endpoints[0]}`,
    `--etcd-prefix=/tracing-${servers++}`,
    `--token-auth-file=${join(folder, 'tokens.csv')}`,
    '--authorization-mode=AlwaysAllow',
    ...more,
  ]
}

async function traced(endpoint: string, rate?: number): Promise<Tidings> {
  const server = await Tidings.start(
    flags(`--tracing-config-file=${await configFile(endpoint, rate)}`),
  )
  await server.until('/readyz', ({ status }) => status === 200, 20_000)
  return server
}

function connect({ port, ca }: Tidings, token = TOKEN): Promise<EventClient> {
  return EventClient.open({ port, ca, token })
}

function event(name: string): Parameters<EventClient['create']>[0] {
  return {
    metadata: { name, namespace: 'shop' },
    regarding: { kind: 'Pod', namespace: 'shop', name: 'web-0' },
    eventTime: '2026-11-16T08:00:00.000000Z',
    reportingController: 'example.com/test',
    reportingInstance: 'test-0',
    action: 'Test',
    reason: 'Tested',
    note: BODY_TEXT,
    type: 'Normal',
  }
}

async function auditedRequest(
  client: EventClient,
  { method = 'GET', path = client.path('shop'), body = '', headers = {} },
): Promise<string> {
  const { status, headers: sent } = await client.request({
    method,
    path,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body === '' ? {} : { body }),
  })
  assert.ok(status < 300, `${status}`)
  return String(sent['audit-id'])
}

/** Waits until the spans of a request, and those of its batch, are received. */
async function traceOf(receiver: OtlpReceiver, auditId: string): Promise<readonly ReceivedSpan[]> {
  await eventually(`the trace of ${auditId}`, () => receiver.traceOf(auditId).length > 0)
  return receiver.traceOf(auditId)
}

function child(spans: readonly ReceivedSpan[], of: ReceivedSpan, name: string): ReceivedSpan {
  const found = spans.find((span) => span.parentSpanId === of.spanId && span.name === name)
  const names = spans.map((span) => span.name).join(', ')
  return found ?? assert.fail(`${of.name} has no part "${name}", but there are ${names}`)
}

function rootOf(spans: readonly ReceivedSpan[]): ReceivedSpan {
  return spans.find(({ kind }) => kind === 2) ?? assert.fail('no span of a server')
}

describe('tracing: what is recorded', () => {
  let receiver: OtlpReceiver
  let server: Tidings
  before(async () => {
    receiver = await OtlpReceiver.start()
    server = await traced(receiver.endpoint, ALL)
  })
  after(async () => {
    await server[Symbol.asyncDispose]()
    await receiver[Symbol.asyncDispose]()
  })

  test('a create, from the socket to etcd, linked with its batch; no secret', async () => {
    using client = await connect(server)
    const auditId = await auditedRequest(client, {
      method: 'POST',
      body: JSON.stringify(event('one')),
    })
    const spans = await traceOf(receiver, auditId)
    const root = rootOf(spans)
    assert.equal(root.name, 'POST /apis/events.k8s.io/v1/namespaces/{:namespace}/events')
    assert.equal(root.parentSpanId, '')
    assert.deepEqual(
      { ...root.attributes, 'http.response.body.size': 0 },
      {
        'audit-id': auditId,
        'http.request.method': 'POST',
        'http.route': '/apis/events.k8s.io/v1/namespaces/{:namespace}/events',
        'http.response.status_code': 201,
        'http.response.body.size': 0,
        verb: 'create',
        group: 'events.k8s.io',
        resource: 'events',
        namespace: 'shop',
      },
    )
    assert.equal(root.resource['service.name'], 'tidings')
    for (const name of ['authentication', 'authorization', 'receive', 'decode', 'send']) {
      child(spans, root, name)
    }
    const storage = child(spans, child(spans, root, 'registry create'), 'storage create')
    child(spans, storage, 'wait for a batch')
    const commit = child(spans, storage, 'commit')
    const [link] = commit.links
    const batch = receiver.spans.find(({ spanId }) => spanId === link?.spanId)
    assert.ok(batch, 'the write points at its batch')
    assert.equal(batch.name, 'group commit')
    assert.notEqual(batch.traceId, root.traceId)
    assert.deepEqual(batch.links, [{ traceId: storage.traceId, spanId: storage.spanId }])
    const call = child(receiver.spans, batch, 'etcd txn')
    assert.equal(call.kind, 3)
    for (const span of [...spans, batch, call]) {
      assert.ok(span.startNs <= span.endNs, span.name)
      assert.ok(span.startNs >= root.startNs && span.name !== '')
    }
    const bytes = Buffer.concat(receiver.messages).toString('latin1')
    for (const secret of ['canary', 'web-0', 'ada', 'example.com']) {
      assert.ok(!bytes.includes(secret), secret)
    }
    assert.ok(bytes.includes('registry create'), 'the search works')
  })

  test('writes at the same time share a batch, which points at each of them', async () => {
    using client = await connect(server)
    const from = receiver.spans.length
    await inParallel(60, 60, (n) => client.create(event(`parallel-${n}`)).then(() => {}))
    const named = (wanted: string) =>
      receiver.spans.slice(from).filter(({ name }) => name === wanted)
    const commits = () => named('commit')
    const batches = () => named('group commit')
    await eventually('all commits', () => commits().length === 60)
    await eventually('a batch', () => batches().some(({ links }) => links.length > 5))
    assert.equal(
      batches().reduce((sum, { links }) => sum + links.length, 0),
      60,
    )
    for (const { attributes, links } of batches())
      assert.equal(attributes['batch.writes'], links.length)
  })

  test('every other verb', async () => {
    using client = await connect(server)
    await client.create(event('two'))
    const path = client.path('shop', 'two')
    const parts = async (call: Parameters<typeof auditedRequest>[1]): Promise<string> => {
      const spans = await traceOf(receiver, await auditedRequest(client, call))
      return spans.map(({ name }) => name).join(', ')
    }
    assert.match(
      await parts({ path }),
      /^GET \/apis.*\{:name\}, authentication, authorization, registry get, storage get, newest version, .*send$/,
    )
    assert.match(await parts({}), /registry list, storage list, newest version, .*encode, send$/)
    assert.match(
      await parts({
        method: 'PATCH',
        path,
        body: '{"metadata":{"labels":{"a":"b"}}}',
        headers: { 'content-type': 'application/merge-patch+json' },
      }),
      /decode, registry patch, storage update, wait for a batch, commit, send$/,
    )
    assert.match(
      await parts({ method: 'PUT', path, body: JSON.stringify(event('two')) }),
      /decode, registry update, storage update, wait for a batch, commit, send$/,
    )
    assert.match(
      await parts({
        method: 'PATCH',
        path: `${path}?fieldManager=test&force=true`,
        body: JSON.stringify({
          apiVersion: 'events.k8s.io/v1',
          kind: 'Event',
          metadata: { name: 'two', namespace: 'shop', labels: { a: 'c' } },
        }),
        headers: { 'content-type': 'application/apply-patch+yaml' },
      }),
      /decode, registry apply, storage update, wait for a batch, commit, send$/,
    )
    assert.match(
      await parts({ method: 'DELETE', path }),
      /registry delete, storage update, .*commit/,
    )
    await inParallel(100, 50, (n) => client.create(event(`removed-${n}`)).then(() => {}))
    const removal = await traceOf(receiver, await auditedRequest(client, { method: 'DELETE' }))
    const names = removal.map(({ name }) => name)
    assert.equal(removal.length, 64, 'a long request has a limited number of spans')
    assert.ok(names.includes('registry delete') && names.includes('storage update'), `${names}`)
  })

  test('reads at the same time share one of etcd, which points at each of them', async () => {
    using client = await connect(server)
    const from = receiver.spans.length
    const headers = { 'audit-id': 'shared-read' }
    await inParallel(20, 20, () => auditedRequest(client, { headers }).then(() => {}))
    const named = (wanted: string) =>
      receiver.spans.slice(from).filter(({ name }) => name === wanted)
    await eventually('all reads', () => named('newest version').length === 20)
    for (const { traceId, spanId, links } of named('newest version')) {
      const run = named('shared read').find((span) => span.spanId === links[0]?.spanId)
      assert.ok(run, 'the read points at the one it shares')
      assert.ok(run.links.some((link) => link.traceId === traceId && link.spanId === spanId))
      assert.equal(child(receiver.spans, run, 'etcd range').kind, 3)
    }
    assert.ok(named('shared read').length < 20)
  })

  test('a watch is recorded until its initial events are sent', async () => {
    using client = await connect(server)
    using _watch = await client.watch('shop')
    const watches = () => receiver.spans.filter(({ attributes }) => attributes['verb'] === 'watch')
    await eventually('the span of a watch that still runs', () => watches().length === 1)
    assert.equal(watches()[0]?.failure, undefined)
  })

  test('a refused request is recorded with its code; a client error is not a failure', async () => {
    using client = await connect(server, 'no such token')
    const { status } = await client.request({ path: client.path('shop') })
    assert.equal(status, 401)
    const isRefused = ({ attributes }: ReceivedSpan) =>
      attributes['http.response.status_code'] === 401
    const roots = () => receiver.spans.filter(isRefused)
    await eventually('the span of the refused request', () => roots().length === 1)
    assert.equal(roots()[0]?.attributes['verb'], 'list')
    assert.equal(roots()[0]?.failure, undefined)
    const authentication = child(receiver.spans, rootOf(roots()), 'authentication')
    assert.equal(authentication.failure, 'Unauthorized')
  })

  test('any other recorded request has a trace of its own that points at the client', async () => {
    using client = await connect(server)
    const auditId = await auditedRequest(client, { headers: { traceparent: SAMPLED } })
    const root = rootOf(await traceOf(receiver, auditId))
    assert.notEqual(root.traceId, REMOTE.traceId)
    assert.equal(root.parentSpanId, '')
    assert.deepEqual(root.links, [REMOTE])
  })
})

describe('tracing: who decides', () => {
  test('only a trusted client has its requests recorded, as parts of its trace', async () => {
    await using receiver = await OtlpReceiver.start()
    await using server = await traced(receiver.endpoint)
    using client = await connect(server)
    using monitor = await connect(server, MONITOR_TOKEN)
    const headers = { traceparent: SAMPLED, tracestate: 'canary=1' }
    for (let n = 0; n < 20; n++) await auditedRequest(client, { headers })
    await auditedRequest(monitor, {})
    await auditedRequest(monitor, { headers: { traceparent: SAMPLED.replace(/01$/, '00') } })
    const auditId = await auditedRequest(monitor, { headers })
    const spans = await traceOf(receiver, auditId)
    assert.equal(rootOf(spans).traceId, REMOTE.traceId)
    assert.equal(rootOf(spans).parentSpanId, REMOTE.spanId)
    const roots = receiver.spans.filter(({ kind }) => kind === 2)
    assert.equal(roots.length, 1, 'nothing else is recorded')
    assert.ok(!Buffer.concat(receiver.messages).includes('canary'))
  })
})

describe('tracing: the collector', () => {
  test('is down: requests are served, spans are dropped and counted, until it is up', async () => {
    const port = await reservePort()
    await using server = await traced(`127.0.0.1:${port}`, ALL)
    using client = await connect(server)
    await inParallel(1500, 50, (n) => client.create(event(`event-${n}`)).then(() => {}))
    const dropped = async (): Promise<number> =>
      (await MetricSums.of([server])).sum('tidings_tracing_spans_dropped_total')
    await eventually('drops', async () => (await dropped()) > 5000)
    const sums = await MetricSums.of([server])
    assert.ok(sums.sum('tidings_tracing_waiting_spans') <= 4096)
    await server.logged('Spans cannot be exported and are dropped')
    await using receiver = await OtlpReceiver.start(port)
    await eventually('spans', () => receiver.spans.length > 0, 20_000)
    await server.logged('Spans are exported again')
    const failures = server.log.filter(({ msg }) => msg.startsWith('Spans cannot be exported'))
    assert.equal(failures.length, 1, 'reported once')
  })

  test('gets the last spans at shutdown', async () => {
    await using receiver = await OtlpReceiver.start()
    await using server = await traced(receiver.endpoint, ALL)
    using client = await connect(server)
    const auditId = await auditedRequest(client, {})
    server.kill('SIGTERM')
    client[Symbol.dispose]()
    assert.deepEqual(await server.ended, { code: 0, signal: null })
    assert.ok(receiver.traceOf(auditId).length > 0)
  })

  test('hangs: the shutdown does not wait for it', async () => {
    const hanging = createServer(() => {})
    hanging.unref()
    const connected = once(hanging, 'connection')
    await new Promise<void>((resolve) => hanging.listen(0, '127.0.0.1', resolve))
    const address = hanging.address()
    assert.ok(address !== null && typeof address === 'object')
    await using server = await traced(`127.0.0.1:${address.port}`, ALL)
    await connected
    // One export has begun and more spans wait: it takes five seconds until the exporter gives up.
    using client = await connect(server)
    await auditedRequest(client, {})
    const startedAt = performance.now()
    server.kill('SIGTERM')
    client[Symbol.dispose]()
    assert.deepEqual(await server.ended, { code: 0, signal: null })
    assert.ok(performance.now() - startedAt < 6_000)
    hanging.close()
  })
})

describe('tracing: the flag', () => {
  test('mistakes in the file are start errors with the name of the flag', async () => {
    const file = await configFile('http://localhost:4317')
    for (const [flag, error] of [
      [file, /--tracing-config-file: .*endpoint: .*unsupported scheme/],
      [join(folder, 'missing'), /--tracing-config-file: .*ENOENT/],
    ] as const) {
      const { code, stderr } = await runToEnd([
        NO_ETCD,
        '--secure-port=0',
        `--cert-dir=${folder}`,
        `--tracing-config-file=${flag}`,
      ])
      assert.equal(code, 1)
      assert.match(stderr, error)
    }
  })
})
