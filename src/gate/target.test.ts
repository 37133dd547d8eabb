import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Place, readTarget, type Target } from './target.ts'

const PREFIX = '/apis/events.k8s.io/v1/'

function target(method: string, path: string, query = ''): Target {
  return readTarget({ method, path, query: new URLSearchParams(query) }, 'local')
}

function placeOf(rest: string): Place | undefined {
  const found = target('GET', `${PREFIX}${rest}`)
  return found.isResource ? found.place : undefined
}

describe('the place that a path addresses', () => {
  test('is all events, those of a namespace, or one, even below watch/', () => {
    const cases: readonly [string, Place][] = [
      ['events', { kind: 'everything' }],
      ['namespaces/a/events', { kind: 'collection', namespace: 'a' }],
      ['namespaces/a/events/b', { kind: 'object', namespace: 'a', name: 'b' }],
    ]
    for (const [path, place] of cases) {
      for (const rest of [path, `${path}/`, `watch/${path}`, `watch/${path}/`]) {
        assert.deepEqual(placeOf(rest), place, rest)
        const found = target('GET', `${PREFIX}${rest}`)
        assert.equal(found.isResource && found.isWatchPath, rest.startsWith('watch/'), rest)
      }
    }
  })

  test('has names that look like parts of a path', () => {
    for (const name of [
      'events',
      'watch',
      'namespaces',
      '__proto__',
      'constructor',
      '..',
      'ä',
      ' ',
    ]) {
      const place = { kind: 'object', namespace: name, name }
      assert.deepEqual(placeOf(`namespaces/${name}/events/${name}`), place)
    }
  })

  test('is one object without a namespace, when only a name follows the resource', () => {
    for (const path of ['namespaces/a', 'clusters/a', 'watch/namespaces/a', 'events/a']) {
      assert.deepEqual(placeOf(path), { kind: 'unnamespaced', name: 'a' })
    }
    assert.deepEqual(placeOf('namespaces'), { kind: 'everything' })
  })

  test('is undefined for empty, missing and surplus parts', () => {
    const paths = [
      '',
      '/',
      'watch',
      'watch/',
      'namespaces//events',
      'namespaces//events/b',
      'namespaces/a/events//',
      'namespaces/a/events//b',
      'namespaces/a/events/b//',
      'namespaces/a/events/b/status',
      '/events',
      'events//',
      'NAMESPACES/a/events',
    ]
    const served = paths.filter((path) => {
      const found = target('GET', `${PREFIX}${path}`)
      return found.isResource && found.resource === 'events' && found.place !== undefined
    })
    assert.deepEqual(served, [])
  })

  test('long-names-in-paths: is undefined when a part has more than 1,024 characters', () => {
    const likely = 'n'.repeat(1024)
    assert.equal(placeOf(`namespaces/${likely}/events/${likely}`)?.kind, 'object')
    const name = `${likely}n`
    assert.equal(placeOf(`namespaces/a/events/${name}`), undefined)
    assert.equal(placeOf(`namespaces/${name}/events/a`), undefined)
    assert.equal(placeOf(`namespaces/${name}/events`), undefined)
  })
})

