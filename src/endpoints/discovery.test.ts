import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Caller } from '../gate/gate.ts'
import type { Request, Response } from '../http/exchange.ts'
import { discoveryService } from './discovery.ts'
import type { ServiceHandler } from './services.ts'

const service = discoveryService({ group: 'events.k8s.io', otherPaths: ['/livez', '/about'] })

const caller: Caller = { user: { name: 'ada', groups: [] }, authorize: async () => {} }

function handlerOf(path: string): ServiceHandler {
  const handler = service.find(path)
  assert.ok(handler, path)
  return handler
}

const plainRequest: Request = {
  method: 'GET',
  path: '/',
  query: new URLSearchParams(),
  headers: {},
  peer: { address: '', isLoopback: true, clientCertificate: () => undefined },
  signal: new AbortController().signal,
  body: async () => Buffer.alloc(0),
}

async function ask(path: string, method = 'GET', accept?: string): Promise<Response> {
  return handlerOf(path)({ ...plainRequest, method, path, headers: { accept } }, caller)
}

const document = async (path: string): Promise<unknown> => {
  const { status, headers, body } = await ask(path)
  assert.equal(status, 200)
  assert.equal(headers['content-type'], 'application/json')
  return JSON.parse(String(body))
}

const version = { groupVersion: 'events.k8s.io/v1', version: 'v1' }
const group = { name: 'events.k8s.io', versions: [version], preferredVersion: version }

