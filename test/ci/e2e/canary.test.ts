/**
 * Sends secrets through every input, at the highest log level and with an audit log. None of them
 * may appear in any output, except in the audit log where a rule logs the body that contains it.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { CertificateAuthority } from '../../support/certs.ts'
import { startEtcd } from '../../support/etcd.ts'
import { openTls } from '../../support/raw-http1.ts'
import { type Answer, type Ask, runToEnd, Tidings } from '../../support/tidings.ts'

const SHOP = '/apis/events.k8s.io/v1/namespaces/shop/events'
/** The audit policy logs the bodies of this namespace. */
const OPEN = '/apis/events.k8s.io/v1/namespaces/open/events'

const POLICY = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
  - level: RequestResponse
    namespaces: [open]
  - level: Metadata
`

/** All secrets, and the encodings in which they might appear. */
class Canaries {
  readonly #known: { readonly name: string; readonly text: string }[] = []

  secret(name: string): string {
    const text = `canary${randomBytes(12).toString('hex')}`
    this.#known.push({ name, text })
    return text
  }

  get count(): number {
    return this.#known.length
  }

  /** The names of the secrets in a text: verbatim, or in base64 at any offset. */
  in(text: string): string[] {
    return this.#known
      .filter(({ text: secret }) => formsOf(secret).some((form) => text.includes(form)))
      .map(({ name }) => name)
  }
}

function formsOf(secret: string): string[] {
  const inBase64 = [0, 1, 2].map((shift) =>
    // The first and last characters depend on the neighbouring bytes.
    Buffer.from(`${' '.repeat(shift)}${secret}`)
      .toString('base64')
      .slice(4, -4),
  )
  return [secret.slice(6), ...inBase64]
}

function event(name: string, note: string, more: object = {}): string {
  return JSON.stringify({
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name, annotations: { note } },
    eventTime: '2026-11-15T04:02:47.000000Z',
    reportingController: 'example.com/c',
    reportingInstance: 'c-1',
    action: 'Test',
    reason: 'Tested',
    type: 'Normal',
    regarding: { kind: 'Pod', namespace: 'shop', name: 'p' },
    note,
    ...more,
  })
}

/** A webhook that echoes its request in the response, in several kinds of invalid responses. */
async function startWebhook(ca: CertificateAuthority, onAsked: () => void): Promise<https.Server> {
  const pair = await ca.issueServer()
  let asked = 0
  const server = https.createServer({ cert: pair.cert, key: pair.key }, (request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      asked += 1
      onAsked()
      const echo = `${body} ${request.headers.authorization}`
      const review = { ...JSON.parse(body), status: { authenticated: false, error: echo } }
      const answers = [
        () =>
          response
            .writeHead(200, { 'content-type': 'application/json' })
            .end(JSON.stringify(review)),
        () => response.writeHead(500, echo.replace(/[^\w ]/g, '')).end(echo),
        () => response.writeHead(200, { 'content-type': 'application/json' }).end(`{${echo}`),
        () => response.destroy(),
      ]
      answers[asked % answers.length]?.()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

function kubeconfig(port: number, ca: Buffer, token: string): string {
  return `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: w, user: u}}]
clusters:
  - name: w
    cluster: {server: 'https://127.0.0.1:${port}/review', certificate-authority-data: ${ca.toString('base64')}}
users:
  - name: u
    user: {token: ${token}}
