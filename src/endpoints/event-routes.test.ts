import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseEventPath } from './event-routes.ts'

describe('parseEventPath', () => {
  test('paths name all events, those of a namespace, or one', () => {
    const event = { kind: 'event', namespace: 'a', name: 'b' }
    const cases: readonly [string, object][] = [
      ['events', { kind: 'everything', isWatchPath: false }],
      ['namespaces/a/events', { kind: 'collection', namespace: 'a', isWatchPath: false }],
      ['namespaces/a/events/b', { ...event, isWatchPath: false }],
      ['watch/events', { kind: 'everything', isWatchPath: true }],
      ['watch/namespaces/a/events', { kind: 'collection', namespace: 'a', isWatchPath: true }],
      ['watch/namespaces/a/events/b', { ...event, isWatchPath: true }],
    ]
    for (const [path, expected] of cases) {
      assert.deepEqual(parseEventPath(path), expected, path)
      assert.deepEqual(parseEventPath(`${path}/`), expected, `${path}/`)
    }
  })

  test('names that look like parts of a path are names', () => {
    const names = ['events', 'watch', 'namespaces', '__proto__', 'constructor', '..', 'ä', ' ']
    for (const name of names) {
      assert.deepEqual(parseEventPath(`namespaces/${name}/events/${name}`), {
        kind: 'event',
        namespace: name,
        name,
        isWatchPath: false,
      })
    }
  })

  test('everything else names nothing', () => {
    const paths = [
      '',
      '/',
      'watch',
      'watch/',
      'watch/watch/events',
      'namespaces',
      'namespaces/a',
      'namespaces/a/pods',
      'namespaces//events',
      'namespaces//events/b',
      'namespaces/a/events//',
      'namespaces/a/events//b',
      'namespaces/a/events/b//',
      'namespaces/a/events/b/status',
      '/events',
      'events//',
      'events/b',
      'Events',
      'NAMESPACES/a/events',
    ]
    for (const path of paths) assert.equal(parseEventPath(path), undefined, path)
  })
})

test('long-names-in-paths: a name that is longer than any could be is nowhere', () => {
  const likely = 'n'.repeat(1024)
  assert.equal(parseEventPath(`namespaces/${likely}/events/${likely}`)?.kind, 'event')
  const name = `${likely}n`
  assert.equal(parseEventPath(`namespaces/a/events/${name}`), undefined)
  assert.equal(parseEventPath(`namespaces/${name}/events/a`), undefined)
  assert.equal(parseEventPath(`namespaces/${name}/events`), undefined)
})
