import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { generateKeyPair } from 'jose'
import { eventually } from '../../support/eventually.ts'
import { Folder, type SentHeaders, startGate, type TestGate, userIn } from '../../support/gate.ts'
import { PROTOCOLS, type Protocol } from '../../support/http-client.ts'
import { OidcIssuer } from '../../support/oidc-issuer.ts'
import type { Answer } from '../../support/raw-http1.ts'
import { type WebhookAnswer, WebhookServer } from '../../support/webhook-server.ts'

/** The body of a Kubernetes API server, byte for byte. */
const UNAUTHORIZED = `{
  "kind": "Status",
  "apiVersion": "v1",
  "metadata": {},
  "status": "Failure",
  "message": "Unauthorized",
  "reason": "Unauthorized",
  "code": 401
}`
const bearer = (token: string): SentHeaders => [['authorization', `Bearer ${token}`]]

let folder: Folder
before(async () => {
  folder = await Folder.create()
})
after(() => folder[Symbol.asyncDispose]())

describe('a 401 response', () => {
  for (const protocol of PROTOCOLS) {
    test(`over ${protocol} a 401 equals that of Kubernetes and closes the connection`, async () => {
      await using gate = await startGate([])
      using client = await gate.connect(protocol)
      const answer = await client.request([['user-agent', 'curl/8.5.0']])
      assert.equal(answer.status, 401)
      assert.equal(answer.headers['content-type'], 'application/json')
      assert.equal(answer.headers['content-length'], '157')
      assert.equal(answer.body.toString(), UNAUTHORIZED)
      await eventually('the connection is closed', async () => {
        try {
          await client.request()
          return false
        } catch {
          return true
        }
      })
    })
  }

  test('two tokens in two headers get 401, and so does an oversized one', async () => {
    const file = await folder.write('two.csv', 'one,ada,1\ntwo,bob,2\n')
    await using gate = await startGate([`--token-auth-file=${file}`, '--anonymous-auth'])
    assert.equal(userIn(await gate.ask('h1', bearer('one')))?.name, 'ada')
    const both: SentHeaders = [...bearer('one'), ['Authorization', 'Bearer two']]
    assert.equal((await gate.ask('h1', both)).status, 401)
    assert.equal((await gate.ask('h1', bearer('x'.repeat(20_000)))).status, 401)
    for (const value of ['Basic b25lOnR3bw==', 'Bearer', 'Bearer ', 'one']) {
      const answer = await gate.ask('h1', [['authorization', value]])
      assert.equal(userIn(answer)?.name, 'system:anonymous', value)
    }
  })
})

