import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { eventsGroup } from '../api/event-groups.ts'
import { encodeContinue } from '../registry/continue-token.ts'
import { SharedSelectors } from '../registry/event-selector.ts'
import { beginning, parseVersion } from '../storage/resource-version.ts'
import type { EventPath } from './event-routes.ts'
import { listQuery, readOptions, type WatchPlan, watchPlan } from './list-query.ts'

const group = eventsGroup('events.k8s.io')
const everything: EventPath = { kind: 'everything', isWatchPath: false }
const collection: EventPath = { kind: 'collection', namespace: 'a', isWatchPath: false }

const bounds = { watchMsMax: 3_600_000, selectors: new SharedSelectors() }

function query(path: EventPath, options: Readonly<Record<string, string>>) {
  return listQuery(path, readOptions(new URLSearchParams(options), path, group))
}

function plan(options: Readonly<Record<string, string>>, path = collection): WatchPlan {
  const watched = path.isWatchPath ? options : { watch: 'true', ...options }
  return watchPlan(path, readOptions(new URLSearchParams(watched), path, group), bounds)
}

function selected(path: EventPath, fieldSelector: string) {
  return query(path, { fieldSelector })
}

describe('what a list is about', () => {
  test('the path decides where, and a selector may narrow it', () => {
    assert.deepEqual(query(everything, {}).scope, { namespace: undefined })
    assert.deepEqual(query(collection, {}).scope, { namespace: 'a' })
    assert.deepEqual(selected(everything, 'metadata.namespace=b').scope, { namespace: 'b' })
    assert.deepEqual(selected(collection, 'metadata.namespace=a').scope, { namespace: 'a' })
    assert.deepEqual(selected(everything, 'metadata.namespace!=b').scope, { namespace: undefined })
  })

  test('tokens speak of the path, however narrow the search is', () => {
    assert.deepEqual(selected(everything, 'metadata.namespace=b').tokenScope, {
      namespace: undefined,
    })
  })

  test('what cannot be is looked for where nothing is', () => {
    const impossible: readonly [EventPath, string][] = [
      [collection, 'metadata.namespace=b'],
      [everything, 'metadata.namespace=a,metadata.namespace=b'],
      [everything, 'metadata.namespace=a,metadata.namespace!=a'],
      [everything, 'metadata.name=x,metadata.name=y'],
      [collection, 'metadata.name=x,metadata.name!=x'],
      [everything, 'metadata.namespace='],
      [collection, 'metadata.name='],
      [collection, 'metadata.name=a/b'],
    ]
    for (const [path, selector] of impossible) {
      assert.deepEqual(selected(path, selector).scope, { namespace: '.' }, selector)
    }
  })

  test('without a selector there is none', () => {
    assert.equal(query(collection, {}).selector, undefined)
    assert.equal(query(collection, { labelSelector: '', fieldSelector: '' }).selector, undefined)
  })

  test('no limit is none, whether it is 0, less or missing', () => {
    for (const limit of ['0', '-3']) assert.equal(query(collection, { limit }).limit, undefined)
    assert.equal(query(collection, {}).limit, undefined)
    assert.equal(query(collection, { limit: '7' }).limit, 7)
  })

  test('one event needs no pages: limit and token do not count', () => {
    const token = encodeContinue(
      { namespace: 'a' },
      { after: { namespace: 'a', name: 'z' }, version: parseVersion('5999') },
    )
    const single = query(collection, {
      fieldSelector: 'metadata.name=x',
      limit: '1',
      continue: token,
    })
    assert.equal(single.limit, undefined)
    assert.equal(single.position.after, undefined)
    assert.equal(query(everything, { fieldSelector: 'metadata.name=x', limit: '1' }).limit, 1)
  })
})

