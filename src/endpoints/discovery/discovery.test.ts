import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Caller } from '../../gate/gate.ts'
import { makeRequest } from '../../gate/request.fixture.ts'
import { targetOf } from '../../gate/target.fixture.ts'
import type { Response } from '../../http/exchange.ts'
import type { ServiceHandler } from '../services.ts'
import { discoveryService } from './discovery.ts'

const service = discoveryService({ group: 'events.k8s.io', paths: () => ['/about', '/livez'] })

const caller: Caller = { user: { name: 'ada', groups: [] }, authorize: async () => {} }

function handlerOf(path: string): ServiceHandler {
  const handler = service.find(targetOf(path))
  assert.ok(handler, path)
  return handler
}

const plainRequest = makeRequest({ peer: { isLoopback: true } })

async function get(path: string, method = 'GET', accept?: string): Promise<Response> {
  return handlerOf(path)({ ...plainRequest, method, path, headers: { accept } }, caller)
}

const document = async (path: string): Promise<unknown> => {
  const { status, headers, body } = await get(path)
  assert.equal(status, 200)
  assert.equal(headers['content-type'], 'application/json')
  return JSON.parse(String(body))
}

const version = { groupVersion: 'events.k8s.io/v1', version: 'v1' }
const group = { name: 'events.k8s.io', versions: [version], preferredVersion: version }

