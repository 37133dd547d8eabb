import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../../lib/json.ts'
import { type LogFields, silentLog } from '../../lib/log.ts'
import { TokenWebhook } from './token-webhook.ts'

const unknown = { reason: 'ServiceUnavailable', details: { retryAfterSeconds: 1 } }
const review = (status: JsonObject): JsonObject => ({
  kind: 'TokenReview',
  apiVersion: 'authentication.k8s.io/v1',
  status,
})
const yes = (user: JsonObject = { username: 'ada' }): JsonObject =>
  review({ authenticated: true, user })

/** A webhook whose answers are made here, and whose questions are kept. */
function webhookOf(
  answer: (token: string) => Promise<JsonObject>,
  options: { cacheMs?: number; audiences?: string[] } = {},
) {
  const state = { nowMs: 0, asked: [] as object[], sharers: [] as string[], lines: [] as string[] }
  const note = (msg: string, fields: LogFields = {}): void => {
    state.lines.push(msg + JSON.stringify({ ...fields, err: String(fields['err']) }))
  }
  const webhook = new TokenWebhook({
    reviewer: {
      post: async (body, { sharer }) => {
        state.asked.push(body)
        state.sharers.push(sharer)
        return answer((body as { spec: { token: string } }).spec.token)
      },
      stop: () => {},
    },
    audiences: [],
    cacheMs: 120_000,
    clock: { now: () => state.nowMs },
    log: { ...silentLog, info: note, warn: note },
    ...options,
  })
  return { webhook, state }
}

describe('token webhook', () => {
  test('is asked by a TokenReview, and its user is taken as it is', async () => {
    const user = {
      username: 'ada',
      uid: '7',
      groups: ['a', 'b'],
      extra: { scopes: ['x'] },
    }
    const { webhook, state } = webhookOf(async () => yes(user), { audiences: ['api'] })
    assert.deepEqual(await webhook.userOf('secret', '192.0.2.7'), {
      name: 'ada',
      uid: '7',
      groups: ['a', 'b'],
      extra: { scopes: ['x'] },
    })
    assert.deepEqual(state.sharers, ['192.0.2.7'])
    assert.deepEqual(state.asked, [
      {
        kind: 'TokenReview',
        apiVersion: 'authentication.k8s.io/v1',
        metadata: {},
        spec: { token: 'secret', audiences: ['api'] },
        status: { user: {} },
      },
    ])
  })

  test('many with one token are one question, and its answer holds for a while', async () => {
    const { webhook, state } = webhookOf(async (token) =>
      token === 'good' ? yes() : review({ authenticated: false }),
    )
    for (const token of ['good', 'bad']) {
      const users = await Promise.all(Array.from({ length: 50 }, () => webhook.userOf(token)))
      for (const user of users) assert.equal(user?.name, token === 'good' ? 'ada' : undefined)
    }
    state.nowMs = 119_999
    await webhook.userOf('good')
    await webhook.userOf('bad')
    assert.equal(state.asked.length, 2)
    state.nowMs = 120_000
    await webhook.userOf('good')
    assert.equal(state.asked.length, 3)
  })

  test('is asked on behalf of the network that a token came from', async () => {
    const { webhook, state } = webhookOf(async () => yes(), { cacheMs: 0 })
    const networks = [
      ['192.0.2.7', '192.0.2.7'],
      ['::ffff:192.0.2.7', '::ffff:192.0.2.7'],
      ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
      ['2001:db8:1:2::9', '2001:db8:1:2'],
      ['2001:db8::9', '2001:db8:0:0'],
    ] as const
    for (const [address] of networks) await webhook.userOf('a', address)
    assert.deepEqual(
      state.sharers,
      networks.map(([, network]) => network),
    )
  })

  test('with no time for its answers it is asked each time', async () => {
    const { webhook, state } = webhookOf(async () => yes(), { cacheMs: 0 })
    await webhook.userOf('a')
    await webhook.userOf('a')
    assert.equal(state.asked.length, 2)
  })

  test('what it cannot answer is worth another try, not remembered, and told once', async () => {
    let isDown = true
    const { webhook, state } = webhookOf(async () => {
      if (isDown) throw new Error('down')
      return yes()
    })
    for (let round = 0; round < 3; round++) await assert.rejects(webhook.userOf('canary'), unknown)
    isDown = false
    assert.equal((await webhook.userOf('canary'))?.name, 'ada')
    assert.equal(state.asked.length, 4)
    assert.equal(state.lines.length, 2)
    assert.doesNotMatch(state.lines.join(), /canary/)
  })

  for (const [what, answer] of [
    ['another kind', { ...yes(), kind: 'Status' }],
    ['another version', { ...yes(), apiVersion: 'authentication.k8s.io/v1beta1' }],
    ['no status', { kind: 'TokenReview', apiVersion: 'authentication.k8s.io/v1' }],
    ['a yes that is none', review({ authenticated: 'true', user: { username: 'ada' } })],
    ['no user', review({ authenticated: true })],
    ['a user without a name', yes({ username: '' })],
    ['a name that is no text', yes({ username: ['ada'] })],
    ['groups that are no list', yes({ username: 'ada', groups: 'system:masters' })],
    ['groups that are no texts', yes({ username: 'ada', groups: [1] })],
    ['more that is no list', yes({ username: 'ada', extra: { a: 'b' } })],
  ] as const) {
    test(`an answer with ${what} lets nobody in`, async () => {
      await assert.rejects(webhookOf(async () => answer as JsonObject).webhook.userOf('a'), unknown)
    })
  }

  test('a token for others is nobody here', async () => {
    for (const [audiences, isOurs] of [
      [['api'], true],
      [['else', 'api'], true],
      [[], true],
      [['else'], false],
    ] as const) {
      const answer = review({
        authenticated: true,
        user: { username: 'ada' },
        audiences: [...audiences],
      })
      const { webhook } = webhookOf(async () => answer, { audiences: ['api'] })
      assert.equal((await webhook.userOf('a'))?.name, isOurs ? 'ada' : undefined)
    }
  })

  test('made-up tokens do not push out good ones, and are forgotten themselves', async () => {
    const { webhook, state } = webhookOf(async (token) =>
      token === 'good' ? yes() : review({ authenticated: false }),
    )
    await webhook.userOf('good')
    for (let index = 0; index <= 10_000; index++) await webhook.userOf(`made-up-${index}`)
    const before = state.asked.length
    await webhook.userOf('good')
    assert.equal(state.asked.length, before)
    await webhook.userOf('made-up-0')
    assert.equal(state.asked.length, before + 1)
  })
})
