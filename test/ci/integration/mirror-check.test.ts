import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type CheckOptions,
  type CoreEvent,
  differences,
  keyOf,
  type OriginState,
  orderFaults,
  originVersionAnnotation,
  reappeared,
} from '../../nightly/mirror/check.ts'

/** Tests of the checker that the test with a real Kubernetes relies on. */

function made(name: string, version: string, fields: object = {}): CoreEvent {
  return {
    metadata: {
      name,
      namespace: 'shop',
      uid: `uid-of-${name}`,
      resourceVersion: version,
      creationTimestamp: '2026-01-02T03:04:05Z',
    },
    message: 'hello',
    count: 3,
    ...fields,
  }
}

/** The same event as a mirror serves it. */
function mirrored(event: CoreEvent, metadata: object = {}): CoreEvent {
  const annotations = { [originVersionAnnotation]: event.metadata.resourceVersion }
  return {
    ...event,
    metadata: { ...event.metadata, resourceVersion: '7999', annotations, ...metadata },
  }
}

const versions = ['9', '10', '11', '12']
const [kept, expired, deleted, early] = ['kept', 'expired', 'deleted', 'early'].map((name, at) =>
  made(name, versions[at] ?? ''),
)
assert.ok(kept && expired && deleted && early)

const origin = new Map<string, OriginState>(
  ([kept, expired, deleted, early] as const).map((last, at) => [
    keyOf(last),
    { last, end: ([undefined, 'expired', 'deleted', 'early'] as const)[at] },
  ]),
)
const all = [kept, expired, deleted, early].map((event) => mirrored(event))
const never: CheckOptions = { deletes: 'never' }

function kinds(served: readonly CoreEvent[], options = never): string[] {
  return differences(origin, served, options).map(({ kind, key }) => `${kind} ${key}`)
}

/** All events, one of them replaced. */
function but(name: string, ...events: readonly CoreEvent[]): CoreEvent[] {
  return all.flatMap((event) => (event.metadata.name === name ? events : [event]))
}

describe('the checker of mirrors', () => {
  test('accepts the final states, whatever was deleted at the origin', () => {
    assert.deepEqual(kinds(all), [])
  })

  test('accepts a mirror of deletes that kept what had expired', () => {
    const served = but('early').filter(({ metadata }) => metadata.name !== 'deleted')
    assert.deepEqual(kinds(served, { deletes: 'explicit' }), [])
    assert.deepEqual(kinds(but('early'), { deletes: 'explicit' }), [])
  })

  test('accepts that events of other namespaces are missing', () => {
    assert.deepEqual(kinds([], { deletes: 'never', namespaces: ['other'] }), [])
  })

  const withLabels = made('kept', '9', { metadata: { ...kept.metadata, labels: { a: 'b' } } })
  const planted: Record<string, readonly [readonly CoreEvent[], string, CheckOptions?]> = {
    'a missing event': [but('kept'), 'missing shop/kept'],
    'a missing event that had expired at the origin': [but('expired'), 'missing shop/expired'],
    'a missing event that was deleted at the origin': [but('deleted'), 'missing shop/deleted'],
    'an expired event that was deleted': [
      all.filter(({ metadata }) => !['expired', 'early'].includes(metadata.name)),
      'missing shop/expired',
      { deletes: 'explicit' },
    ],
    'an event that should have been deleted': [
      all,
      'not deleted shop/early',
      { deletes: 'explicit' },
    ],
    'an event that is listed twice': [[...all, ...all.slice(0, 1)], 'duplicated shop/kept'],
    'an event of a namespace that is not mirrored': [
      [mirrored(kept)],
      'unknown shop/kept',
      { deletes: 'never', namespaces: ['other'] },
    ],
    'an older version': [but('expired', mirrored(made('expired', '9'))), 'older shop/expired'],
    'a newer version': [but('kept', mirrored(made('kept', '90'))), 'other version shop/kept'],
    'a missing annotation': [but('kept', kept), 'other version shop/kept'],
    'another uid': [but('kept', mirrored(kept, { uid: 'copy' })), 'other uid shop/kept'],
    'the time of the copy': [
      but('kept', mirrored(kept, { creationTimestamp: '2026-02-02T03:04:05Z' })),
      'other content shop/kept',
    ],
    'another count': [
      but('kept', mirrored(made('kept', '9', { count: 4 }))),
      'other content shop/kept',
    ],
    'an additional label': [but('kept', mirrored(withLabels)), 'other content shop/kept'],
    'an additional annotation': [
      but(
        'kept',
        mirrored(kept, { annotations: { [originVersionAnnotation]: '9', 'example.com/a': 'b' } }),
      ),
      'other content shop/kept',
    ],
  }
  for (const [what, [served, fault, options]] of Object.entries(planted)) {
    test(`finds ${what}`, () => assert.deepEqual(kinds(served, options), [fault]))
  }

  test('finds an event under two names', () => {
    const twin = mirrored(kept, { name: 'twin' })
    assert.deepEqual(kinds([...all, twin]), ['duplicated shop/twin', 'unknown shop/twin'])
  })

  test('finds repeated and older puts', () => {
    const changes = (...seen: readonly (string | undefined)[]) =>
      seen.map((version) => ({ key: 'a/b', version }))
    const kindsOf = (...seen: readonly (string | undefined)[]) =>
      orderFaults(changes(...seen)).map(({ kind }) => kind)
    assert.deepEqual(orderFaults([...changes('9', '10'), { key: 'a/c', version: '9' }]), [])
    assert.deepEqual(kindsOf('9', '9'), ['duplicated'])
    assert.deepEqual(kindsOf('10', '9', '10', '11'), ['older', 'duplicated'])
    assert.deepEqual(kindsOf('9', undefined, '9', '10', '10'), ['duplicated'])
    assert.equal(reappeared(changes('9', undefined, '10', undefined)), 0)
    assert.equal(reappeared(changes('9', undefined, '9', undefined, '10')), 1)
  })
})