describe('an OIDC issuer', () => {
  let issuer: OidcIssuer
  let flags: readonly string[]
  before(async () => {
    issuer = await OidcIssuer.start()
    flags = [
      `--oidc-issuer-url=${issuer.url}`,
      '--oidc-client-id=tidings',
      `--oidc-ca-file=${await folder.write('issuer.crt', issuer.ca)}`,
      '--oidc-groups-claim=groups',
    ]
  })
  after(() => issuer[Symbol.asyncDispose]())

  for (const protocol of PROTOCOLS) {
    test(`${protocol}: tokens of the issuer are accepted, and others are rejected`, async () => {
      await using gate = await startGate([...flags, '--anonymous-auth'])
      const ask = async (token: string): Promise<Answer> => gate.ask(protocol, bearer(token))
      const user = userIn(await ask(await issuer.sign({ sub: 'ada', groups: ['dev'] })))
      assert.deepEqual(user, {
        name: `${issuer.url}#ada`,
        groups: ['dev', 'system:authenticated'],
      })
      const { privateKey: key } = await generateKeyPair('RS256')
      for (const token of [
        await issuer.sign({ sub: 'ada' }, { endsIn: -60 }),
        await issuer.sign({ sub: 'ada' }, { audience: 'else' }),
        await issuer.sign({ sub: 'ada' }, { issuer: 'https://else' }),
        await issuer.sign({ sub: 'ada' }, { key }),
        await issuer.sign({ sub: 'ada' }, { key, kid: 'unknown' }),
        await issuer.sign({ sub: 'ada', groups: ['system:masters'] }),
        await issuer.sign({}),
      ]) {
        assert.equal((await ask(token)).status, 401)
      }
    })
  }

  test('a key rotation during requests: valid tokens are accepted throughout, and new ones soon', async () => {
    await using gate = await startGate(flags)
    using client = await gate.connect('h2')
    const old = await issuer.sign({ sub: 'old' })
    assert.equal(userIn(await client.request(bearer(old)))?.name, `${issuer.url}#old`)
    const rotation = { isDone: false, served: 0 }
    const traffic = (async () => {
      while (!rotation.isDone) {
        // Each token is different, so that each is verified and none comes from the cache.
        const token = await issuer.sign({ sub: 'old', n: rotation.served }, { kid: oldKid })
        assert.equal(userIn(await client.request(bearer(token)))?.name, `${issuer.url}#old`)
        rotation.served += 1
        await sleep(5)
      }
    })()
    await issuer.addKey()
    const startedAt = performance.now()
    const fresh = await issuer.sign({ sub: 'new' })
    await eventually(
      'the new key is loaded',
      async () => (await gate.ask('h1', bearer(fresh))).status === 200,
      8_000,
    )
    rotation.isDone = true
    await traffic
    assert.ok(performance.now() - startedAt < 6_500)
    assert.ok(rotation.served > 20)
  })

  test('tokens with unknown keys do not make the server query the issuer again and again', async () => {
    await using gate = await startGate(flags)
    assert.equal((await gate.ask('h1', bearer(await issuer.sign({ sub: 'a' })))).status, 200)
    const before = issuer.reads.length
    const { privateKey: key } = await generateKeyPair('RS256')
    const startedAt = performance.now()
    for (let index = 0; index < 50; index++) {
      const token = await issuer.sign({ sub: 'ada' }, { key, kid: `made-up-${index}` })
      assert.equal((await gate.ask('h1', bearer(token))).status, 401)
    }
    const rounds = 1 + Math.floor((performance.now() - startedAt) / 5_000)
    assert.ok(issuer.reads.length - before <= 2 * rounds, String(issuer.reads.length - before))
  })

  test('returns 401 without a long wait when the issuer is unreachable or has the wrong certificate', async () => {
    const other = await folder.write('other.crt', (await OidcIssuerCa.other()).ca)
    for (const wrong of [
      flags.map((flag) => flag.replace(/(--oidc-ca-file=).*/, `$1${other}`)),
      flags.map((flag) => flag.replace(/(--oidc-issuer-url=).*/, '$1https://127.0.0.1:1')),
    ]) {
      await using gate = await startGate(wrong)
      const token = await issuer.sign({ sub: 'ada' }, { issuer: wrong[0]?.split('=')[1] ?? '' })
      for (let round = 0; round < 3; round++) {
        const startedAt = performance.now()
        assert.equal((await gate.ask('h1', bearer(token))).status, 401)
        assert.ok(performance.now() - startedAt < 6_000)
      }
      const logged = gate.lines.filter((line) => line.includes('issuer not loaded'))
      assert.equal(logged.length, 1)
      assert.ok(!gate.lines.join('').includes(token))
    }
  })

  let oldKid = ''
  before(async () => {
    oldKid = await issuer.addKey()
  })
})

/** Another authority, which has not signed the certificate of the issuer. */
const OidcIssuerCa = {
  other: async (): Promise<{ readonly ca: string }> => {
    await using other = await OidcIssuer.start()
    return { ca: other.ca }
  },
}

