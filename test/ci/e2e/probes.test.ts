import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type EtcdCluster, startEtcd } from '../../support/etcd.ts'
import { type Answer, type Ask, Tidings } from '../../support/tidings.ts'

const PLAIN = 'text/plain; charset=utf-8'
const STARTUP = [
  'poststarthook/generic-apiserver-start-informers',
  'poststarthook/rbac/bootstrap-roles',
  'poststarthook/apiservice-registration-controller',
  'autoregister-completion',
] as const
const CHECKS = {
  healthz: ['ping', 'log', 'datastore', ...STARTUP],
  livez: ['ping', 'log', 'datastore', ...STARTUP],
  readyz: ['ping', 'log', 'datastore', 'informer-sync', ...STARTUP, 'shutdown'],
} as const
type Endpoint = keyof typeof CHECKS
const ENDPOINTS = Object.keys(CHECKS) as Endpoint[]

/** The verbose body when every check passes except the lines given. */
function verbose(
  endpoint: Endpoint,
  lines: Readonly<Record<string, string>> = {},
  warn = '',
): string {
  const checks = CHECKS[endpoint].map((name) => `${lines[name] ?? `[+]${name} ok`}\n`).join('')
  return `${checks}${warn}healthz check passed\n`
}

describe('probes of a healthy server', () => {
  let etcd: EtcdCluster
  let server: Tidings

  before(async () => {
    etcd = await startEtcd()
    server = await Tidings.start([`--etcd-servers=${etcd.endpoints[0]}`])
    await server.until('/readyz', ({ status }) => status === 200, 10_000)
  })
  after(async () => {
    await server?.[Symbol.asyncDispose]()
    await etcd?.[Symbol.asyncDispose]()
  })

  const cases: {
    title: string
    path: (endpoint: Endpoint) => string
    body: (endpoint: Endpoint) => string
  }[] = [
    { title: 'plain', path: (e) => `/${e}`, body: () => 'ok' },
    { title: 'verbose', path: (e) => `/${e}?verbose`, body: (e) => verbose(e) },
    {
      title: 'verbose by presence, whatever its value',
      path: (e) => `/${e}?verbose=false`,
      body: (e) => verbose(e),
    },
    { title: 'excluded', path: (e) => `/${e}?exclude=ping`, body: () => 'ok' },
    {
      title: 'excluded, verbose, two of them',
      path: (e) =>
        `/${e}?verbose&exclude=ping&exclude=poststarthook/generic-apiserver-start-informers`,
      body: (e) =>
        verbose(e, {
          ping: '[+]ping excluded: ok',
          'poststarthook/generic-apiserver-start-informers':
            '[+]poststarthook/generic-apiserver-start-informers excluded: ok',
        }),
    },
    {
      title: 'the alias etcd excludes datastore',
      path: (e) => `/${e}?verbose&exclude=etcd`,
      body: (e) => verbose(e, { datastore: '[+]datastore excluded: ok' }),
    },
    { title: 'unknown exclude', path: (e) => `/${e}?exclude=nope`, body: () => 'ok' },
    {
      title: 'unknown excludes, verbose: quoted and sorted',
      path: (e) => `/${e}?verbose&exclude=nope&exclude=al%22so&exclude=log&exclude=nope`,
      body: (e) =>
        verbose(
          e,
          { log: '[+]log excluded: ok' },
          'warn: some health checks cannot be excluded: no matches for "al\\"so","nope"\n',
        ),
    },
    {
      title: 'a comma does not separate names',
      path: (e) => `/${e}?verbose&exclude=ping,log`,
      body: (e) =>
        verbose(e, {}, 'warn: some health checks cannot be excluded: no matches for "ping,log"\n'),
    },
  ]
  for (const endpoint of ENDPOINTS) {
    for (const { title, path, body } of cases) {
      test(`${endpoint}: ${title}`, () =>
        sameEverywhere(path(endpoint), (answer, isHead) => {
          assert.equal(answer.status, 200)
          assert.equal(answer.body, isHead ? '' : body(endpoint))
          assert.equal(answer.headers['content-length'], String(body(endpoint).length))
          assert.equal(answer.headers['content-type'], PLAIN)
          assert.equal(answer.headers['x-content-type-options'], 'nosniff')
        }))
    }

    for (const name of [...CHECKS[endpoint], 'etcd']) {
      test(`${endpoint}: ${name} alone`, () =>
        sameEverywhere(`/${endpoint}/${name}?verbose`, (answer, isHead) => {
          assert.equal(answer.status, 200)
          assert.equal(answer.body, isHead ? '' : 'ok')
          assert.equal(answer.headers['content-type'], PLAIN)
          assert.equal(answer.headers['x-content-type-options'], undefined)
        }))
    }

    for (const path of ['nope', '', 'ping/', 'poststarthook', 'poststarthook/nope', 'PING']) {
      test(`${endpoint}: "/${endpoint}/${path}" is not found`, () =>
        sameEverywhere(`/${endpoint}/${path}`, (answer, isHead) => {
          assert.equal(answer.status, 404)
          assert.equal(answer.body, isHead ? '' : '404 page not found\n')
          assert.equal(answer.headers['content-type'], PLAIN)
          assert.equal(answer.headers['x-content-type-options'], 'nosniff')
        }))
    }
  }

  test('livez and healthz have no shutdown and no informer-sync check', async () => {
    for (const path of [
      '/livez/shutdown',
      '/healthz/shutdown',
      '/livez/informer-sync',
      '/healthz/informer-sync',
    ]) {
      assert.equal((await server.ask(path)).status, 404, path)
    }
  })

  test('a name in percent escapes is the same name', async () => {
    const answer = await server.ask('/livez/poststarthook%2Fapiservice-registration-controller')
    assert.deepEqual([answer.status, answer.body], [200, 'ok'])
  })

  test('any method and any Accept header gets the same response', async () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      const answer = await server.ask('/livez', { method, headers: { accept: 'application/json' } })
      assert.deepEqual([answer.status, answer.body], [200, 'ok'], method)
    }
  })

  test('200 concurrent probes all get a response, and cause a few requests to etcd at most', async () => {
    const startedAt = performance.now()
    const askedBefore = await rangesServed()
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, i) =>
        server.ask('/readyz?verbose', { protocol: i % 2 === 0 ? 'h1' : 'h2' }),
      ),
    )
    for (const { status, body } of answers) {
      assert.equal(status, 200)
      assert.equal(body, verbose('readyz'))
    }
    assert.ok(askedBefore > 0, 'etcd must count its reads')
    const asked = (await rangesServed()) - askedBefore
    const seconds = Math.ceil((performance.now() - startedAt) / 1000)
    // One a second for the probes, two by the replica itself.
    assert.ok(asked <= 3 * seconds + 1, `etcd got ${asked} reads in ${seconds} s`)
  })

  /** The number of reads that etcd reports. */
  async function rangesServed(): Promise<number> {
    const response = await fetch(`http://127.0.0.1:${etcd.member(0).ports.metrics}/metrics`)
    const line = (await response.text())
      .split('\n')
      .find((text) => /^grpc_server_started_total\{.*grpc_method="Range"/.test(text))
    return Number(line?.split(' ').at(-1) ?? 0)
  }

  test('/metrics/slis counts the checks of aggregates that ran', async () => {
    await server.ask('/readyz?exclude=log')
    const before = await sli(
      'kubernetes_healthchecks_total{name="ping",type="readyz",status="success"}',
    )
    const logBefore = await sli(
      'kubernetes_healthchecks_total{name="log",type="readyz",status="success"}',
    )
    await server.ask('/readyz?exclude=log')
    await server.ask('/readyz/ping')
    assert.equal(
      await sli('kubernetes_healthchecks_total{name="ping",type="readyz",status="success"}'),
      before + 1,
    )
    assert.equal(
      await sli('kubernetes_healthchecks_total{name="log",type="readyz",status="success"}'),
      logBefore,
    )
    assert.equal(await sli('kubernetes_healthcheck{name="datastore",type="readyz"}'), 1)
  })

  async function sli(series: string): Promise<number> {
    const { body } = await server.ask('/metrics/slis')
    const line = body.split('\n').find((candidate) => candidate.startsWith(`${series} `))
    assert.ok(line, `${series} in\n${body}`)
    return Number(line.split(' ').at(-1))
  }

  /**
   * The response must be the same over HTTP/1.1 and HTTP/2, to GET and to HEAD, with the common
   * headers.
   */
  async function sameEverywhere(
    path: string,
    check: (answer: Answer, isHead: boolean) => void,
  ): Promise<void> {
    for (const protocol of ['h1', 'h2'] as const) {
      for (const method of ['GET', 'HEAD']) {
        const ask: Ask = { protocol, method }
        const answer = await server.ask(path, ask)
        check(answer, method === 'HEAD')
        assert.equal(answer.headers['cache-control'], 'no-cache, private')
        assert.match(String(answer.headers['audit-id']), /^[0-9a-f-]{36}$/)
        assert.ok(answer.headers['date'])
      }
    }
  }
})
