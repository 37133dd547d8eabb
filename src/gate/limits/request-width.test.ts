import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { StoredSizes } from '../../storage/stored-sizes.ts'
import { readTarget } from '../target.ts'
import { widthOf } from './request-width.ts'

const EVENTS = '/apis/events.k8s.io/v1/namespaces/default/events'
const ALL_EVENTS = '/apis/events.k8s.io/v1/events'
const OF_UID = 'fieldSelector=regarding.uid=x'
const KIB = 1024

interface Sent {
  readonly method?: string
  readonly path?: string
  readonly query?: string
  readonly accept?: string
}

function width(sent: Sent, sizes?: Pick<StoredSizes, 'of'>): number {
  const { method = 'GET', path = EVENTS, query = '', accept = 'application/json' } = sent
  const target = readTarget({ method, path, query: new URLSearchParams(query) }, 'local')
  return widthOf(target, { headers: { accept } }, sizes)
}

/** The default namespace has the given size, and there is nothing else. */
function stored(events: number, bytes: number): Pick<StoredSizes, 'of'> {
  return { of: (cluster, namespace) => ({ cluster, namespace, events, bytes }) }
}

describe('the width of a request', () => {
  test('is 1 unless it lists', () => {
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
      assert.equal(width({ method, path: `${EVENTS}/web-0.1` }), 1)
    }
    assert.equal(width({ method: 'POST' }), 1)
    assert.equal(width({ path: '/livez' }), 1)
  })

  test('grows with the limit of a list, and is large without one', () => {
    const cases: readonly [Sent, number][] = [
      [{ query: 'limit=100' }, 1],
      [{ query: 'limit=500' }, 5],
      [{}, 20],
      [{ query: 'limit=-1' }, 20],
      [{ query: 'limit=many' }, 20],
      [{ query: 'limit=99999999' }, 20],
      [{ query: 'limit=1&labelSelector=a' }, 20],
      [{ query: 'limit=1&fieldSelector=type=Normal' }, 20],
      [{ query: 'limit=1&order=newest' }, 20],
      [{ query: 'fieldSelector=metadata.name=x' }, 1],
      [{ path: ALL_EVENTS, query: 'fieldSelector=metadata.name=x' }, 20],
      [{ path: ALL_EVENTS, query: OF_UID }, 1],
      [{ path: ALL_EVENTS, query: `${OF_UID},text=y` }, 20],
      [{ path: ALL_EVENTS, query: `${OF_UID},search=y` }, 20],
      [{ path: ALL_EVENTS, query: `${OF_UID}|y` }, 20],
      [{ path: ALL_EVENTS, query: `${OF_UID}*` }, 20],
      [{ path: ALL_EVENTS, query: 'fieldSelector=regarding.uid!=x' }, 20],
      [{ path: ALL_EVENTS, query: 'fieldSelector=reason=a%5C,regarding.uid=x' }, 20],
      [{ path: ALL_EVENTS, query: 'fieldSelector=regarding.uid=' }, 20],
      [{ path: ALL_EVENTS, query: `${OF_UID}&continue=y` }, 20],
      [{ path: ALL_EVENTS, query: `${OF_UID}&resourceVersion=7&resourceVersionMatch=Exact` }, 20],
      [{ path: ALL_EVENTS, query: `${OF_UID}&resourceVersion=7&limit=1` }, 20],
      [{ path: ALL_EVENTS, query: `${OF_UID}&resourceVersion=7` }, 1],
      [{ method: 'DELETE' }, 20],
      [{ path: `/clusters/*${EVENTS}`, query: 'fieldSelector=metadata.name=x' }, 20],
      [{ path: `/clusters/a${EVENTS}`, query: 'fieldSelector=metadata.name=x' }, 1],
      [{ path: `/clusters/*${EVENTS}`, query: 'limit=100' }, 1],
      [{ path: '/apis/tidings.dev/v1alpha1/eventsummaries', query: 'limit=1' }, 20],
      [{ path: '/apis/tidings.dev/v1alpha1/eventhistograms', query: 'limit=1' }, 20],
    ]
    for (const [sent, expected] of cases) {
      assert.equal(width(sent), expected, JSON.stringify(sent))
    }
  })

  test('is that of a list for a watch that sends existing events first', () => {
    assert.equal(width({ query: 'watch=1' }), 20)
    assert.equal(width({ query: 'watch=1&limit=1' }), 20)
    assert.equal(width({ query: 'watch=1&resourceVersion=000' }), 20)
    assert.equal(width({ query: 'watch=1&resourceVersion=7' }), 1)
    assert.equal(width({ query: 'watch=1&resourceVersion=7&sendInitialEvents=true' }), 20)
  })

  test('is estimated from the size of the namespace', () => {
    assert.equal(width({}, stored(0, 0)), 1)
    assert.equal(width({}, stored(80, 80 * KIB)), 1)
    assert.equal(width({}, stored(450, 450 * KIB)), 5)
    assert.equal(width({ query: 'watch=1' }, stored(450, 450 * KIB)), 5)
    assert.equal(width({}, stored(1_000_000, 1_000_000 * KIB)), 20)
  })

  test('counts bytes, not only events', () => {
    const large = stored(1000, 1000 * 113 * KIB)
    assert.equal(width({ query: 'limit=10' }, large), 5)
    assert.equal(width({ query: 'limit=100' }, large), 20)
  })

  test('counts YAML as more work than JSON', () => {
    const usual = stored(1000, 1000 * KIB)
    assert.equal(width({ query: 'limit=100' }, usual), 1)
    assert.equal(width({ query: 'limit=100', accept: 'application/yaml' }, usual), 4)
  })

  test('counts the events that a search has to read, however few match', () => {
    for (const search of [
      'order=newest',
      'fieldSelector=type=Normal',
      'labelSelector=a',
      'shardSelector=a',
    ]) {
      assert.equal(width({ query: `limit=1&${search}` }, stored(40_000, 40_000 * KIB)), 8, search)
      assert.equal(width({ query: `limit=1&${search}` }, stored(1000, 1000 * KIB)), 1, search)
    }
  })
})
