import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../../lib/json.ts'
import { silentLog } from '../../lib/log.ts'
import type { Attributes } from '../attributes.ts'
import type { User } from '../user.ts'
import { WebhookAuthorizer } from './webhook-authorizer.ts'

const ada: User = { name: 'ada', uid: '7', groups: ['dev'], extra: { scope: ['a'] } }
const asked: Attributes = {
  isResource: true,
  verb: 'list',
  group: 'events.k8s.io',
  version: 'v1',
  resource: 'events',
  subresource: '',
  namespace: 'a',
  name: '',
  path: '/ignored',
}

const ENVELOPE = { kind: 'SubjectAccessReview', apiVersion: 'authorization.k8s.io/v1' }

function authorizerOf(answer: (review: JsonObject) => JsonObject | Error) {
  const reviews: JsonObject[] = []
  const sharers: string[] = []
  const warnings: unknown[] = []
  const time = { ms: 0 }
  const authorizer = new WebhookAuthorizer({
    client: {
      post: async (body, { sharer }) => {
        sharers.push(sharer)
        reviews.push(body as JsonObject)
        const answered = answer(body as JsonObject)
        if (answered instanceof Error) throw answered
        return { ...ENVELOPE, ...answered }
      },
    },
    authorizedTtlMs: 1000,
    unauthorizedTtlMs: 100,
    clock: { now: () => time.ms },
    log: { ...silentLog, warn: (msg, fields) => warnings.push([msg, fields]) },
  })
  return { authorizer, reviews, sharers, warnings, time }
}

describe('WebhookAuthorizer', () => {
  test('asks by SubjectAccessReview, with what is there', async () => {
    const { authorizer, reviews, sharers } = authorizerOf(() => ({ status: { allowed: true } }))
    await authorizer.decide(ada, asked)
    await authorizer.decide(
      { name: 'bob', groups: [] },
      { isResource: false, verb: 'get', path: '/metrics' },
    )
    assert.deepEqual(sharers, ['ada', 'bob'])
    assert.deepEqual(reviews, [
      {
        ...ENVELOPE,
        spec: {
          resourceAttributes: {
            namespace: 'a',
            verb: 'list',
            group: 'events.k8s.io',
            version: 'v1',
            resource: 'events',
          },
          user: 'ada',
          groups: ['dev'],
          extra: { scope: ['a'] },
          uid: '7',
        },
      },
      {
        ...ENVELOPE,
        spec: { nonResourceAttributes: { path: '/metrics', verb: 'get' }, user: 'bob' },
      },
    ])
  })

  const answers: readonly (readonly [JsonObject | Error, object])[] = [
    [{ status: { allowed: true } }, { verdict: 'allow' }],
    [{ status: { allowed: true, reason: 'is nice' } }, { verdict: 'allow', reason: 'is nice' }],
    [{ status: { allowed: false } }, { verdict: 'no-opinion' }],
    [{ status: { allowed: false, reason: 'why' } }, { verdict: 'no-opinion', reason: 'why' }],
    [{ status: { allowed: false, denied: true } }, { verdict: 'deny' }],
    [{ status: { allowed: true, denied: true } }, { verdict: 'deny' }],
    [{ status: { allowed: true, denied: 'false' } }, { verdict: 'deny' }],
    [{ status: { allowed: 'true' } }, { verdict: 'no-opinion', isUnsure: true }],
    [{ status: {} }, { verdict: 'no-opinion', isUnsure: true }],
    [{}, { verdict: 'no-opinion', isUnsure: true }],
    [
      { kind: 'Status', status: { allowed: true } },
      { verdict: 'no-opinion', isUnsure: true },
    ],
    [
      { apiVersion: 'authorization.k8s.io/v1beta1', status: { allowed: true } },
      { verdict: 'no-opinion', isUnsure: true },
    ],
    [new Error('down'), { verdict: 'no-opinion', isUnsure: true }],
  ]
  for (const [answer, expected] of answers) {
    test(`${answer instanceof Error ? 'a failure' : JSON.stringify(answer)} is ${JSON.stringify(expected)}`, async () => {
      const { authorizer } = authorizerOf(() => answer)
      assert.deepEqual(await authorizer.decide(ada, asked), expected)
    })
  }

  test('remembers a yes and a no for their own times, and a failure not at all', async () => {
    for (const [answer, good] of [
      [{ status: { allowed: true } }, 1000],
      [{ status: { allowed: false } }, 100],
      [new Error('down'), 0],
    ] as const) {
      const { authorizer, reviews, time } = authorizerOf(() => answer)
      await authorizer.decide(ada, asked)
      time.ms = good - 1
      await authorizer.decide(ada, asked)
      assert.equal(reviews.length, good === 0 ? 2 : 1)
      time.ms = good
      await authorizer.decide(ada, asked)
      assert.equal(reviews.length, good === 0 ? 3 : 2)
    }
  })

  test('an answer counts for the same user, groups and question alone', async () => {
    const { authorizer, reviews } = authorizerOf(() => ({ status: { allowed: true } }))
    await authorizer.decide(ada, asked)
    await authorizer.decide({ ...ada, groups: ['dev', 'ops'] }, asked)
    await authorizer.decide({ ...ada, groups: ['de', 'v'] }, asked)
    await authorizer.decide({ ...ada, uid: '8' }, asked)
    await authorizer.decide({ ...ada, extra: {} }, asked)
    await authorizer.decide(ada, { ...asked, namespace: 'b' })
    await authorizer.decide(ada, { ...asked, name: 'x' })
    assert.equal(reviews.length, 7)
  })

  test('refusals of one do not push out the permissions of others', async () => {
    const { authorizer, reviews } = authorizerOf((review) => ({
      status: { allowed: JSON.stringify(review).includes('ada') },
    }))
    await authorizer.decide(ada, asked)
    for (let count = 0; count <= 8192; count++) {
      await authorizer.decide({ name: 'eve', groups: [] }, { ...asked, name: `x-${count}` })
    }
    const before = reviews.length
    await authorizer.decide(ada, asked)
    assert.equal(reviews.length, before)
  })

  test('a webhook that is down is logged once in a while', async () => {
    const { authorizer, warnings, time } = authorizerOf(() => new Error('down'))
    for (let count = 0; count < 50; count++) await authorizer.decide(ada, asked)
    assert.equal(warnings.length, 1)
    time.ms = 10_000
    await authorizer.decide(ada, asked)
    assert.equal(warnings.length, 2)
  })
})