`
}

describe('canary secrets', () => {
  let folder: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-canary-'))
  })
  after(() => rm(folder, { recursive: true }))

  const at = (name: string): string => join(folder, name)

  /** Replaced atomically by a rename. */
  async function write(name: string, text: string): Promise<string> {
    await writeFile(at(`${name}.new`), text)
    await rename(at(`${name}.new`), at(name))
    return at(name)
  }

  test('no secret of clients or files appears in any output', async () => {
    const canaries = new Canaries()
    const secret = (name: string): string => canaries.secret(name)
    const good = secret('a token that is good')
    const ca = await CertificateAuthority.create()
    await using etcd = await startEtcd()
    let reviews = 0
    const webhook = await startWebhook(ca, () => {
      reviews += 1
    })
    try {
      const { port } = webhook.address() as AddressInfo
      const hook = await write(
        'hook.yaml',
        kubeconfig(port, ca.cert, secret('token for the webhook')),
      )
      const tokens = `${good},ada,1,"system:masters"\n${secret('a token without a user name')},"",9\n`
      const tokenFile = await write(
        'tokens.csv',
        // The second line only causes a warning.
        `${good},ada,1,"system:masters"\n${secret('a token with a space')} x,bob,2\n`,
      )
      await using server = await Tidings.start([
        `--etcd-servers=${etcd.endpoints[0]}`,
        `--token-auth-file=${tokenFile}`,
        `--authentication-token-webhook-config-file=${hook}`,
        `--audit-policy-file=${await write('policy.yaml', POLICY)}`,
        `--audit-log-path=${at('audit.log')}`,
        '--authorization-mode=RBAC',
        '-v=10',
      ])
      await server.until('/readyz', ({ status }) => status === 200, 15_000)
      const errorBodies = await sendEverything(server, secret, good)
      await rawGarbage(server.port, secret)
      await write('tokens.csv', tokens)
      await server.logged('Token file not reloaded')
      await write('hook.yaml', `users: [{token: ${secret('token in a broken kubeconfig')}`)
      await server.logged('Webhook configuration not reloaded')

      const authorization = `Bearer ${good}`
      const metrics = await Promise.all(
        ['/metrics', '/metrics/slis'].map((path) =>
          server.ask(path, { headers: { authorization } }),
        ),
      )
      assert.deepEqual(
        metrics.map(({ status }) => status),
        [200, 200],
      )
      server.kill('SIGTERM')
      assert.equal((await server.ended).code, 0)

      const audit = await readFile(at('audit.log'), 'utf8')
      const log = JSON.stringify(server.log)
      // The search proves something only if there is enough to search.
      assert.ok(canaries.count > 30 && errorBodies.length > 30 && reviews > 5)
      assert.ok(server.log.length > 50 && audit.split('\n').length > 100)
      assert.deepEqual(canaries.in(log), [], 'in the log')
      assert.deepEqual(canaries.in(metrics.map(({ body }) => body).join()), [], 'in metrics')
      assert.deepEqual(canaries.in(errorBodies.join('\n')), [], 'in error bodies')
      assert.deepEqual(
        canaries.in(audit).sort(),
        ['body in a namespace whose bodies are kept', 'patch in a namespace whose bodies are kept'],
        'in the audit log',
      )
    } finally {
      webhook.close()
      webhook.closeAllConnections()
    }
  })

  test('invalid files at start are not quoted', async () => {
    const canaries = new Canaries()
    const key = `-----BEGIN PRIVATE KEY-----\n${canaries.secret('private key')}\n-----END PRIVATE KEY-----\n`
    const quoting: readonly (readonly [flag: string, content: string])[] = [
      ['--token-auth-file', `${canaries.secret('line without a user')}\n`],
      ['--token-auth-file', `${canaries.secret('line with an open quote')},"ada,1\n`],
      [
        '--authentication-token-webhook-config-file',
        `users: [{token: ${canaries.secret('kubeconfig, cut')}`,
      ],
      [
        '--authentication-token-webhook-config-file',
        `kind: Config\nkind: ${canaries.secret('kubeconfig, twice')}\n`,
      ],
      [
        '--authentication-token-webhook-config-file',
        `"kind: ${canaries.secret('kubeconfig, open quote')}\n`,
      ],
      [
        '--authentication-token-webhook-config-file',
        `kind: Config\n\t${canaries.secret('kubeconfig, tab')}: *x\n`,
      ],
      [
        '--authentication-token-webhook-config-file',
        `kind: *${canaries.secret('kubeconfig, alias')}\n`,
      ],
      ['--service-account-issuer=https://127.0.0.1:1 --service-account-key-file', key],
      ['--client-ca-file', key],
    ]
    for (const [flag, content] of quoting) {
      const path = await write('broken', content)
      const { code, stderr, stdout } = await runToEnd([
        '--etcd-servers=http://127.0.0.1:1',
        '--bind-address=127.0.0.1',
        '--secure-port=0',
        `--cert-dir=${folder}`,
        '-v=10',
        ...`${flag}=${path}`.split(' '),
      ])
      assert.equal(code, 1, stderr)
      assert.deepEqual(canaries.in(stderr + stdout), [], `${flag}: ${stderr}`)
    }
  })
})