describe('discoveryService', () => {
  test('discovery needs credentials', () => {
    assert.equal(service.isOpenToHost, false)
  })

  test('the list of groups and the group are served with and without a trailing slash', async () => {
    for (const slash of ['', '/']) {
      assert.deepEqual(await document(`/apis${slash}`), {
        kind: 'APIGroupList',
        apiVersion: 'v1',
        groups: [group],
      })
      assert.deepEqual(await document(`/apis/events.k8s.io${slash}`), {
        kind: 'APIGroup',
        apiVersion: 'v1',
        ...group,
      })
    }
  })

  test('the resource list is byte for byte the recorded one of Kubernetes', async () => {
    const recorded =
      '{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"events.k8s.io/v1","resources":[{"name":"events","singularName":"event","namespaced":true,"kind":"Event","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"shortNames":["ev"],"storageVersionHash":"r2yiGXH7wu8="}]}\n'
    assert.equal((await get('/apis/events.k8s.io/v1')).body, recorded)
    assert.equal((await get('/apis/events.k8s.io/v1/')).body, recorded)
  })

  test('the core group has one version, with the same resource', async () => {
    const expected = { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] }
    assert.deepEqual(await document('/api'), expected)
    assert.deepEqual(await document('/api/'), expected)
    const { resources } = JSON.parse(String((await get('/apis/events.k8s.io/v1')).body))
    for (const path of ['/api/v1', '/api/v1/']) {
      const list = JSON.parse(String((await get(path)).body))
      assert.deepEqual(Object.keys(list), ['kind', 'groupVersion', 'resources'])
      assert.equal(list.groupVersion, 'v1')
      assert.deepEqual(list.resources[0], resources[0])
    }
  })

  test('kinds that events regard are listed without verbs, except namespaces, which can be read', async () => {
    const { resources } = JSON.parse(String((await get('/api/v1')).body))
    const [, namespaces, ...others] = resources
    assert.deepEqual(namespaces, {
      name: 'namespaces',
      singularName: 'namespace',
      namespaced: false,
      kind: 'Namespace',
      verbs: ['get', 'list', 'watch'],
      shortNames: ['ns'],
    })
    assert.ok(others.length > 0)
    for (const { name, verbs } of others) assert.deepEqual(verbs, [], name)
    assert.deepEqual(
      others.find(({ kind }: { kind: string }) => kind === 'Node'),
      {
        name: 'nodes',
        singularName: 'node',
        namespaced: false,
        verbs: [],
        kind: 'Node',
        shortNames: ['no'],
      },
    )
  })

  test('other served groups are listed, and have documents of their own', async () => {
    const reviews = {
      name: 'authorization.k8s.io',
      version: 'v1',
      resources: [
        {
          name: 'selfsubjectaccessreviews',
          singularName: 'selfsubjectaccessreview',
          namespaced: false,
          kind: 'SelfSubjectAccessReview',
          verbs: ['create'],
        },
      ],
    }
    const wider = discoveryService({
      group: 'events.k8s.io',
      otherGroups: [reviews],
      paths: () => [],
    })
    const documentAt = async (path: string): Promise<Record<string, unknown>> => {
      const handler = wider.find(targetOf(path))
      assert.ok(handler)
      return JSON.parse(String((await handler({ ...plainRequest, path }, caller)).body))
    }
    const { groups } = (await documentAt('/apis')) as { groups: readonly { name: string }[] }
    assert.deepEqual(
      groups.map(({ name }) => name),
      ['authorization.k8s.io', 'events.k8s.io'],
    )
    assert.deepEqual(
      (await documentAt('/apis/authorization.k8s.io/v1'))['resources'],
      reviews.resources,
    )
    assert.equal((await documentAt('/apis/authorization.k8s.io'))['name'], 'authorization.k8s.io')
    assert.equal(
      wider.find(targetOf('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews')),
      undefined,
    )
    assert.notEqual(wider.find(targetOf('/apis/authorization.k8s.io/v2')), undefined)
    assert.equal(wider.find(targetOf('/apis/authorization')), undefined)
  })

  test('the root document lists the paths of all services, indented', async () => {
    const { body } = await get('/')
    assert.ok(String(body).startsWith('{\n  "paths": ['))
    assert.deepEqual(JSON.parse(String(body)), {
      paths: ['/about', '/livez'],
    })
    const own = ['/api', '/api/v1', '/apis', '/apis/events.k8s.io', '/apis/events.k8s.io/v1']
    assert.deepEqual(service.paths.toSorted(), own)
  })

  test('/api and /apis support aggregated discovery', async () => {
    const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
    for (const [path, groups] of [
      ['/api', [undefined]],
      ['/apis', ['events.k8s.io']],
    ] as const) {
      const { headers, body } = await get(path, 'GET', accept)
      assert.equal(headers['content-type'], accept)
      const { items } = JSON.parse(String(body))
      assert.deepEqual(
        items.map((item: { metadata: { name?: string } }) => item.metadata.name),
        groups,
      )
      const [{ resources }] = items[0].versions
      assert.equal(resources[0].resource, 'events')
      assert.equal(resources[0].verbs.length, 8)
    }
  })

  test('a configured group name is used in all paths', async () => {
    const renamed = discoveryService({ group: 'e.example.com', paths: () => [] })
    assert.ok(renamed.find(targetOf('/apis/e.example.com/v1')))
    assert.equal(renamed.find(targetOf('/apis/events.k8s.io/v1')), undefined)
  })

  test('a version that is not served is a 404 with a Status', async () => {
    for (const path of [
      '/apis/events.k8s.io/v2/events',
      '/apis/events.k8s.io/v1beta1',
      '/apis/events.k8s.io//',
      '/api/v2',
      '/api/v2/namespaces/a/events',
    ]) {
      await assert.rejects(
        get(path),
        {
          code: 404,
          reason: 'NotFound',
          message: 'the server could not find the requested resource',
          details: {},
        },
        path,
      )
    }
  })

  test('paths of resources and of other groups belong to other services', () => {
    for (const path of [
      '/apis/events.k8s.io/v1/events',
      '/apis/events.k8s.io/v1/nothing',
      '/apis/nope',
      '/apis/nope/v1',
      '/apis/events.k8s.iox',
      '/apisx',
      '/nope',
      '//',
      '',
    ]) {
      assert.equal(service.find(targetOf(path)), undefined, path)
    }
  })

  test('lists of groups are served for all methods, versions only for GET', async () => {
    for (const method of ['POST', 'DELETE', 'HEAD']) {
      for (const path of ['/', '/apis', '/apis/events.k8s.io']) {
        assert.equal((await get(path, method)).status, 200)
      }
      for (const path of ['/api', '/api/v1', '/apis/events.k8s.io/v1']) {
        await assert.rejects(get(path, method), {
          code: 405,
          reason: 'MethodNotAllowed',
          message: 'the server does not allow this method on the requested resource',
          details: {},
        })
      }
    }
  })
})

