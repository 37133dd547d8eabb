import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Attributes } from '../../gate/attributes.ts'
import type { PolicyRule } from '../../gate/authorization/rule-set.ts'
import type { Decision } from '../../gate/decisions.ts'
import { makeRequest } from '../../gate/request.fixture.ts'
import { targetOf } from '../../gate/target.fixture.ts'
import type { User } from '../../gate/user.ts'
import type { Response } from '../../http/exchange.ts'
import { selfReviewGroups, selfReviewsService } from './self-reviews.ts'

const ada: User = { name: 'ada', uid: '7', groups: ['dev'], extra: { scope: ['a'] } }
const rule: PolicyRule = {
  verbs: ['get'],
  apiGroups: [''],
  resources: ['events'],
  resourceNames: [],
  nonResourceUrls: [],
}
const decided: [User, Attributes][] = []
let decision: Decision = { verdict: 'allow' }
const service = selfReviewsService({
  decide: async (user, attributes) => {
    decided.push([user, attributes])
    return decision
  },
  rulesFor: (_user, { namespace }) => ({
    rules: [
      rule,
      { ...rule, resourceNames: ['x'] },
      { ...rule, apiGroups: [], resources: [], nonResourceUrls: ['/livez'] },
    ],
    isIncomplete: namespace === 'webhook',
  }),
  wallTime: () => Date.UTC(2026, 0, 2, 3, 4, 5, 678),
})
const AUTHORIZATION = '/apis/authorization.k8s.io/v1'
const ACCESS = `${AUTHORIZATION}/selfsubjectaccessreviews`

async function post(
  url: string,
  body: string | object,
  method = 'POST',
  user = ada,
): Promise<Response> {
  const { pathname: path, searchParams: query } = new URL(url, 'http://host')
  const handler = service.find(targetOf(path))
  assert.ok(handler)
  const request = makeRequest({
    method,
    path,
    query,
    headers: typeof body === 'string' ? { 'content-type': 'application/yaml' } : {},
    peer: { isLoopback: true },
    body: async () => Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
  })
  return handler(request, { user, authorize: async () => {} })
}

const read = ({ body }: Response): unknown => JSON.parse(String(body))