/** Returns the bodies of all error responses. */
async function sendEverything(
  server: Tidings,
  secret: (name: string) => string,
  good: string,
): Promise<readonly string[]> {
  const errors: string[] = []
  const send = async (path: string, ask: Ask): Promise<Answer> => {
    const answer = await server.ask(path, ask)
    if (answer.status >= 400) errors.push(JSON.stringify(answer.headers) + answer.body)
    return answer
  }
  for (const protocol of ['h1', 'h2'] as const) {
    for (const headers of credentials((name) => secret(`${protocol}: ${name}`))) {
      await send(SHOP, { protocol, headers })
      await send('/livez/ping', { protocol, headers })
    }
    for (const query of [
      'access_token',
      'token',
      'id_token',
      'password',
      'api_key',
      'client_secret',
    ]) {
      const value = secret(`${protocol}: ?${query}`)
      await send(`${SHOP}?limit=1&${query}=${value}`, { protocol })
      await send(`/livez?${query}=${value}`, { protocol })
    }
    await sendAsMaster({ server, secret, good, protocol })
    await sendBodies({ send, secret, good, protocol })
  }
  return errors
}

/** Requests that are authorized: their audit lines are the long ones. */
async function sendAsMaster(to: {
  readonly server: Tidings
  readonly secret: (name: string) => string
  readonly good: string
  readonly protocol: 'h1' | 'h2'
}): Promise<void> {
  const { server, good, protocol } = to
  const secret = (name: string): string => to.secret(`${protocol}: ${name}`)
  const authorization = `Bearer ${good}`
  const ask = async (path: string, expected: number, more: object = {}): Promise<void> => {
    const { status } = await server.ask(path, { protocol, headers: { authorization, ...more } })
    assert.equal(status, expected, path)
  }
  const root = { 'impersonate-user': 'bob', 'impersonate-group': 'system:masters' }
  await ask(SHOP, 200, { ...root, 'impersonate-extra-token': secret('extra of a master') })
  const bearer = `Bearer ${secret('token in an extra')}`
  await ask(SHOP, 200, { ...root, 'impersonate-extra-scope': bearer })
  // The sender may get its own path back in the response; it must not appear elsewhere.
  await ask(`/${signedToken(secret, 'path')}/x`, 404)
  await ask(`${SHOP}/${signedToken(secret, 'name')}`, 404)
  await ask(`/apis/events.k8s.io/v1/namespaces/${signedToken(secret, 'namespace')}/events`, 200)
}

function signedToken(secret: (name: string) => string, place: string): string {
  const part = (text: string): string => Buffer.from(text).toString('base64url')
  const claims = part(`{"sub":"${secret(`token in a ${place}, sub`)}"}`)
  return `${part('{"alg":"RS256"}')}.${claims}.${secret(`token in a ${place}, signature`)}`
}

function credentials(secret: (name: string) => string): readonly Record<string, string>[] {
  const basic = (name: string): string => Buffer.from(`ada:${secret(name)}`).toString('base64')
  const part = (text: string): string => Buffer.from(text).toString('base64url')
  const jwt = (name: string): string => {
    const head = part(`{"alg":"RS256","kid":"${secret(`${name}, kid`)}"}`)
    const claims = part(`{"iss":"x","sub":"${secret(`${name}, sub`)}"}`)
    return `${head}.${claims}.${secret(`${name}, signature`)}`
  }
  return [
    { authorization: `Bearer ${secret('wrong token')}` },
    { authorization: `bearer   ${secret('wrong token, odd case')}` },
    { authorization: `Bearer ${secret('first of two')} ${secret('second of two')}` },
    { authorization: `Bearer ${jwt('signed token')}` },
    { authorization: `Basic ${basic('password')}` },
    { authorization: `Digest username="a", response="${secret('digest')}"` },
    { authorization: `Negotiate ${secret('negotiate')}` },
    { authorization: `Token ${secret('unknown scheme')}` },
    { authorization: secret('no scheme at all') },
    { 'proxy-authorization': `Basic ${basic('proxy password')}` },
    { cookie: `session=${secret('cookie')}` },
    { 'x-api-key': secret('api key') },
    {
      'x-remote-user': secret('front proxy user'),
      'x-remote-extra-token': secret('front proxy extra'),
    },
    { 'x-forwarded-for': secret('forwarded for') },
    { 'impersonate-user': 'bob', 'impersonate-extra-token': secret('impersonated extra') },
    {
      'sec-websocket-protocol': `base64url.bearer.authorization.k8s.io.${secret('websocket token')}`,
    },
    { 'user-agent': `curl/8 Bearer ${secret('token in the user agent')}` },
  ]
}