describe('kinds that events regard (events-only)', () => {
  const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
  let kinds = [
    { group: 'apps', version: 'v1', kind: 'Deployment' },
    { group: 'example.com', version: 'v1beta1', kind: 'Policy' },
    { group: 'example.com', version: 'v2', kind: 'Policy' },
    { group: '', version: 'v1', kind: 'Widget' },
    { group: '', version: 'v1', kind: 'Pod' },
    { group: 'events.k8s.io', version: 'v1', kind: 'Event' },
    { group: 'events.k8s.io', version: 'v1beta1', kind: 'Event' },
  ]
  const decided: unknown[] = []
  const known = discoveryService({
    group: 'events.k8s.io',
    paths: () => [],
    regarded: () => kinds,
    decide: async ({ name }, attributes) => {
      decided.push(attributes)
      return { verdict: name === 'ada' ? 'allow' : 'no-opinion' }
    },
  })
  const as = async (name: string, path: string, accept?: string): Promise<Response> => {
    const handler = known.find(targetOf(path))
    assert.ok(handler, path)
    const user = { name, groups: [] }
    return handler({ ...plainRequest, path, headers: { accept } }, { ...caller, user })
  }
  const bodyAt = async (path: string): Promise<string> => String((await as('ada', path)).body)

  test('the permission is checked only for paths that exist', async () => {
    for (const path of ['/apis/unknown.example', '/apis/unknown.example/v1']) {
      assert.equal((await as('ada', path)).status, 404)
    }
    assert.deepEqual(decided, [])
  })

  test('a user who may list all events sees these kinds, with their groups and versions', async () => {
    interface Group {
      readonly name: string
      readonly versions: readonly { readonly version: string }[]
      readonly preferredVersion: { readonly version: string }
    }
    const { groups }: { groups: readonly Group[] } = JSON.parse(await bodyAt('/apis'))
    assert.deepEqual(
      groups.map(({ name, versions, preferredVersion }) => [
        name,
        versions.map(({ version: each }) => each),
        preferredVersion.version,
      ]),
      [
        ['events.k8s.io', ['v1'], 'v1'],
        ['apps', ['v1'], 'v1'],
        ['example.com', ['v2', 'v1beta1'], 'v2'],
      ],
    )
    assert.deepEqual(JSON.parse(await bodyAt('/apis/apps/v1')).resources, [
      {
        name: 'deployments',
        singularName: 'deployment',
        namespaced: true,
        verbs: [],
        kind: 'Deployment',
        shortNames: ['deploy'],
      },
    ])
    assert.match(await bodyAt('/apis/example.com/v2'), /"name":"policies"/)
    assert.match(
      await bodyAt('/apis/example.com'),
      /"preferredVersion":\{"groupVersion":"example.com\/v2"/,
    )
    assert.match(await bodyAt('/api/v1'), /"name":"widgets"/)
    assert.equal((await bodyAt('/api/v1')).match(/"kind":"Pod"/g)?.length, 1)
    assert.equal((await bodyAt('/apis/events.k8s.io/v1')).match(/"kind":"Event"/g)?.length, 1)
    assert.deepEqual(decided[0], {
      isResource: true,
      cluster: 'local',
      verb: 'list',
      group: 'events.k8s.io',
      version: 'v1',
      resource: 'events',
      subresource: '',
      namespace: '',
      name: '',
      path: '/apis/events.k8s.io/v1/events',
    })
  })

  test('other users do not see these kinds, and get a 404 for their paths', async () => {
    for (const path of ['/api', '/api/v1', '/apis', '/apis/events.k8s.io/v1']) {
      for (const accept of [undefined, `${aggregated},application/json`]) {
        const { body } = await as('bob', path, accept)
        assert.doesNotMatch(String(body), /apps|example\.com|Widget/, path)
      }
    }
    for (const path of ['/apis/apps', '/apis/apps/v1', '/apis/example.com/v2']) {
      assert.equal((await as('bob', path)).status, 404, path)
    }
    assert.equal((await as('ada', '/apis/apps/v2')).status, 404)
  })

  test('the response is private to the user, and changes with the kinds', async () => {
    const { headers, body } = await as('ada', '/apis', aggregated)
    assert.match(String(body), /"name":"apps"/)
    assert.equal(headers['cache-control'], 'private')
    assert.equal((await as('bob', '/apis', aggregated)).headers['cache-control'], 'public')
    kinds = [{ group: 'later.example.com', version: 'v1', kind: 'Late' }]
    assert.match(await bodyAt('/apis'), /later\.example\.com/)
    assert.doesNotMatch(await bodyAt('/apis'), /"apps"/)
  })
})
