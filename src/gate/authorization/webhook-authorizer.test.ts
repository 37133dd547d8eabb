import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../../lib/json.ts'
import { silentLog } from '../../lib/log/log.ts'
import type { Attributes } from '../attributes.ts'
import type { User } from '../user.ts'
import { WebhookAuthorizer } from './webhook-authorizer.ts'

const ada: User = { name: 'ada', uid: '7', groups: ['dev'], extra: { scope: ['a'] } }
const attributes: Attributes = {
  isResource: true,
  cluster: 'local',
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

function authorizerOf(respond: (review: JsonObject) => JsonObject | Error) {
  const reviews: JsonObject[] = []
  const sharers: string[] = []
  const warnings: unknown[] = []
  const time = { ms: 0 }
  const authorizer = new WebhookAuthorizer({
    client: {
      post: async (body, { sharer }) => {
        sharers.push(sharer)
        reviews.push(body as JsonObject)
        const response = respond(body as JsonObject)
        if (response instanceof Error) throw response
        return { ...ENVELOPE, ...response }
      },
    },
    clusterName: 'local',
    authorizedTtlMs: 1000,
    unauthorizedTtlMs: 100,
    clock: { now: () => time.ms },
    log: { ...silentLog, warn: (msg, fields) => warnings.push([msg, fields]) },
  })
  return { authorizer, reviews, sharers, warnings, time }
}

describe('WebhookAuthorizer', () => {
  test('a SubjectAccessReview has the user and the attributes, without empty members', async () => {
    const { authorizer, reviews, sharers } = authorizerOf(() => ({ status: { allowed: true } }))
    await authorizer.decide(ada, attributes)
    await authorizer.decide(
      { name: 'bob', groups: [] },
      { isResource: false, cluster: 'local', verb: 'get', path: '/metrics' },
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

  test('a review for another cluster than the default one names it, whatever the user claims', async () => {
    const { authorizer, reviews } = authorizerOf(() => ({ status: { allowed: true } }))
    const liar = { ...ada, extra: { scope: ['a'], 'tidings.dev/cluster': ['local'] } }
    const shouter = { ...ada, extra: { 'Tidings.dev/Cluster': ['b'] } }
    for (const user of [ada, liar, shouter]) {
      for (const cluster of ['local', 'b', '*']) {
        await authorizer.decide(user, { ...attributes, cluster, isPrefixed: true })
      }
    }
    const key = 'tidings.dev/cluster'
    assert.deepEqual(
      reviews.map(({ spec }) => (spec as JsonObject)['extra']),
      [
        { scope: ['a'] },
        { scope: ['a'], [key]: ['b'] },
        { scope: ['a'], [key]: ['*'] },
        // The same reviews as for ada, so the decisions are cached.
        {},
        { [key]: ['b'] },
        { [key]: ['*'] },
      ],
    )
  })

  test('a decision for one cluster is not used for another', async () => {
    const { authorizer } = authorizerOf(({ spec }) => {
      const { extra } = spec as { extra?: Record<string, string[]> }
      return { status: { allowed: extra?.['tidings.dev/cluster']?.[0] === 'a' } }
    })
    const verdicts = []
    for (const cluster of ['a', 'b', 'local', '*', 'a']) {
      verdicts.push((await authorizer.decide(ada, { ...attributes, cluster })).verdict)
    }
    const no = 'no-opinion'
    assert.deepEqual(verdicts, ['allow', no, no, no, 'allow'])
  })

  const responses: readonly (readonly [JsonObject | Error, object])[] = [
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
  for (const [response, expected] of responses) {
    test(`${response instanceof Error ? 'a failure' : JSON.stringify(response)} is ${JSON.stringify(expected)}`, async () => {
      const { authorizer } = authorizerOf(() => response)
      assert.deepEqual(await authorizer.decide(ada, attributes), expected)
    })
  }

  test('permissions and refusals are cached for their TTLs, and failures are not cached', async () => {
    for (const [response, ttlMs] of [
      [{ status: { allowed: true } }, 1000],
      [{ status: { allowed: false } }, 100],
      [new Error('down'), 0],
    ] as const) {
      const { authorizer, reviews, time } = authorizerOf(() => response)
      await authorizer.decide(ada, attributes)
      time.ms = ttlMs - 1
      await authorizer.decide(ada, attributes)
      assert.equal(reviews.length, ttlMs === 0 ? 2 : 1)
      time.ms = ttlMs
      await authorizer.decide(ada, attributes)
      assert.equal(reviews.length, ttlMs === 0 ? 3 : 2)
    }
  })

  test('a cached decision is used only for the same user, groups and attributes', async () => {
    const { authorizer, reviews } = authorizerOf(() => ({ status: { allowed: true } }))
    await authorizer.decide(ada, attributes)
    await authorizer.decide({ ...ada, groups: ['dev', 'ops'] }, attributes)
    await authorizer.decide({ ...ada, groups: ['de', 'v'] }, attributes)
    await authorizer.decide({ ...ada, uid: '8' }, attributes)
    await authorizer.decide({ ...ada, extra: {} }, attributes)
    await authorizer.decide(ada, { ...attributes, namespace: 'b' })
    await authorizer.decide(ada, { ...attributes, name: 'x' })
    assert.equal(reviews.length, 7)
  })

  test('refusals of one user do not evict permissions of others', async () => {
    const { authorizer, reviews } = authorizerOf((review) => ({
      status: { allowed: JSON.stringify(review).includes('ada') },
    }))
    await authorizer.decide(ada, attributes)
    for (let count = 0; count <= 8192; count++) {
      await authorizer.decide({ name: 'eve', groups: [] }, { ...attributes, name: `x-${count}` })
    }
    const before = reviews.length
    await authorizer.decide(ada, attributes)
    assert.equal(reviews.length, before)
  })

  test('a webhook that is down is logged every 10 seconds', async () => {
    const { authorizer, warnings, time } = authorizerOf(() => new Error('down'))
    for (let count = 0; count < 50; count++) await authorizer.decide(ada, attributes)
    assert.equal(warnings.length, 1)
    time.ms = 10_000
    await authorizer.decide(ada, attributes)
    assert.equal(warnings.length, 2)
  })
})
