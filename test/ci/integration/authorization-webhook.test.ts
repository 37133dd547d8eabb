/**
 * An authorization webhook under failures (slow, wrong, oversized and missing responses), over a
 * real HTTPS server.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Attributes } from '../../../src/gate/attributes.ts'
import { WebhookAuthorizer } from '../../../src/gate/authorization/webhook-authorizer.ts'
import { ReviewError } from '../../../src/gate/webhook/review-client.ts'
import { WebhookClient } from '../../../src/gate/webhook/webhook-client.ts'
import { monotonicClock } from '../../../src/lib/clock.ts'
import { silentLog } from '../../../src/lib/log/log.ts'
import { CertificateAuthority } from '../../support/certs.ts'
import { eventually } from '../../support/eventually.ts'

type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void

const yes = JSON.stringify({
  kind: 'SubjectAccessReview',
  apiVersion: 'authorization.k8s.io/v1',
  status: { allowed: true },
})
const asked = (name: string): Attributes => ({
  isResource: true,
  cluster: 'local',
  verb: 'get',
  group: 'events.k8s.io',
  version: 'v1',
  resource: 'events',
  subresource: '',
  namespace: 'a',
  name,
  path: '',
})

/** A webhook whose responses are set by the test; it counts requests and connections. */
class Webhook implements AsyncDisposable {
  answer: Answer = (_request, response) => response.end(yes)
  requests = 0
  connections = 0
  readonly #server: https.Server
  readonly #sockets = new Set<Socket>()