describe('a token webhook', () => {
  const knows: WebhookAnswer = (question, response) => {
    const { token } = (question as { spec: { token: string } }).spec
    const status = token.startsWith('good')
      ? { authenticated: true, user: { username: token, groups: ['hooked'] } }
      : { authenticated: false }
    response.end(
      JSON.stringify({ kind: 'TokenReview', apiVersion: 'authentication.k8s.io/v1', status }),
    )
  }

  async function withWebhook(
    answer: WebhookAnswer,
    work: (gate: TestGate, webhook: WebhookServer) => Promise<void>,
  ): Promise<void> {
    await using webhook = await WebhookServer.start(answer)
    const file = await folder.write('webhook.yaml', webhook.kubeconfig)
    await using gate = await startGate([`--authentication-token-webhook-config-file=${file}`])
    await work(gate, webhook)
  }

  const askAll = (gate: TestGate, protocol: Protocol, tokens: string[]): Promise<Answer[]> =>
    Promise.all(tokens.map((token) => gate.ask(protocol, bearer(token))))

  test('is queried once for all requests with one token', async () => {
    await withWebhook(knows, async (gate, webhook) => {
      const answers = await askAll(
        gate,
        'h2',
        Array.from({ length: 30 }, () => 'good-1'),
      )
      for (const answer of answers) {
        assert.deepEqual(userIn(answer), {
          name: 'good-1',
          groups: ['hooked', 'system:authenticated'],
        })
      }
      assert.equal((await gate.ask('h1', bearer('bad'))).status, 401)
      assert.equal((await gate.ask('h1', bearer('bad'))).status, 401)
      assert.equal(webhook.questions.length, 2)
    })
  })

  test('users on one connection are never mixed up, in whatever order the webhook responds', async () => {
    const late: WebhookAnswer = (question, response) => {
      setTimeout(() => knows(question, response), Math.random() * 50)
    }
    await withWebhook(late, async (gate) => {
      using client = await gate.connect('h2')
      const tokens = Array.from({ length: 60 }, (_, index) => `good-${index % 20}`)
      const names = await Promise.all(
        tokens.map(async (token) => userIn(await client.request(bearer(token)))?.name),
      )
      assert.deepEqual(names, tokens)
    })
  })

  test('a slow token webhook is queried once for many requests with one token, and all get 503 in bounded time', async () => {
    await withWebhook(
      () => {},
      async (gate, webhook) => {
        const startedAt = performance.now()
        const answers = await askAll(
          gate,
          'h2',
          Array.from({ length: 20 }, () => 'good'),
        )
        const tookMs = performance.now() - startedAt
        for (const { status } of answers) assert.equal(status, 503)
        assert.ok(tookMs > 9_000 && tookMs < 13_000, String(tookMs))
        assert.equal(webhook.questions.length, 1)
      },
    )
  })

  for (const [what, answer] of [
    ['an error', (_, response) => response.writeHead(500).end('{}')],
    ['a redirect', (_, response) => response.writeHead(307, { location: '/x' }).end()],
    ['no JSON', (_, response) => response.end('hello')],
    ['half a response', (_, response) => response.write('{"kind":') && response.destroy()],
    ['nothing', (_, response) => response.destroy()],
    ['far too much', (_, response) => response.end('x'.repeat(2_000_000))],
    [
      'a success without a user',
      (_, response) =>
        response.end(
          '{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"authenticated":true,"user":{}}}',
        ),
    ],
  ] as readonly (readonly [string, WebhookAnswer])[]) {
    test(`${what} from the webhook is a 503 that is not cached`, async () => {
      await withWebhook(answer, async (gate, webhook) => {
        const answer = await gate.ask('h1', bearer('good'))
        assert.deepEqual([answer.status, answer.headers['retry-after']], [503, '1'])
        webhook.answer = knows
        assert.equal(userIn(await gate.ask('h1', bearer('good')))?.name, 'good')
      })
    })
  }

  test('while the webhook is down requests get 503 at once, and the log has one line and no token', async () => {
    const webhook = await WebhookServer.start(knows)
    const file = await folder.write('down.yaml', webhook.kubeconfig)
    await webhook[Symbol.asyncDispose]()
    await using gate = await startGate([`--authentication-token-webhook-config-file=${file}`])
    const startedAt = performance.now()
    const tokens = Array.from({ length: 50 }, (_, index) => `canary-${index}`)
    for (const { status } of await askAll(gate, 'h1', tokens)) assert.equal(status, 503)
    assert.ok(performance.now() - startedAt < 5_000)
    assert.equal(gate.lines.filter((line) => line.includes('webhook failing')).length, 1)
    assert.doesNotMatch(gate.lines.join(''), /canary/)
  })

  test('a flood of unknown tokens stays below the maximum of concurrent webhook requests', async () => {
    const late: WebhookAnswer = (question, response) => {
      setTimeout(() => knows(question, response), 20)
    }
    await withWebhook(late, async (gate, webhook) => {
      using client = await gate.connect('h2')
      await Promise.all(
        Array.from({ length: 90 }, async (_, index) => {
          const answer = await client.request(bearer(`good-${index}`))
          assert.ok([200, 503].includes(answer.status))
        }),
      )
      assert.ok(webhook.openMax <= 64, String(webhook.openMax))
    })
  })
})
