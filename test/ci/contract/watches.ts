import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  isAfter,
  revisionOf,
  type Version,
  versionOfState,
} from '../../../src/storage/resource-version.ts'
import type { EventStorage, WatchItem } from '../../../src/storage/storage.ts'
import { eventBody, eventKey } from '../../support/stored-events.ts'
import { first, patienceMs, signal, take, tell, within } from './expectations.ts'

/** Contract of watches. */
export function watches(storage: () => EventStorage): void {
  test('watch: every change comes once, in order, with the previous state', async () => {
    const from = await storage().currentVersion({ signal })
    const [a, b, other] = [eventKey('watch', 'a'), eventKey('watch', 'b'), eventKey('not', 'a')]
    const versions = [
      await storage().create(a, eventBody(a, 'a1')),
      await storage().create(b, eventBody(b, 'b1')),
      await storage().update(a, () => eventBody(a, 'a2')),
      await storage().delete(b),
      await storage().delete(a),
    ].map(({ version }) => version)
    await storage().create(other, eventBody(other, 'x'))
    const items = await take(5, (end) =>
      storage().watch({ cluster: 'local', namespace: 'watch' }, { from, ...end }),
    )
    assert.deepEqual(items.map(tell), [
      'put watch/a a1 was nothing',
      'put watch/b b1 was nothing',
      'put watch/a a2 was a1',
      'delete watch/b b1',
      'delete watch/a a2',
    ])
    const seen = items.map(({ stored }) => stored.version)
    assert.deepEqual(seen, versions, 'the versions of the writers')
    for (const [index, version] of versions.entries()) {
      const rest = await take(versions.length - 1 - index, (end) =>
        storage().watch({ cluster: 'local', namespace: 'watch' }, { from: version, ...end }),
      )
      assert.deepEqual(rest.map(tell), items.slice(index + 1).map(tell), `after item ${index}`)
    }
  })

  test('watch: changes of all namespaces are delivered', async () => {
    const from = await storage().currentVersion({ signal })
    for (const namespace of ['watch-1', 'watch-2']) {
      const key = eventKey(namespace, 'a')
      await storage().create(key, eventBody(key, 'x'))
    }
    const items = await take(2, (end) =>
      storage().watch({ cluster: undefined, namespace: undefined }, { from, ...end }),
    )
    assert.deepEqual(
      items.map(({ stored }) => stored.key.namespace),
      ['watch-1', 'watch-2'],
    )
  })

  test('watch: later changes are delivered as they happen, then it ends', async () => {
    const from = await storage().currentVersion({ signal })
    const key = eventKey('watch-live', 'a')
    const end = new AbortController()
    const seen: WatchItem[] = []
    const watching = (async () => {
      const scope = { cluster: 'local', namespace: 'watch-live' }
      for await (const { items } of storage().watch(scope, { from, signal: end.signal })) {
        seen.push(...items)
        if (seen.length === 1) await storage().update(key, () => eventBody(key, 'two'))
        if (seen.length === 2) end.abort()
      }
    })()
    await storage().create(key, eventBody(key, 'one'))
    await within(patienceMs, watching)
    assert.deepEqual(seen.map(tell), [
      'put watch-live/a one was nothing',
      'put watch-live/a two was one',
    ])
  })

  test('watch: progress is reported on request', async () => {
    const from = await storage().currentVersion({ signal })
    const key = eventKey('elsewhere', 'a')
    const { version } = await storage().create(key, eventBody(key, 'x'))
    const end = new AbortController()
    const watch = storage().watch(
      { cluster: 'local', namespace: 'nothing-here' },
      { from, signal: end.signal },
    )
    watch.requestProgress()
    const watching = (async () => {
      for await (const batch of watch) {
        assert.deepEqual(batch.items, [])
        if (isAfter(batch.version, version)) return
        watch.requestProgress()
      }
    })()
    await within(patienceMs, watching)
    end.abort()
  })

  test('watch: a watch from a future version waits, and skips earlier changes', async () => {
    const current = await storage().currentVersion({ signal })
    const names = ['a', 'b', 'c']
    const end = new AbortController()
    const from = versionOfState(revisionOf(current) + 2)
    const watch = storage().watch(
      { cluster: 'local', namespace: 'watch-future' },
      { from, signal: end.signal },
    )
    const watching = first(watch)
    const created: Version[] = []
    for (const name of names) {
      const key = eventKey('watch-future', name)
      created.push((await storage().create(key, eventBody(key, name))).version)
    }
    const item = await within(patienceMs, watching)
    end.abort()
    const due = created.find((version) => isAfter(version, from))
    assert.equal(item?.stored.version, due)
  })
}
