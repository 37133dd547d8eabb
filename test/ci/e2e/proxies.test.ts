import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import http from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeSelfSigned } from '../../../src/http/tls/self-signed.ts'
import { CertificateAuthority } from '../../support/certs.ts'
import { type EtcdCluster, startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { configurationIn, PROXY_ADDRESS, RealProxy } from '../../support/proxies.ts'
import { Tidings } from '../../support/tidings.ts'

/** Another address of this host, to distinguish it from those of the proxy and of the test. */
const CALLER = '127.0.0.2'
const SESSION = '_oauth2_proxy=session-of-ada'
const ONCALL_VIEW = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: oncall-view }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view }
subjects: [{ kind: Group, apiGroup: rbac.authorization.k8s.io, name: oncall }]
`
const POLICY = 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{ level: Metadata }]\n'

let etcd: EtcdCluster
before(async () => {
  etcd = await startEtcd()
})
after(() => etcd[Symbol.asyncDispose]())

/** Replicas with one certificate, configured with the address of the proxy. */
class Setup implements AsyncDisposable {
  readonly replicas: Tidings[] = []
  readonly folder: string
  readonly ca: string

  static async start(count: number, flags: (folder: string) => string[]): Promise<Setup> {
    const { cert, key } = await makeSelfSigned(['localhost', '127.0.0.1'])
    const setup = new Setup(cert)
    await writeFile(join(setup.folder, 'serving.crt'), cert)
    await writeFile(join(setup.folder, 'serving.key'), key, { mode: 0o600 })
    await writeFile(join(setup.folder, 'audit.yaml'), POLICY)
    await writeFile(join(setup.folder, 'tokens.csv'), 'secret,ada,1,"system:masters"\n', {
      mode: 0o600,
    })
    try {
      for (let index = 0; index < count; index++) await setup.#add(index, flags(setup.folder))
      return setup
    } catch (error) {
      await setup[Symbol.asyncDispose]()
      throw error
    }
  }

  private constructor(ca: string) {
    this.ca = ca
    this.folder = mkdtempSync(join(tmpdir(), 'tidings-proxies-'))
  }

  async #add(index: number, flags: readonly string[]): Promise<void> {
    const replica = await Tidings.start([
      `--etcd-servers=${etcd.endpoints[0]}`,
      `--tls-cert-file=${this.folder}/serving.crt`,
      `--tls-private-key-file=${this.folder}/serving.key`,
      `--token-auth-file=${this.folder}/tokens.csv`,
      `--audit-policy-file=${this.folder}/audit.yaml`,
      `--audit-log-path=${this.folder}/audit-${index}.log`,
      '--authorization-always-allow-paths=/readyz',
      '--shutdown-delay-duration=30s',
      ...flags,
    ])
    this.replicas.push(replica)
    await replica.until('/readyz', ({ status }) => status === 200, 30_000)
  }

  get ports(): readonly number[] {
    return [0, 1, 2].map((index) => (this.replicas[index] ?? this.replicas.at(-1))?.port ?? 0)
  }

  /** The source addresses of requests for this path, from the audit log of a replica. */
  async sources(index: number, path: string): Promise<readonly string[]> {
    const lines = (await readFile(`${this.folder}/audit-${index}.log`, 'utf8')).trim().split('\n')
    return lines
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
      .filter(({ requestURI, stage }) => requestURI === path && stage === 'ResponseComplete')
      .flatMap(({ sourceIPs }) => sourceIPs)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.replicas.map((replica) => replica[Symbol.asyncDispose]()))
    rmSync(this.folder, { recursive: true, force: true })
  }
}

interface Asked {
  readonly port: number
  readonly ca: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly cert?: Buffer
  readonly key?: Buffer
}

/** One request on its own connection. */
async function ask(asked: Asked): Promise<{ readonly status: number; readonly body: string }> {
  const { path = '/version', headers = { authorization: 'Bearer secret' }, body, ...tls } = asked
  const method = body === undefined ? 'GET' : 'POST'
  const options = { host: '127.0.0.1', localAddress: CALLER, agent: false, path, method, headers }
  const request = https.request({ ...options, ...tls, timeout: 10_000 })
  request.on('timeout', () => request.destroy(new Error('no response in time')))
  request.end(body)
  const [response] = await once(request, 'response')
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  return { status: response.statusCode, body: text }
}

/** Answers like oauth2-proxy, with one person and one session. */
class SignIn implements AsyncDisposable {
  readonly port: number
  /** Where people wanted to go who were sent to sign in. */
  readonly started: string[]
  readonly #server: http.Server

  static async start(): Promise<SignIn> {
    const started: string[] = []
    const server = http.createServer(({ url, headers }, response) => {
      if (url === '/oauth2/start') {
        started.push(String(headers['x-auth-request-redirect']))
        response.writeHead(302, { location: 'https://accounts.example.com/' }).end()
      } else if (url === '/oauth2/auth' && headers.cookie === SESSION) {
        response.writeHead(202, { 'x-auth-request-email': 'ada@example.com' }).end()
      } else {
        response.writeHead(401).end()
      }
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    return new SignIn(server, started)
  }

  private constructor(server: http.Server, started: string[]) {
    this.#server = server
    this.started = started
    this.port = (server.address() as AddressInfo).port
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

describe('docs/how-to/proxies.md', { concurrency: true }, () => {
  test('haproxy forwards the address of the caller, and removes a replica that is not ready', async () => {
    await using setup = await Setup.start(2, () => [`--proxy-protocol-from=${PROXY_ADDRESS}`])
    const { ca, ports } = setup
    await using proxy = await RealProxy.haproxy({
      configuration: configurationIn('haproxy'),
      ports,
      files: { 'tidings-ca.crt': ca },
    })
    const asked = { port: proxy.port, ca }
    await eventually(
      'a replica is found ready',
      async () => {
        const answer = await ask(asked).catch(() => undefined)
        return answer?.status === 200
      },
      20_000,
    )
    const seen = async () => [
      ...(await setup.sources(0, '/version')),
      ...(await setup.sources(1, '/version')),
    ]
    await eventually('the audit log has the request', async () => (await seen()).length > 0)
    assert.deepEqual(new Set(await seen()), new Set([CALLER]))
    // No credentials: the caller is on this host, but came through a proxy.
    assert.equal((await ask({ ...asked, headers: {} })).status, 401)

    setup.replicas[0]?.kill('SIGTERM')
    await eventually(
      'new connections go to the other replica',
      async () => {
        const before = (await setup.sources(0, '/version')).length
        for (let round = 0; round < 6; round++) assert.equal((await ask(asked)).status, 200)
        await sleep(200)
        return (await setup.sources(0, '/version')).length === before
      },
      20_000,
    )
    const checks = await setup.sources(1, '/readyz')
    assert.ok(checks.includes(PROXY_ADDRESS), String(checks))
  })

  test('nginx forwards the address of the caller, and skips a replica that is down', async () => {
    await using setup = await Setup.start(2, () => [`--proxy-protocol-from=${PROXY_ADDRESS}`])
    const { ca, ports } = setup
    await using proxy = await RealProxy.nginx({ configuration: configurationIn('nginx'), ports })
    const asked = { port: proxy.port, ca }
    assert.equal((await ask(asked)).status, 200)
    setup.replicas[0]?.kill('SIGKILL')
    await setup.replicas[0]?.ended
    for (let round = 0; round < 6; round++) assert.equal((await ask(asked)).status, 200)
    await eventually('the audit log has the request', async () =>
      (await setup.sources(1, '/version')).includes(CALLER),
    )
  })

  test('haproxy that terminates TLS authenticates its clients, and only those', async () => {
    const clients = await CertificateAuthority.create('clients')
    const frontProxies = await CertificateAuthority.create('front-proxies')
    await using setup = await Setup.start(1, (folder) => {
      const file = join(folder, 'front-proxy-ca.crt')
      writeFileSync(file, frontProxies.cert)
      return [`--requestheader-client-ca-file=${file}`, '--requestheader-allowed-names=front-proxy']
    })
    const serving = await clients.issueServer()
    const own = await frontProxies.issueClient('front-proxy')
    await using proxy = await RealProxy.haproxy({
      configuration: configurationIn('haproxy that ends TLS'),
      ports: setup.ports,
      files: {
        'tidings-ca.crt': setup.ca,
        'clients-ca.crt': clients.cert.toString(),
        'serving.pem': `${serving.cert}\n${serving.key}`,
        'front-proxy.pem': `${own.cert}\n${own.key}`,
      },
    })
    const ada = await clients.issueClient('ada', ['system:masters'])
    const asked = {
      port: proxy.port,
      ca: clients.cert.toString(),
      ...ada,
      path: '/apis/authentication.k8s.io/v1/selfsubjectreviews',
      headers: {
        'content-type': 'application/json',
        'x-remote-user': 'mallory',
        'x-remote-extra-scopes': 'all',
        'x-forwarded-for': '192.0.2.9',
      },
      body: '{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}',
    }
    await eventually(
      'the replica is found ready',
      async () => (await ask(asked)).status === 201,
      20_000,
    )
    const { userInfo } = JSON.parse((await ask(asked)).body).status
    assert.deepEqual(userInfo, {
      username: 'ada',
      groups: ['system:masters', 'system:authenticated'],
    })
    await eventually('the audit log has the request', async () =>
      (await setup.sources(0, asked.path)).includes(CALLER),
    )
    assert.ok(!(await setup.sources(0, asked.path)).includes('192.0.2.9'))
  })

  test('nginx signs people in, names them, and passes nothing else of what they send', async () => {
    const frontProxies = await CertificateAuthority.create('front-proxies')
    await using setup = await Setup.start(1, (folder) => {
      const file = join(folder, 'front-proxy-ca.crt')
      const roles = join(folder, 'roles.yaml')
      writeFileSync(file, frontProxies.cert)
      writeFileSync(roles, ONCALL_VIEW)
      return [
        `--requestheader-client-ca-file=${file}`,
        '--requestheader-allowed-names=front-proxy',
        `--rbac-policy-path=${roles}`,
      ]
    })
    await using signIn = await SignIn.start()
    const serving = await frontProxies.issueServer()
    const own = await frontProxies.issueClient('front-proxy')
    await using proxy = await RealProxy.nginx({
      configuration: configurationIn('nginx that signs people in')
        .replaceAll('127.0.0.1:4180', `127.0.0.1:${signIn.port}`)
        .replace('tidings.example.com', 'localhost'),
      ports: setup.ports,
      files: {
        'tidings-ca.crt': setup.ca,
        'serving.pem': `${serving.cert}\n${serving.key}`,
        'front-proxy.pem': `${own.cert}\n${own.key}`,
      },
    })
    const base = { port: proxy.port, ca: frontProxies.cert.toString() }
    const cookie = { cookie: SESSION }
    const page = await ask({ ...base, path: '/ui/?view=lanes&namespace=shop', headers: {} })
    assert.equal(page.status, 302)
    assert.deepEqual(signIn.started, ['/ui/?view=lanes&namespace=shop'])
    // Requests of a page whose session has ended: no redirect to another site, which fetch would follow.
    assert.equal((await ask({ ...base, path: '/api/v1/events', headers: {} })).status, 401)

    assert.match((await ask({ ...base, path: '/ui/', headers: cookie })).body, /<script/)
    const review = {
      ...base,
      path: '/apis/authentication.k8s.io/v1/selfsubjectreviews',
      body: '{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}',
    }
    const headers = {
      ...cookie,
      'content-type': 'application/json',
      authorization: 'Bearer secret',
      'x-remote-user': 'mallory',
      'x-remote-group': 'system:masters',
      'x-remote-extra-scopes': 'all',
      'x-forwarded-for': '192.0.2.9',
    }
    const answer = await ask({ ...review, headers })
    assert.deepEqual(JSON.parse(answer.body).status.userInfo, {
      username: 'ada@example.com',
      groups: ['oncall', 'system:authenticated'],
    })
    assert.equal((await ask({ ...base, path: '/api/v1/events', headers: cookie })).status, 200)
    for (const [origin, status] of [
      [`https://localhost:${proxy.port}`, 201],
      ['https://elsewhere.example.com', 403],
    ] as const) {
      const host = `localhost:${proxy.port}`
      assert.equal((await ask({ ...review, headers: { ...headers, host, origin } })).status, status)
    }
    const other = { ...headers, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }
    assert.equal((await ask({ ...review, headers: other })).status, 403)
    await eventually('the audit log has the request', async () =>
      (await setup.sources(0, review.path)).includes(CALLER),
    )
    assert.ok(!(await setup.sources(0, review.path)).includes('192.0.2.9'))
  })
})
