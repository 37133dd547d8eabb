/** What is authorised and what is then served are read from one request by two readers. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type Attributes, attributesOf } from '../gate/attributes.ts'
import { namedBy } from '../registry/event-selector.ts'
import { parseEventPath } from './event-routes.ts'
import { readListOptions } from './list-options.ts'
import { readBoolean } from './query-values.ts'

const PREFIX = '/apis/events.k8s.io/v1/'

function attributes(method: string, path: string, query = ''): Attributes {
  return attributesOf({ method, path, query: new URLSearchParams(query) })
}

const part = fc.constantFrom(
  'events',
  'namespaces',
  'watch',
  'a',
  'b',
  '',
  '.',
  '..',
  'status',
  '%2F',
)
const rest = fc.oneof(
  fc.array(part, { maxLength: 6 }).map((parts) => parts.join('/')),
  fc
    .tuple(
      fc.constantFrom('', 'watch/'),
      part,
      fc.constantFrom('', '/', '/x', '/x/', '//', '/x/status'),
    )
    .map(([watch, namespace, end]) => `${watch}namespaces/${namespace}/events${end}`),
)
const method = fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'get')
const value = fc.constantFrom('a', 'b', '', 'a\\,b', 'a%2Cb', '..', 'a/b', '*', 'a\\=b', 'a=b')
const term = fc.oneof(
  fc.constantFrom('metadata.name=a', 'metadata.name==b', 'type=Normal'),
  fc
    .tuple(
      fc.constantFrom(
        'metadata.name',
        'metadata.namespace',
        'type',
        ' metadata.name',
        'Metadata.name',
      ),
      fc.constantFrom('=', '==', '!='),
      value,
    )
    .map((parts) => parts.join('')),
  fc.constantFrom('', 'metadata.name', '=', '\\'),
)
const selector = fc.array(term, { minLength: 1, maxLength: 3 }).map((terms) => terms.join(','))
const query = fc
  .array(
    fc.oneof(
      selector.map((text) => ['fieldSelector', text] as const),
      fc
        .constantFrom('', '0', '1', 'true', 'false', 'FALSE', 'no')
        .map((text) => ['watch', text] as const),
    ),
    { maxLength: 3 },
  )
  .map((pairs) =>
    new URLSearchParams(pairs.map(([name, text]): [string, string] => [name, text])).toString(),
  )

describe('attributesOf', () => {
  test('a path that is served is authorised for the namespace and the event that it names', () => {
    fc.assert(
      fc.property(method, rest, query, (verb, tail, search) => {
        const served = parseEventPath(tail)
        if (served === undefined) return
        const found = attributes(verb, `${PREFIX}${tail}`, search)
        assert.ok(found.isResource)
        assert.equal(found.resource, 'events')
        assert.equal(found.subresource, '')
        assert.equal(found.namespace, served.kind === 'everything' ? '' : served.namespace)
        if (served.kind === 'event') assert.equal(found.name, served.name)
      }),
      { numRuns: 2000 },
    )
  })

  test('a list or watch authorised for one name serves that name and nothing else', () => {
    let named = 0
    fc.assert(
      fc.property(fc.constantFrom('', 'watch/'), query, (watch, search) => {
        const found = attributes('GET', `${PREFIX}${watch}namespaces/ns/events`, search)
        assert.ok(found.isResource)
        if (found.name === '') return
        const params = new URLSearchParams(search)
        // Whatever cannot be read is refused by the list itself.
        const served = namedBy(readListOptions(params, { isWatch: watch !== '' }).fieldSelector)
        named++
        assert.ok(served.isImpossible || served.name === found.name)
      }),
      { numRuns: 3000 },
    )
    assert.ok(named > 50, `${named}`)
  })

  test('what is served as a watch is authorised as one, and nothing else is', () => {
    fc.assert(
      fc.property(rest, query, (tail, search) => {
        const served = parseEventPath(tail)
        if (served === undefined) return
        const isWatch =
          served.isWatchPath ||
          (served.kind !== 'event' && readBoolean(new URLSearchParams(search), 'watch') === true)
        assert.equal(attributes('GET', `${PREFIX}${tail}`, search).verb === 'watch', isWatch)
      }),
      { numRuns: 2000 },
    )
  })

  const shown = (found: Attributes): string =>
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
      assert.equal(shown(attributes(verb, path, search)), expected))
  }
})