describe('the attributes of a target', () => {
  const shown = (found: Target): string =>
    found.isResource
      ? [
          found.verb,
          found.group,
          found.version,
          found.resource,
          found.subresource,
          found.namespace,
          found.name,
        ].join('|')
      : `${found.verb} ${found.path}`
  const cases: readonly (readonly [string, string, string, string])[] = [
    ['GET', '/apis/events.k8s.io/v1/namespaces/a/events', '', 'list|events.k8s.io|v1|events||a|'],
    [
      'HEAD',
      '/apis/events.k8s.io/v1/namespaces/a/events/x',
      '',
      'get|events.k8s.io|v1|events||a|x',
    ],
    ['GET', '/apis/events.k8s.io/v1/events', 'watch', 'watch|events.k8s.io|v1|events|||'],
    ['GET', '/apis/events.k8s.io/v1/watch/events', '', 'watch|events.k8s.io|v1|events|||'],
    [
      'GET',
      '/apis/events.k8s.io/v1/watch/namespaces/a/events',
      'fieldSelector=metadata.name%3Dx',
      'watch|events.k8s.io|v1|events||a|',
    ],
    [
      'GET',
      '/apis/events.k8s.io/v1/namespaces/a/events',
      'fieldSelector=metadata.name%3Dx',
      'list|events.k8s.io|v1|events||a|x',
    ],
    [
      'GET',
      '/api/v1/namespaces/a/events',
      'fieldSelector=involvedObject.kind%3DPod,metadata.name%3Dx',
      'list||v1|events||a|x',
    ],
    [
      'DELETE',
      '/apis/events.k8s.io/v1/namespaces/a/events',
      'fieldSelector=metadata.name%3Dx',
      'deletecollection|events.k8s.io|v1|events||a|',
    ],
    [
      'GET',
      '/apis/events.k8s.io/v1/namespaces/a/events',
      'fieldSelector=metadata.name%3Da/b',
      'list|events.k8s.io|v1|events||a|',
    ],
    ...['a|b', 'a*', 'a|a*'].map(
      (name) =>
        [
          'GET',
          '/apis/events.k8s.io/v1/namespaces/a/events',
          `fieldSelector=metadata.name%3D${name}`,
          'list|events.k8s.io|v1|events||a|',
        ] as const,
    ),
    [
      'GET',
      '/apis/events.k8s.io/v1/namespaces/a/events',
      'fieldSelector=metadata.name%3Dx|y,metadata.name%3Dx',
      'list|events.k8s.io|v1|events||a|x',
    ],
    [
      'GET',
      '/apis/tidings.dev/v1alpha1/eventsummaries',
      'fieldSelector=metadata.name%3Dx',
      'list|tidings.dev|v1alpha1|eventsummaries|||',
    ],
    [
      'PUT',
      '/apis/events.k8s.io/v1/namespaces/a/events/x/status',
      '',
      'update|events.k8s.io|v1|events|status|a|x',
    ],
    ['GET', '/api/v1/namespaces/a', '', 'get||v1|namespaces||a|a'],
    ['OPTIONS', '/api/v1/events', '', '||v1|events|||'],
    ['GET', '/apis/events.k8s.io/v1', '', 'get /apis/events.k8s.io/v1'],
    ['POST', '/livez', '', 'post /livez'],
  ]
  for (const [verb, path, search, expected] of cases) {
    test(`${verb} ${path} ${search}`, () =>
      assert.equal(shown(target(verb, path, search)), expected))
  }
})

describe('clusters', () => {
  const target = (path: string) =>
    readTarget({ method: 'GET', path, query: new URLSearchParams() }, 'local')

  test('a path without a cluster belongs to the default cluster', () => {
    const { cluster, isPrefixed, path } = target('/api/v1/events')
    assert.deepEqual([cluster, isPrefixed, path], ['local', false, '/api/v1/events'])
  })

  test('a cluster in the path is split off, and the rest is read as without it', () => {
    for (const rest of [
      '/api/v1/namespaces/a/events/x',
      '/apis/events.k8s.io/v1/events',
      '/version',
      '/',
    ]) {
      const plain = target(rest)
      const prefixed = target(`/clusters/prod-eu${rest}`)
      assert.deepEqual(prefixed, { ...plain, cluster: 'prod-eu', isPrefixed: true })
    }
    assert.equal(target('/clusters/prod-eu').path, '/')
    assert.equal(target('/clusters/*/api/v1/events').cluster, '*')
  })

  test('a name that is not a DNS label is not a cluster, and the path addresses nothing', () => {
    for (const name of ['', 'A', 'a.b', '-a', 'a-', 'a_b', '**', '..', 'a'.repeat(64)]) {
      const path = `/clusters/${name}/api/v1/events`
      const read = target(path)
      assert.deepEqual([read.cluster, read.isResource, read.path], ['local', false, path])
    }
    assert.equal(target('/clusters/a/clusters/b/api/v1/events').isResource, false)
    assert.equal(target('//clusters/a/api/v1/events').isResource, false)
  })
})