describe('discoveryService', () => {
  test('is open to nobody without credentials', () => {
    assert.equal(service.isOpenToHost, false)
  })

  test('the group and its list are told, with and without a slash at the end', async () => {
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

  test('the resources of the version are the recorded ones, to the letter', async () => {
    const recorded =
      '{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"events.k8s.io/v1","resources":[{"name":"events","singularName":"event","namespaced":true,"kind":"Event","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"shortNames":["ev"],"storageVersionHash":"r2yiGXH7wu8="}]}\n'
    assert.equal((await ask('/apis/events.k8s.io/v1')).body, recorded)
    assert.equal((await ask('/apis/events.k8s.io/v1/')).body, recorded)
  })

  test('the group without a name has one version, with the same resource', async () => {
    const expected = { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] }
    assert.deepEqual(await document('/api'), expected)
    assert.deepEqual(await document('/api/'), expected)
    const { resources } = JSON.parse(String((await ask('/apis/events.k8s.io/v1')).body))
    for (const path of ['/api/v1', '/api/v1/']) {
      const list = JSON.parse(String((await ask(path)).body))
      assert.deepEqual(Object.keys(list), ['kind', 'groupVersion', 'resources'])
      assert.equal(list.groupVersion, 'v1')
      assert.deepEqual(list.resources[0], resources[0])
    }
  })

  test('kinds that events are about are named, and nothing can be done with them', async () => {
    const { resources } = JSON.parse(String((await ask('/api/v1')).body))
    const others = resources.slice(1)
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

  test('what is served besides events is told in both forms, and has paths of its own', async () => {
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
      otherPaths: [],
    })
    const told = async (path: string): Promise<Record<string, unknown>> => {
      const handler = wider.find(path)
      assert.ok(handler)
      return JSON.parse(String((await handler({ ...plainRequest, path }, caller)).body))
    }
    const { groups } = (await told('/apis')) as { groups: readonly { name: string }[] }
    assert.deepEqual(
      groups.map(({ name }) => name),
      ['authorization.k8s.io', 'events.k8s.io'],
    )
    assert.deepEqual((await told('/apis/authorization.k8s.io/v1'))['resources'], reviews.resources)
    assert.equal((await told('/apis/authorization.k8s.io'))['name'], 'authorization.k8s.io')
    assert.equal(wider.find('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'), undefined)
    assert.notEqual(wider.find('/apis/authorization.k8s.io/v2'), undefined)
    assert.equal(wider.find('/apis/authorization'), undefined)
  })

  test('the root lists every path, sorted and indented', async () => {
    const { body } = await ask('/')
    assert.ok(String(body).startsWith('{\n  "paths": ['))
    assert.deepEqual(JSON.parse(String(body)), {
      paths: [
        '/about',
        '/api',
        '/api/v1',
        '/apis',
        '/apis/events.k8s.io',
        '/apis/events.k8s.io/v1',
        '/livez',
      ],
    })
  })

  test('the lists come in the aggregated form to those who ask, both or neither', async () => {
    const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
    for (const [path, groups] of [
      ['/api', [undefined]],
      ['/apis', ['events.k8s.io']],
    ] as const) {
      const { headers, body } = await ask(path, 'GET', accept)
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

  test('another name for the group is used throughout', async () => {
    const renamed = discoveryService({ group: 'e.example.com', otherPaths: [] })
    assert.ok(renamed.find('/apis/e.example.com/v1'))
    assert.equal(renamed.find('/apis/events.k8s.io/v1'), undefined)
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
        ask(path),
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

  test("paths of the version's resources and of other groups are left to others", () => {
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
      assert.equal(service.find(path), undefined, path)
    }
  })

  test('methods: the lists answer to all, the versions to GET alone', async () => {
    for (const method of ['POST', 'DELETE', 'HEAD']) {
      for (const path of ['/', '/apis', '/apis/events.k8s.io']) {
        assert.equal((await ask(path, method)).status, 200)
      }
      for (const path of ['/api', '/api/v1', '/apis/events.k8s.io/v1']) {
        await assert.rejects(ask(path, method), {
          code: 405,
          reason: 'MethodNotAllowed',
          message: 'the server does not allow this method on the requested resource',
          details: {},
        })
      }
    }
  })
})

describe('kinds that events are about (events-only)', () => {
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
  const asked: unknown[] = []
  const known = discoveryService({
    group: 'events.k8s.io',
    otherPaths: [],
    regarded: () => kinds,
    decide: async ({ name }, attributes) => {
      asked.push(attributes)
      return { verdict: name === 'ada' ? 'allow' : 'no-opinion' }
    },
  })
  const as = async (name: string, path: string, accept?: string): Promise<Response> => {
    const handler = known.find(path)
    assert.ok(handler, path)
    const user = { name, groups: [] }
    return handler({ ...plainRequest, path, headers: { accept } }, { ...caller, user })
  }
  const told = async (path: string): Promise<string> => String((await as('ada', path)).body)

  test('are a matter of permission only where there are any', async () => {
    for (const path of ['/apis/unknown.example', '/apis/unknown.example/v1']) {
      assert.equal((await as('ada', path)).status, 404)
    }
    assert.deepEqual(asked, [])
  })

  test('are told to who may list the events of all namespaces, with their groups and versions', async () => {
    interface Told {
      readonly name: string
      readonly versions: readonly { readonly version: string }[]
      readonly preferredVersion: { readonly version: string }
    }
    const { groups }: { groups: readonly Told[] } = JSON.parse(await told('/apis'))
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
    assert.deepEqual(JSON.parse(await told('/apis/apps/v1')).resources, [
      {
        name: 'deployments',
        singularName: 'deployment',
        namespaced: true,
        verbs: [],
        kind: 'Deployment',
        shortNames: ['deploy'],
      },
    ])
    assert.match(await told('/apis/example.com/v2'), /"name":"policies"/)
    assert.match(
      await told('/apis/example.com'),
      /"preferredVersion":\{"groupVersion":"example.com\/v2"/,
    )
    assert.match(await told('/api/v1'), /"name":"widgets"/)
    assert.equal((await told('/api/v1')).match(/"kind":"Pod"/g)?.length, 1)
    assert.equal((await told('/apis/events.k8s.io/v1')).match(/"kind":"Event"/g)?.length, 1)
    assert.deepEqual(asked[0], {
      isResource: true,
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

  test('are not told to anybody else, who finds no such path either', async () => {
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

  test('are kept apart by caches, and told anew when there are others', async () => {
    const { headers, body } = await as('ada', '/apis', aggregated)
    assert.match(String(body), /"name":"apps"/)
    assert.equal(headers['cache-control'], 'private')
    assert.equal((await as('bob', '/apis', aggregated)).headers['cache-control'], 'public')
    kinds = [{ group: 'later.example.com', version: 'v1', kind: 'Late' }]
    assert.match(await told('/apis'), /later\.example\.com/)
    assert.doesNotMatch(await told('/apis'), /"apps"/)
  })
})