describe('selfReviewsService', () => {
  test('an access review of a resource is decided, and returned with its status', async () => {
    decision = { verdict: 'allow' }
    const spec = {
      resourceAttributes: { verb: 'list', group: 'g', resource: 'events', namespace: 'a' },
    }
    const apiVersion = 'authorization.k8s.io/v1'
    const response = await post(ACCESS, { apiVersion, kind: 'SelfSubjectAccessReview', spec })
    assert.equal(response.status, 201)
    assert.deepEqual(read(response), {
      kind: 'SelfSubjectAccessReview',
      apiVersion,
      metadata: {},
      spec,
      status: { allowed: true },
    })
    assert.deepEqual(decided.at(-1), [
      ada,
      {
        isResource: true,
        cluster: 'local',
        verb: 'list',
        group: 'g',
        version: '',
        resource: 'events',
        subresource: '',
        namespace: 'a',
        name: '',
        path: '',
      },
    ])
  })

  test('an access review of a path, in YAML, may be denied or undecided', async () => {
    const body = 'spec: {nonResourceAttributes: {path: /metrics, verb: get}}'
    const statusAfter = async (given: Decision): Promise<unknown> => {
      decision = given
      return (read(await post(`${ACCESS}/`, body)) as { status: unknown }).status
    }
    assert.deepEqual(await statusAfter({ verdict: 'no-opinion' }), { allowed: false })
    assert.deepEqual(await statusAfter({ verdict: 'deny', reason: 'because' }), {
      allowed: false,
      denied: true,
      reason: 'because',
    })
    assert.deepEqual(await statusAfter({ verdict: 'deny', isUnsure: true }), {
      allowed: false,
      evaluationError: 'the authorization webhook could not be reached',
    })
    assert.deepEqual(await statusAfter({ verdict: 'no-opinion', isUnsure: true }), {
      allowed: false,
      evaluationError: 'the authorization webhook could not be reached',
    })
    assert.deepEqual(decided.at(-1)?.[1], {
      isResource: false,
      cluster: 'local',
      verb: 'get',
      path: '/metrics',
    })
  })

  test('a rules review lists the rules of resources and of paths separately', async () => {
    const path = `${AUTHORIZATION}/selfsubjectrulesreviews`
    const { status } = read(await post(path, { spec: { namespace: 'a' } })) as { status: object }
    const { verbs, apiGroups, resources } = rule
    assert.deepEqual(status, {
      resourceRules: [
        { verbs, apiGroups, resources },
        { verbs, apiGroups, resources, resourceNames: ['x'] },
      ],
      nonResourceRules: [{ verbs, nonResourceURLs: ['/livez'] }],
      incomplete: false,
    })
    const other = read(await post(path, { spec: { namespace: 'webhook' } })) as {
      status: { incomplete: boolean }
    }
    assert.equal(other.status.incomplete, true)
    await assert.rejects(post(path, { spec: {} }), {
      code: 400,
      message: 'no namespace on request',
    })
  })

  test('a self review returns the user', async () => {
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
    assert.deepEqual(read(await post(path, { kind: 'SelfSubjectReview' })), {
      kind: 'SelfSubjectReview',
      apiVersion: 'authentication.k8s.io/v1',
      metadata: { creationTimestamp: '2026-01-02T03:04:05Z' },
      status: { userInfo: { username: 'ada', uid: '7', groups: ['dev'], extra: { scope: ['a'] } } },
    })
  })

  test('a self review names the cluster that alone knows the user', async () => {
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
    // A cluster cannot say that its user is of another one.
    const user = { ...ada, origin: 'prod', extra: { 'tidings.dev/cluster': ['other'] } }
    const review = read(await post(path, { kind: 'SelfSubjectReview' }, 'POST', user)) as {
      status: { userInfo: { extra: unknown } }
    }
    assert.deepEqual(review.status.userInfo.extra, { 'tidings.dev/cluster': ['prod'] })
  })

  test('an invalid review is refused', async () => {
    const rest = { code: 400 }
    await assert.rejects(post(ACCESS, []), rest)
    await assert.rejects(post(ACCESS, { kind: 'Pod' }), rest)
    await assert.rejects(post(ACCESS, { spec: 7 }), rest)
    await assert.rejects(post(ACCESS, { spec: { resourceAttributes: { verb: 7 } } }), rest)
    await assert.rejects(post(ACCESS, 'a: ['), rest)
    const long = { resourceAttributes: { verb: 'get', name: 'x'.repeat(1025) } }
    await assert.rejects(post(ACCESS, { spec: long }), rest)
    const path = `/${'x'.repeat(8192)}`
    await assert.rejects(post(ACCESS, { spec: { nonResourceAttributes: { path } } }), rest)
    await assert.rejects(post(ACCESS, { metadata: 'x'.repeat(1024 * 1024) }), { code: 413 })
    for (const spec of [{}, { resourceAttributes: {}, nonResourceAttributes: {} }]) {
      await assert.rejects(post(ACCESS, { spec }), { code: 422, message: /exactly one of/ })
    }
    await assert.rejects(post(ACCESS, {}, 'GET'), { code: 405 })
    await assert.rejects(post(`${AUTHORIZATION}/tokenreviews`, {}), { code: 404 })
    assert.equal(service.find(targetOf('/apis/authorization.k8s.io')), undefined)
    assert.equal(service.find(targetOf('/apis/events.k8s.io/v1/events')), undefined)
  })

  test('an unknown or duplicate field is a warning, or a 400 when the request is strict', async () => {
    const body =
      '{"spec":{"resourceAttributes":{"verb":"get","verb":"list","verbs":"x"}},"metadata":{"a":1},"b":2}'
    const problems = [
      'duplicate field "spec.resourceAttributes.verb"',
      'unknown field "spec.resourceAttributes.verbs"',
      'unknown field "b"',
    ]
    const { headers, ...rest } = await post(ACCESS, body)
    const header = problems.map((problem) => `299 - "${problem.replaceAll('"', '\\"')}"`).join(', ')
    assert.equal(headers['warning'], header)
    const { spec } = read({ headers, ...rest }) as { spec: unknown }
    assert.deepEqual(spec, { resourceAttributes: { verb: 'list' } })
    assert.equal(
      (await post(`${ACCESS}?fieldValidation=Ignore`, body)).headers['warning'],
      undefined,
    )
    await assert.rejects(post(`${ACCESS}?fieldValidation=Strict`, body), {
      code: 400,
      message: `SelfSubjectAccessReview in version "v1" cannot be handled as a SelfSubjectAccessReview: strict decoding error: ${problems.join(', ')}`,
    })
    await assert.rejects(post(`${ACCESS}?fieldValidation=x`, body), { code: 422 })
    await assert.rejects(post(ACCESS, '{"spec":{},"b":2}'), {
      code: 422,
      warnings: ['unknown field "b"'],
    })
    await assert.rejects(post(`${ACCESS}?fieldValidation=Strict`, 'spec: {}\nspec: {}'), {
      message: /key "spec" already set/,
    })
    const self = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
    await assert.rejects(post(`${self}?fieldValidation=Strict`, { spec: {} }), {
      message: /unknown field "spec"/,
    })
    await post(`${self}?fieldValidation=Strict&dryRun=All`, { metadata: {}, status: {} })
  })

  test('discovery lists each review', () => {
    const names = selfReviewGroups.flatMap(({ name, resources }) =>
      resources.map((resource) => `${resource.name}.${name}`),
    )
    assert.deepEqual(names, [
      'selfsubjectreviews.authentication.k8s.io',
      'selfsubjectaccessreviews.authorization.k8s.io',
      'selfsubjectrulesreviews.authorization.k8s.io',
    ])
  })
})
