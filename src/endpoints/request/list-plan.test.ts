import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { exactly } from '../../api/selectors/value-pattern.ts'
import { readTarget } from '../../gate/target.ts'
import { encodeContinue } from '../../registry/read/continue-token.ts'
import { SharedSelectors } from '../../registry/read/event-selector.ts'
import { beginning, parseVersion } from '../../storage/resource-version.ts'
import type { ListTarget } from './list-options.ts'
import { listPlan, type WatchPlan, watchPlan } from './list-plan.ts'

const everything = 'events'
const collection = 'namespaces/a/events'

const upperHalf = "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"

const bounds = { watchMsMax: 3_600_000, selectors: new SharedSelectors(), now: () => 0 }

/** `path`: below the group version. */
function targetOf(path: string, options: Readonly<Record<string, string>>): ListTarget {
  const query = new URLSearchParams(options)
  const target = readTarget(
    { method: 'GET', path: `/apis/events.k8s.io/v1/${path}`, query },
    'local',
  )
  assert.ok(target.isResource && target.place !== undefined)
  return { ...target, place: target.place }
}

function query(path: string, options: Readonly<Record<string, string>>) {
  return listPlan(targetOf(path, options))
}

function plan(options: Readonly<Record<string, string>>, path = collection): WatchPlan {
  const watched = path.startsWith('watch/') ? options : { watch: 'true', ...options }
  return watchPlan(targetOf(path, watched), bounds)
}

function selected(path: string, fieldSelector: string) {
  return query(path, { fieldSelector })
}

describe('listPlan', () => {
  test('the path sets the scope, and a selector may narrow it', () => {
    assert.deepEqual(query(everything, {}).scope, { cluster: 'local', namespace: undefined })
    assert.deepEqual(query(collection, {}).scope, { cluster: 'local', namespace: 'a' })
    assert.deepEqual(selected(everything, 'metadata.namespace=b').scope, {
      cluster: 'local',
      namespace: 'b',
    })
    assert.deepEqual(selected(collection, 'metadata.namespace=a').scope, {
      cluster: 'local',
      namespace: 'a',
    })
    assert.deepEqual(selected(everything, 'metadata.namespace!=b').scope, {
      cluster: 'local',
      namespace: undefined,
    })
  })

  test('makes continue tokens relative to the scope of the path, even with a narrower selector', () => {
    assert.deepEqual(selected(everything, 'metadata.namespace=b').tokenScope, {
      cluster: 'local',
      namespace: undefined,
    })
  })

  test('ignores the parameter limit if there is the label, since a smaller page would also be the last one', () => {
    for (const limit of ['1', '500', '0']) {
      const { limit: size, isOnlyPage } = query(collection, { limit, fieldSelector: 'limit=20' })
      assert.deepEqual({ size, isOnlyPage }, { size: 20, isOnlyPage: true })
    }
    assert.equal(query(collection, { limit: '7' }).limit, 7)
    assert.equal(query(collection, {}).limit, undefined)
  })

  test('counts durations back from the clock of the request', () => {
    const target = targetOf(collection, { fieldSelector: 'since=20m' })
    assert.equal(listPlan(target, { nowMs: 2_000_000 }).selector?.requires?.sinceMs, 800_000)
    const watched = watchPlan(target, { ...bounds, now: () => 3_000_000 })
    assert.equal(watched.selector?.requires?.sinceMs, 1_800_000)
  })

  test('a selector that cannot match has an empty scope', () => {
    const impossible: readonly [string, string][] = [
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
      assert.deepEqual(
        selected(path, selector).scope,
        { cluster: '.', namespace: undefined },
        selector,
      )
    }
  })

  test('a list without selectors has no selector', () => {
    assert.equal(query(collection, {}).selector, undefined)
    assert.equal(query(collection, { labelSelector: '', fieldSelector: '' }).selector, undefined)
  })

  test('a shard selector selects, and is repeated in the response', () => {
    const { selector, shardSelector } = query(everything, { shardSelector: ` ${upperHalf} ` })
    assert.ok(selector)
    assert.equal(shardSelector, upperHalf)
    assert.equal(query(everything, {}).shardSelector, undefined)
  })

  test('a limit that is 0, negative or missing means no limit', () => {
    for (const limit of ['0', '-3']) assert.equal(query(collection, { limit }).limit, undefined)
    assert.equal(query(collection, {}).limit, undefined)
    assert.equal(query(collection, { limit: '7' }).limit, 7)
  })

  test('a list of one name ignores limit and continue token', () => {
    const token = encodeContinue(
      { cluster: 'local', namespace: 'a' },
      { after: { cluster: 'local', namespace: 'a', name: 'z' }, version: parseVersion('5999') },
    )
    const single = query(collection, {
      fieldSelector: 'metadata.name=x',
      limit: '1',
      continue: token,
    })
    assert.equal(single.limit, undefined)
    assert.equal(single.after, undefined)
    assert.equal(query(everything, { fieldSelector: 'metadata.name=x', limit: '1' }).limit, 1)
  })
})

