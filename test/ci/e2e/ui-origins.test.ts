/** Pages of other origins cannot use the API (`other-origins-are-refused`), whatever a browser adds to their requests. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { ClientAuthority, type ClientCertificate } from '../../support/client-certs.ts'
import { type EtcdCluster, startEtcd } from '../../support/etcd.ts'
import { Folder } from '../../support/gate.ts'
import { openClient, PROTOCOLS, type Protocol } from '../../support/http-client.ts'
import { reservePort } from '../../support/ports.ts'
import { type Answer, type Call, RawHttp1 } from '../../support/raw-http1.ts'
import { Tidings } from '../../support/tidings.ts'
import { makeEvent } from '../../support/wire-event.ts'

const POLICY = 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n'
const EVENTS = '/apis/events.k8s.io/v1/namespaces/default/events'
const LINK = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }

describe('pages of other origins', { timeout: 90_000 }, () => {
  let folder: Folder
  let etcd: EtcdCluster
  let server: Tidings
  let alice: ClientCertificate
  let auditLog: string
  before(async () => {
    folder = await Folder.create()
    etcd = await startEtcd()
    const clients = await ClientAuthority.create('clients')
    alice = await clients.issue('', { subject: [{ CN: ['alice'] }, { O: ['system:masters'] }] })
    auditLog = join(folder.path, 'audit.log')
    server = await Tidings.start([
      `--etcd-servers=${etcd.endpoints[0]}`,
      `--client-ca-file=${await folder.write('clients.crt', clients.cert)}`,
      `--audit-policy-file=${await folder.write('policy.yaml', POLICY)}`,
      `--audit-log-path=${auditLog}`,
      '--audit-log-unauthenticated-qps=0',
    ])
    await server.until('/readyz', ({ status }) => status === 200, 20_000)
  })
  after(async () => {
    await server[Symbol.asyncDispose]()
    await etcd[Symbol.asyncDispose]()
    await folder[Symbol.asyncDispose]()
  })

  /** Asks as the browser of alice, who has a certificate. */
  async function ask(protocol: Protocol, call: Call): Promise<Answer> {
    using client = await openClient(protocol, server.port, alice)
    const host = protocol === 'h1' ? { host: `127.0.0.1:${server.port}` } : {}
    return await client.request({ ...call, headers: { ...host, ...call.headers } })
  }

  function creating(name: string, headers: Record<string, string>): Call {
    return {
      method: 'POST',
      path: EVENTS,
      headers,
      body: JSON.stringify(makeEvent('default', name)),
    }
  }

  for (const protocol of PROTOCOLS) {
    test(`they can write nothing (${protocol})`, async () => {
      const attempts: readonly Record<string, string>[] = [
        // An untyped Blob, sent with fetch and `no-cors`.
        { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' },
        { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors' },
        // A form.
        { 'sec-fetch-site': 'cross-site', ...LINK, 'content-type': 'text/plain' },
        // Browsers without Sec-Fetch-Site.
        { origin: 'https://evil.example' },
        { origin: 'null' },
        { origin: 'https://evil.example', 'x-forwarded-host': 'evil.example' },
        { origin: `https://127.0.0.1:${server.port + 1}` },
      ]
      for (const [index, headers] of attempts.entries()) {
        const answer = await ask(protocol, creating(`evil-${protocol}-${index}`, headers))
        assert.equal(answer.status, 403, JSON.stringify(headers))
        assert.match(JSON.parse(String(answer.body)).message, /web pages of other origins/)
      }
      const { body } = await ask(protocol, { path: EVENTS })
      assert.doesNotMatch(String(body), /evil-/)
    })

    test(`they can read nothing, not even what this host may read (${protocol})`, async () => {
      for (const path of [EVENTS, '/metrics', '/livez', '/version', '/ui/', '/unknown']) {
        for (const site of ['cross-site', 'same-site']) {
          const headers = { 'sec-fetch-site': site, 'sec-fetch-mode': 'no-cors' }
          using client = await openClient(protocol, server.port)
          assert.equal((await client.request({ path, headers })).status, 403, path)
        }
      }
      const preflight = await ask(protocol, {
        method: 'OPTIONS',
        path: EVENTS,
        headers: {
          origin: 'https://evil.example',
          'sec-fetch-site': 'cross-site',
          'sec-fetch-mode': 'cors',
          'access-control-request-method': 'POST',
        },
      })
      assert.equal(preflight.status, 403)
      const names = Object.keys(preflight.headers)
      assert.ok(!names.some((name) => name.startsWith('access-control')))
    })

    test(`links, the own page, and clients without a browser work (${protocol})`, async () => {
      const link = { 'sec-fetch-site': 'cross-site', ...LINK }
      assert.equal((await ask(protocol, { path: '/ui/?view=lanes', headers: link })).status, 200)
      const own = { 'sec-fetch-site': 'same-origin', origin: 'https://proxy.example' }
      const older = { origin: `https://127.0.0.1:${server.port}` }
      for (const [index, headers] of [own, older, {}].entries()) {
        const answer = await ask(protocol, creating(`fine-${protocol}-${index}`, headers))
        assert.equal(answer.status, 201, String(answer.body))
      }
    })
  }

  test('refusals are audited, counted and logged', async () => {
    await ask('h2', { path: EVENTS, headers: { 'sec-fetch-site': 'cross-site' } })
    const audit = (await readFile(auditLog, 'utf8'))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    const refused = audit.filter(({ responseStatus }) => responseStatus?.code === 403)
    assert.ok(refused.length > 0)
    assert.match(refused.at(-1).responseStatus.message, /other origins/)
    const { body } = await server.ask('/metrics')
    assert.match(
      body,
      /^apiserver_request_total\{(?=.*code="403")(?=.*resource="events").*\} [1-9]/m,
    )
    assert.match(String((await server.logged('Request forbidden'))['message']), /other origins/)
  })
})

test('a page of another origin cannot use the port without TLS', async () => {
  await using server = await Tidings.start([
    '--etcd-servers=http://127.0.0.1:1',
    `--insecure-port=${await reservePort()}`,
  ])
  const connection = await RawHttp1.openPlain(await server.plainPort())
  for (const [headers, status] of [
    [{}, 200],
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ origin: 'https://evil.example' }, 403],
    [{ origin: 'http://localhost' }, 200],
  ] as const) {
    assert.equal((await connection.request({ path: '/livez/ping', headers })).status, status)
  }
  connection.close()
})