describe('how a watch begins', () => {
  const version = parseVersion('5003')

  test('without a version, or from 0, with what is there', () => {
    const cases: readonly [Readonly<Record<string, string>>, typeof beginning | undefined][] = [
      [{}, undefined],
      [{ resourceVersion: '' }, undefined],
      [{ resourceVersion: '0' }, beginning],
    ]
    for (const [options, notOlderThan] of cases) {
      const { initial, from } = plan(options)
      const asked = options['resourceVersion'] ?? ''
      const nowhere = { at: undefined, after: undefined }
      assert.deepEqual(initial?.position, { ...nowhere, notOlderThan, asked })
      assert.equal(initial?.limit, undefined)
      assert.equal(from, undefined)
    }
  })

  test('from a version, with what comes after it', () => {
    const { initial, from } = plan({ resourceVersion: '5003' })
    assert.equal(initial, undefined)
    assert.equal(from, version)
  })

  test('with what is there and not older than a version, when that is asked for', () => {
    const { initial, from, hasInitialBookmark } = plan({
      resourceVersion: '5003',
      resourceVersionMatch: 'NotOlderThan',
      sendInitialEvents: 'true',
    })
    assert.equal(initial?.position.notOlderThan, version)
    assert.equal(from, version)
    assert.equal(hasInitialBookmark, false)
  })

  test('with nothing of what is there, when that is asked for', () => {
    for (const [resourceVersion, from] of [
      ['', undefined],
      ['0', undefined],
      ['5003', version],
    ] as const) {
      const begun = plan({
        resourceVersion,
        resourceVersionMatch: 'NotOlderThan',
        sendInitialEvents: 'false',
      })
      assert.equal(begun.initial, undefined)
      assert.equal(begun.from, from)
    }
  })

  test('limits and tokens of lists do not touch it', () => {
    assert.equal(plan({ limit: '1' }).initial?.limit, undefined)
  })

  test('the older paths begin as the others do', () => {
    const path: EventPath = { ...collection, isWatchPath: true }
    assert.notEqual(plan({}, path).initial, undefined)
    assert.notEqual(plan({ resourceVersion: '0' }, path).initial, undefined)
    assert.equal(plan({ resourceVersion: '5003' }, path).from, version)
    assert.equal(plan({ resourceVersion: '5003' }, path).initial, undefined)
  })

  test('the older path of one event is about that event', () => {
    const path: EventPath = { kind: 'event', namespace: 'a', name: 'x', isWatchPath: true }
    const begun = plan({}, path)
    assert.deepEqual(begun.scope, { namespace: 'a' })
    assert.equal(begun.selector?.requires?.name, 'x')
  })
})

describe('what a watch is told besides changes', () => {
  test('bookmarks come only when asked for', () => {
    assert.equal(plan({}).hasBookmarks, false)
    assert.equal(plan({}).hasInitialBookmark, false)
    assert.equal(plan({ allowWatchBookmarks: 'true' }).hasBookmarks, true)
  })

  test('the end of what is there is told to who asked for that and for bookmarks', () => {
    const asked = { resourceVersionMatch: 'NotOlderThan', sendInitialEvents: 'true' }
    assert.equal(plan(asked).hasInitialBookmark, false)
    assert.equal(plan({ ...asked, allowWatchBookmarks: 'true' }).hasInitialBookmark, true)
    const unasked = { resourceVersion: '5003', allowWatchBookmarks: 'true' }
    assert.equal(plan(unasked).hasInitialBookmark, false)
  })

  test('watches with equal selectors share one', () => {
    const one = plan({ labelSelector: 'a in (b,c)', fieldSelector: 'reason=x' })
    const same = plan({ labelSelector: 'a in (b,c)', fieldSelector: 'reason=x' })
    const others = [
      plan({ labelSelector: 'a in (b,c)', fieldSelector: 'reason=y' }),
      plan({ labelSelector: 'a notin (b,c)', fieldSelector: 'reason=x' }),
    ]
    assert.ok(one.selector !== undefined && one.selector === same.selector)
    assert.equal(one.initial?.selector, one.selector)
    assert.ok(others.every(({ selector }) => selector !== one.selector))
    assert.equal(plan({}).selector, undefined)
  })

  // Difference from Kubernetes: watches-have-an-end.
  test('it lives as long as was asked, but never longer than it may', () => {
    assert.equal(plan({ timeoutSeconds: '5' }).lifetimeMs, 5000)
    assert.equal(plan({ timeoutSeconds: '-5' }).lifetimeMs, 0)
    assert.equal(plan({ timeoutSeconds: '3600' }).lifetimeMs, 3_600_000)
    const longer = { timeoutSeconds: '9007199254740991' }
    for (const options of [{}, { timeoutSeconds: '0' }, { timeoutSeconds: '3601' }, longer]) {
      const { lifetimeMs } = plan(options)
      assert.ok(lifetimeMs >= 1_800_000 && lifetimeMs <= 3_600_000)
    }
  })
})