describe('the start of a watch', () => {
  const version = parseVersion('5003')

  test('a watch without a version, or from 0, starts with the existing events', () => {
    const cases: readonly [Readonly<Record<string, string>>, typeof beginning | undefined][] = [
      [{}, undefined],
      [{ resourceVersion: '' }, undefined],
      [{ resourceVersion: '0' }, beginning],
    ]
    for (const [options, notOlderThan] of cases) {
      const { initial, from } = plan(options)
      const versionText = options['resourceVersion'] ?? ''
      assert.equal(initial?.at, undefined)
      assert.equal(initial?.after, undefined)
      assert.equal(initial?.notOlderThan, notOlderThan)
      assert.equal(initial?.versionText, versionText)
      assert.equal(initial?.limit, undefined)
      assert.equal(from, undefined)
    }
  })

  test('a watch from a version starts with the changes after it', () => {
    const { initial, from } = plan({ resourceVersion: '5003' })
    assert.equal(initial, undefined)
    assert.equal(from, version)
  })

  test('sendInitialEvents=true starts with the existing events, not older than the version', () => {
    const { initial, from, hasInitialBookmark } = plan({
      resourceVersion: '5003',
      resourceVersionMatch: 'NotOlderThan',
      sendInitialEvents: 'true',
    })
    assert.equal(initial?.notOlderThan, version)
    assert.equal(from, version)
    assert.equal(hasInitialBookmark, false)
  })

  test('sendInitialEvents=false starts without the existing events', () => {
    for (const [resourceVersion, from] of [
      ['', undefined],
      ['0', undefined],
      ['5003', version],
    ] as const) {
      const started = plan({
        resourceVersion,
        resourceVersionMatch: 'NotOlderThan',
        sendInitialEvents: 'false',
      })
      assert.equal(started.initial, undefined)
      assert.equal(started.from, from)
    }
  })

  test('a watch ignores the limit of lists', () => {
    assert.equal(plan({ limit: '1' }).initial?.limit, undefined)
  })

  test('the deprecated watch paths start in the same way', () => {
    const path = `watch/${collection}`
    assert.notEqual(plan({}, path).initial, undefined)
    assert.notEqual(plan({ resourceVersion: '0' }, path).initial, undefined)
    assert.equal(plan({ resourceVersion: '5003' }, path).from, version)
    assert.equal(plan({ resourceVersion: '5003' }, path).initial, undefined)
  })

  test('the deprecated watch path of one event selects that event', () => {
    const path = `watch/${collection}/x`
    const started = plan({}, path)
    assert.deepEqual(started.scope, { cluster: 'local', namespace: 'a' })
    assert.deepEqual(started.selector?.requires?.names, exactly('x'))
  })
})

describe('bookmarks, selectors and lifetime of a watch', () => {
  test('bookmarks are sent only on request', () => {
    assert.equal(plan({}).hasBookmarks, false)
    assert.equal(plan({}).hasInitialBookmark, false)
    assert.equal(plan({ allowWatchBookmarks: 'true' }).hasBookmarks, true)
  })

  test('the bookmark after the existing events needs both options', () => {
    const requested = { resourceVersionMatch: 'NotOlderThan', sendInitialEvents: 'true' }
    assert.equal(plan(requested).hasInitialBookmark, false)
    assert.equal(plan({ ...requested, allowWatchBookmarks: 'true' }).hasInitialBookmark, true)
    const unrequested = { resourceVersion: '5003', allowWatchBookmarks: 'true' }
    assert.equal(plan(unrequested).hasInitialBookmark, false)
  })

  test('watches with equal selectors share one selector', () => {
    const one = plan({ labelSelector: 'a in (b,c)', fieldSelector: 'reason=x' })
    const same = plan({ labelSelector: 'a in (b,c)', fieldSelector: 'reason=x' })
    const others = [
      plan({ labelSelector: 'a in (b,c)', fieldSelector: 'reason=y' }),
      plan({ labelSelector: 'a notin (b,c)', fieldSelector: 'reason=x' }),
      plan({ labelSelector: 'a in (b,c)', fieldSelector: 'reason=x', shardSelector: upperHalf }),
    ]
    assert.ok(one.selector !== undefined && one.selector === same.selector)
    assert.equal(one.initial?.selector, one.selector)
    assert.ok(others.every(({ selector }) => selector !== one.selector))
    assert.equal(plan({}).selector, undefined)
  })

  // Difference from Kubernetes: watches-have-an-end.
  test('a watch lasts as long as requested, up to the maximum', () => {
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