  static async start(ca: CertificateAuthority, hosts?: readonly string[]): Promise<Webhook> {
    const { cert, key } = await ca.issueServer(hosts)
    const server = https.createServer({
      cert,
      key,
      ca: ca.cert,
      requestCert: true,
      rejectUnauthorized: false,
    })
    const webhook = new Webhook(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return webhook
  }

  private constructor(server: https.Server) {
    this.#server = server
    server.on('secureConnection', (socket) => {
      this.connections++
      this.#sockets.add(socket)
      socket.on('error', () => {})
    })
    server.on('request', async (request, response) => {
      this.requests++
      let body = ''
      for await (const chunk of request) body += chunk
      this.answer(request, response, body)
    })
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  cutConnections(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close()
    this.cutConnections()
  }
}

describe('an authorization webhook', () => {
  let folder: string
  let ca: CertificateAuthority
  const warnings: string[] = []
  const log = { ...silentLog, warn: (msg: string) => warnings.push(msg) }

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-webhook-'))
    ca = await CertificateAuthority.create()
    await writeFile(join(folder, 'ca.pem'), ca.cert)
  })
  after(() => rm(folder, { recursive: true }))

  async function writeConfig(port: number, user: object = { token: 'shown' }): Promise<string> {
    const path = join(folder, `config-${port}`)
    const config = {
      kind: 'Config',
      clusters: [
        {
          name: 'c',
          cluster: {
            server: `https://127.0.0.1:${port}/review`,
            'certificate-authority': 'ca.pem',
          },
        },
      ],
      users: [{ name: 'u', user }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    }
    await writeFile(`${path}.new`, JSON.stringify(config))
    await rename(`${path}.new`, path)
    return path
  }

  async function open(
    stack: AsyncDisposableStack,
    port: number,
    user?: object,
  ): Promise<WebhookClient> {
    const client = await WebhookClient.open(await writeConfig(port, user), { log })
    stack.defer(() => client.stop())
    return client
  }

  async function setUp(stack: AsyncDisposableStack, timeoutMs = 300) {
    const webhook = stack.use(await Webhook.start(ca))
    const client = await open(stack, webhook.port)
    const authorizer = new WebhookAuthorizer({
      client: { post: (body, { sharer }) => client.post(body, { timeoutMs, sharer }) },
      clusterName: 'local',
      authorizedTtlMs: 60_000,
      unauthorizedTtlMs: 60_000,
      clock: monotonicClock,
      log: silentLog,
    })
    return { webhook, client, authorizer }
  }

  const ada = { name: 'ada', groups: [] }
  const unsure = { verdict: 'no-opinion', isUnsure: true }

  test('gets the token, over connections that are reused', async () => {
    await using stack = new AsyncDisposableStack()
    const { webhook, authorizer } = await setUp(stack)
    const shown: unknown[] = []
    webhook.answer = (request, response, body) => {
      shown.push([request.headers.authorization, request.url, JSON.parse(body).spec.user])
      response.end(yes)
    }
    for (const name of ['a', 'b', 'c', 'a']) {
      assert.deepEqual(await authorizer.decide(ada, asked(name)), { verdict: 'allow' })
    }
    assert.deepEqual(shown, Array(3).fill(['Bearer shown', '/review', 'ada']))
    assert.equal(webhook.connections, 1)
  })

  test('a reused connection that was cut does not fail a request', async () => {
    await using stack = new AsyncDisposableStack()
    const { webhook, authorizer } = await setUp(stack)
    await authorizer.decide(ada, asked('a'))
    webhook.cutConnections()
    assert.deepEqual(await authorizer.decide(ada, asked('b')), { verdict: 'allow' })
  })

  test('a slow webhook denies in bounded time, and concurrent equal requests are sent once', async () => {
    await using stack = new AsyncDisposableStack()
    const { webhook, authorizer } = await setUp(stack)
    webhook.answer = () => {}
    const startedAt = performance.now()
    const crowd = await Promise.all(
      Array.from({ length: 500 }, () => authorizer.decide(ada, asked('a'))),
    )
    assert.ok(crowd.every(({ verdict }) => verdict === 'no-opinion'))
    assert.deepEqual(crowd[0], unsure)
    assert.ok(performance.now() - startedAt < 3000)
    assert.equal(webhook.requests, 1)
  })

  test('a slow webhook gets few connections for many different requests, and the excess is refused at once', async () => {
    await using stack = new AsyncDisposableStack()
    const { webhook, authorizer } = await setUp(stack)
    webhook.answer = () => {}
    const startedAt = performance.now()
    const all = Array.from({ length: 1000 }, (_, index) =>
      authorizer.decide(ada, asked(`n-${index}`)).then((decision) => ({
        decision,
        ms: performance.now() - startedAt,
      })),
    )
    const outcomes = await Promise.all(all)
    assert.ok(outcomes.every(({ decision }) => decision.isUnsure === true))
    assert.ok(outcomes.every(({ ms }) => ms < 5000))
    // Half of the connections may be opened while the others are being closed after a timeout.
    assert.ok(webhook.connections <= 64, `${webhook.connections} connections`)
    webhook.answer = (_request, response) => response.end(yes)
    assert.deepEqual(await authorizer.decide(ada, asked('n-1')), { verdict: 'allow' })
  })

  test('a user whose requests the webhook does not respond to does not delay other users', async () => {
    await using stack = new AsyncDisposableStack()
    // Longer than a busy machine needs for the requests of the others.
    const { webhook, authorizer } = await setUp(stack, 2_000)
    webhook.answer = (_request, response, body) => {
      if (!body.includes('"eve"')) response.end(yes)
    }
    const eve = { name: 'eve', groups: [] }
    const many = Array.from({ length: 500 }, (_, index) =>
      authorizer.decide(eve, asked(`n-${index}`)),
    )
    const others = Array.from({ length: 8 }, (_, index) =>
      authorizer.decide({ name: `user-${index}`, groups: [] }, asked('n')),
    )
    for (const decision of await Promise.all(others)) assert.equal(decision.verdict, 'allow')
    await Promise.all(many)
  })

  const wrong: readonly (readonly [string, Answer])[] = [
    ['500', (_request, response) => response.writeHead(500).end(yes)],
    ['a redirect', (_request, response) => response.writeHead(302, { location: '/x' }).end(yes)],
    ['no JSON', (_request, response) => response.end('<html>')],
    ['a list', (_request, response) => response.end('[]')],
    ['nothing', (_request, response) => response.end()],
    ['no status', (_request, response) => response.end('{}')],
    ['megabytes', (_request, response) => response.end(`{"a":"${'x'.repeat(2 * 1024 * 1024)}"}`)],
    [
      'half a response',
      (_request, response) => {
        response.writeHead(200, { 'content-length': '1000' })
        response.write(yes)
        setTimeout(() => response.destroy(), 20)
      },
    ],
    [
      'a space every 50 ms',
      (_request, response) => {
        const timer = setInterval(() => response.write(' '), 50)
        response.on('close', () => clearInterval(timer))
      },
    ],
    ['a closed connection', (request) => request.socket.destroy()],
  ]
  for (const [name, answer] of wrong) {
    test(`the response "${name}" denies the request and is not cached`, async () => {
      await using stack = new AsyncDisposableStack()
      const { webhook, authorizer } = await setUp(stack)
      webhook.answer = answer
      const startedAt = performance.now()
      assert.deepEqual(await authorizer.decide(ada, asked('a')), unsure)
      assert.ok(performance.now() - startedAt < 2000)
      webhook.answer = (_request, response) => response.end(yes)
      assert.deepEqual(await authorizer.decide(ada, asked('a')), { verdict: 'allow' })
    })
  }

  test('requests are denied at once while the webhook is down', async () => {
    await using stack = new AsyncDisposableStack()
    const { webhook, authorizer } = await setUp(stack)
    await webhook[Symbol.asyncDispose]()
    const startedAt = performance.now()
    for (let count = 0; count < 50; count++) {
      assert.deepEqual(await authorizer.decide(ada, asked('a')), unsure)
    }
    assert.ok(performance.now() - startedAt < 2000)
  })

  test('a certificate of another authority, or for another name, is rejected', async () => {
    await using stack = new AsyncDisposableStack()
    const other = stack.use(await Webhook.start(await CertificateAuthority.create('other')))
    const misnamed = stack.use(await Webhook.start(ca, ['example.dev']))
    for (const { port } of [other, misnamed]) {
      const client = await open(stack, port)
      await assert.rejects(client.post({}, { timeoutMs: 2000, sharer: 'ada' }), ReviewError)
    }
    assert.equal(other.requests + misnamed.requests, 0)
  })

  test('a new kubeconfig is loaded within seconds, and a broken one keeps the old one in use', async () => {
    await using stack = new AsyncDisposableStack()
    const { webhook, client } = await setUp(stack)
    const tokens: unknown[] = []
    webhook.answer = (request, response) => {
      tokens.push(request.headers.authorization)
      response.end(yes)
    }
    await writeConfig(webhook.port, { token: 'renewed' })
    await eventually('the new token is sent', async () => {
      await client.post({}, { timeoutMs: 1000, sharer: 'ada' })
      return tokens.at(-1) === 'Bearer renewed'
    })
    await writeConfig(webhook.port, { token: 7 })
    await eventually('the broken file is logged', () => warnings.length > 0)
    await client.post({}, { timeoutMs: 1000, sharer: 'ada' })
    assert.equal(tokens.at(-1), 'Bearer renewed')
  })
})
