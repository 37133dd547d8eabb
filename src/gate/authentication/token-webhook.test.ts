import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../../lib/json.ts'
import { type LogFields, silentLog } from '../../lib/log/log.ts'
import { TokenWebhook } from './token-webhook.ts'

const unknown = { reason: 'ServiceUnavailable', details: { retryAfterSeconds: 1 } }
const review = (status: JsonObject): JsonObject => ({
  kind: 'TokenReview',
  apiVersion: 'authentication.k8s.io/v1',
  status,
})
const yes = (user: JsonObject = { username: 'ada' }): JsonObject =>
  review({ authenticated: true, user })

/** A webhook with responses from `respond`. It records the reviews that it gets. */
function webhookOf(
  respond: (token: string) => Promise<JsonObject>,
  options: { cacheMs?: number; audiences?: string[] } = {},
) {
  const state = {
    nowMs: 0,
    reviews: [] as object[],
    sharers: [] as string[],
    lines: [] as string[],
  }
  const record = (msg: string, fields: LogFields = {}): void => {
    state.lines.push(msg + JSON.stringify({ ...fields, err: String(fields['err']) }))
  }
  const webhook = new TokenWebhook({
    reviewer: {
      post: async (body, { sharer }) => {
        state.reviews.push(body)
        state.sharers.push(sharer)
        return respond((body as { spec: { token: string } }).spec.token)
      },
      stop: () => {},
    },
    audiences: [],
    cacheMs: 120_000,
    clock: { now: () => state.nowMs },
    log: { ...silentLog, info: record, warn: record },
    ...options,
  })
  return { webhook, state }
}

describe('token webhook', () => {
  test('a TokenReview is sent, and the user of the response is used', async () => {
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
    assert.deepEqual(state.reviews, [
      {
        kind: 'TokenReview',
        apiVersion: 'authentication.k8s.io/v1',
        metadata: {},
        spec: { token: 'secret', audiences: ['api'] },
        status: { user: {} },
      },
    ])
  })

  test('requests with the same token share one review, and its result is cached', async () => {
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
    assert.equal(state.reviews.length, 2)
    state.nowMs = 120_000
    await webhook.userOf('good')
    assert.equal(state.reviews.length, 3)
  })

  test('a review is charged to the network of the client', async () => {
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

  test('a cache time of 0 caches nothing', async () => {
    const { webhook, state } = webhookOf(async () => yes(), { cacheMs: 0 })
    await webhook.userOf('a')
    await webhook.userOf('a')
    assert.equal(state.reviews.length, 2)
  })

  test('a failure is a 503 with Retry-After, is not cached, and is logged once', async () => {
    let isDown = true
    const { webhook, state } = webhookOf(async () => {
      if (isDown) throw new Error('down')
      return yes()
    })
    for (let round = 0; round < 3; round++) await assert.rejects(webhook.userOf('canary'), unknown)
    isDown = false
    assert.equal((await webhook.userOf('canary'))?.name, 'ada')
    assert.equal(state.reviews.length, 4)
    assert.equal(state.lines.length, 2)
    assert.doesNotMatch(state.lines.join(), /canary/)
  })

  for (const [what, response] of [
    ['another kind', { ...yes(), kind: 'Status' }],
    ['another version', { ...yes(), apiVersion: 'authentication.k8s.io/v1beta1' }],
    ['no status', { kind: 'TokenReview', apiVersion: 'authentication.k8s.io/v1' }],
    ['authenticated as a string', review({ authenticated: 'true', user: { username: 'ada' } })],
    ['no user', review({ authenticated: true })],
    ['a user without a name', yes({ username: '' })],
    ['a name that is not a string', yes({ username: ['ada'] })],
    ['groups that are not a list', yes({ username: 'ada', groups: 'system:masters' })],
    ['groups that are not strings', yes({ username: 'ada', groups: [1] })],
    ['extra values that are not a list', yes({ username: 'ada', extra: { a: 'b' } })],
  ] as const) {
    test(`a response with ${what} is a 503`, async () => {
      const { webhook } = webhookOf(async () => response as JsonObject)
      await assert.rejects(webhook.userOf('a'), unknown)
    })
  }

  test('a token for other audiences is refused', async () => {
    for (const [audiences, isOurs] of [
      [['api'], true],
      [['else', 'api'], true],
      [[], true],
      [['else'], false],
    ] as const) {
      const response = review({
        authenticated: true,
        user: { username: 'ada' },
        audiences: [...audiences],
      })
      const { webhook } = webhookOf(async () => response, { audiences: ['api'] })
      assert.equal((await webhook.userOf('a'))?.name, isOurs ? 'ada' : undefined)
    }
  })

  test('evicts invented tokens, but no valid ones for them', async () => {
    const { webhook, state } = webhookOf(async (token) =>
      token === 'good' ? yes() : review({ authenticated: false }),
    )
    await webhook.userOf('good')
    for (let index = 0; index <= 10_000; index++) await webhook.userOf(`invented-${index}`)
    const before = state.reviews.length
    await webhook.userOf('good')
    assert.equal(state.reviews.length, before)
    await webhook.userOf('invented-0')
    assert.equal(state.reviews.length, before + 1)
  })
})