async function sendBodies(to: {
  readonly send: (path: string, ask: Ask) => Promise<Answer>
  readonly secret: (name: string) => string
  readonly good: string
  readonly protocol: 'h1' | 'h2'
}): Promise<void> {
  const { send, good, protocol } = to
  const secret = (name: string): string => to.secret(`${protocol}: ${name}`)
  const post = (path: string, type: string, body: string): Promise<Answer> => {
    const headers = { authorization: `Bearer ${good}`, 'content-type': type }
    return send(path, { protocol, method: 'POST', headers, body })
  }
  const json = 'application/json'
  const made = await post(SHOP, json, event(`e-${protocol}`, secret('body of an event')))
  assert.equal(made.status, 201, made.body)
  const again = await post(
    SHOP,
    json,
    event(`e-${protocol}`, secret('body of an event that exists')),
  )
  assert.equal(again.status, 409)
  // The error must not quote the body.
  await post(SHOP, json, `{"note": "${secret('body that is cut')}`)
  await post(SHOP, json, `{"note": "${secret('body with garbage behind')}"} x`)
  await post(SHOP, json, event('x', secret('body of another kind'), { kind: 'Pod' }))
  await post(SHOP, json, event('x', secret('body with a wrong time'), { eventTime: 'never' }))
  await post(SHOP, json, event('x', secret('invalid body'), { action: '' }))
  await post(SHOP, 'application/yaml', `note: "${secret('YAML that is cut')}`)
  await post(SHOP, 'application/yaml', `note: [${secret('YAML that is open')}`)
  await post(SHOP, 'text/plain', secret('body of a type we do not take'))
  const tooLong = event('x', secret('body that is too long'), { note: 'x'.repeat(4_000_000) })
  // The server responds, reads on for half a second and closes: a slow sender gets an EPIPE.
  await post(SHOP, json, tooLong).catch((error) => {
    if (!['EPIPE', 'ECONNRESET'].includes(error.code)) throw error
  })
  const unauthenticated = { authorization: `Bearer ${secret('wrong token with a body')}` }
  const body = event('y', secret('body without valid credentials'))
  await send(SHOP, { protocol, method: 'POST', headers: unauthenticated, body })

  // Only these may be found, and only in the audit log.
  const open = protocol === 'h1' ? to.secret('body in a namespace whose bodies are kept') : 'said'
  assert.equal((await post(OPEN, json, event(`o-${protocol}`, open))).status, 201)
  const change =
    protocol === 'h1' ? to.secret('patch in a namespace whose bodies are kept') : 'said'
  const patched = await send(`${OPEN}/o-${protocol}`, {
    protocol,
    method: 'PATCH',
    headers: { authorization: `Bearer ${good}`, 'content-type': 'application/merge-patch+json' },
    body: JSON.stringify({ metadata: { annotations: { note: change } } }),
  })
  assert.equal(patched.status, 200, patched.body)
}

/** Bytes that are not HTTP get a response before any handler is called. */
async function rawGarbage(port: number, secret: (name: string) => string): Promise<void> {
  for (const text of [
    `GET /${secret('half a request line')}`,
    `${secret('no method')} / HTTP/1.1\r\n\r\n`,
    `GET / HTTP/1.1\r\nAuthorization Bearer ${secret('header without a colon')}\r\n\r\n`,
    `GET /%zz?access_token=${secret('path that cannot be read')} HTTP/1.1\r\nHost: x\r\n\r\n`,
  ]) {
    const socket = await openTls(port, { ALPNProtocols: ['http/1.1'] })
    // The server may close before the write ends; only the close matters.
    socket.on('error', () => {})
    socket.end(text)
    socket.resume()
    await new Promise((resolve) => socket.once('close', resolve))
  }
}
