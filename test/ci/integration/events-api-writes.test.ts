import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type Answered,
  type Call,
  type EventApiUnderTest,
  withEventApi,
} from '../../support/event-api.ts'
import { eventually } from '../../support/eventually.ts'
import { inParallel } from '../../support/load.ts'
import type { Watched } from '../../support/watched.ts'
import { makeEvent, type WireEvent } from '../../support/wire-event.ts'

const mergePatch = { 'content-type': 'application/merge-patch+json' }
const jsonPatch = { 'content-type': 'application/json-patch+json' }
const strategicPatch = { 'content-type': 'application/strategic-merge-patch+json' }
const finalizer = 'example.com/hold'

describe('writes', () => {
  let api: EventApiUnderTest

  withEventApi({
    begin: (started) => {
      api = started
    },
  })

  function create(namespace: string, name: string, metadata: object = {}): Promise<Answered> {
    return api.call({ method: 'POST', at: namespace, body: eventWith(namespace, name, metadata) })
  }

  function patch(at: string, body: object, headers = mergePatch): Promise<Answered> {
    return api.call({ method: 'PATCH', at, headers, body })
  }

  /** What a watcher has received, once it has received an event that is created now. */
  async function receivedBy(watched: Watched, namespace: string): Promise<readonly string[]> {
    await create(namespace, 'last')
    await eventually('the last create is received', () => watched.received.includes('ADDED last'))
    return watched.received.slice(0, -1)
  }

  describe('writes to an event with finalizers', () => {
    test('a delete marks the event, and a second delete changes nothing', async () => {
      const namespace = 'marked'
      await create(namespace, 'e', { finalizers: [finalizer] })
      await using watched = await api.watchFromNow(namespace)
      const marked = await api.call({ method: 'DELETE', at: `${namespace}/e` })
      assert.equal(marked.status, 200)
      assert.equal(marked.json.kind, 'Event')
      assert.match(marked.json.metadata.deletionTimestamp, /^\d{4}-.*Z$/)
      assert.equal(marked.json.metadata.deletionGracePeriodSeconds, 0)
      const again = await api.call({ method: 'DELETE', at: `${namespace}/e` })
      assert.deepEqual([again.status, again.json], [200, marked.json])
      assert.deepEqual((await api.call({ at: `${namespace}/e` })).json, marked.json)
      const taken = await create(namespace, 'e')
      assert.equal(taken.json.reason, 'AlreadyExists')
      assert.match(taken.json.message, /^object is being deleted: /)
      assert.deepEqual(await receivedBy(watched, namespace), ['MODIFIED e'])
    })

    test('an event that is being deleted may be changed, but gets no new finalizers', async () => {
      const namespace = 'deleting'
      await create(namespace, 'e', { finalizers: [finalizer] })
      await api.call({ method: 'DELETE', at: `${namespace}/e` })
      const labelled = await patch(`${namespace}/e`, { metadata: { labels: { a: 'b' } } })
      assert.equal(labelled.status, 200)
      const more = { metadata: { finalizers: [finalizer, 'example.com/more'] } }
      const refused = await patch(`${namespace}/e`, more)
      assert.deepEqual([refused.status, refused.json.reason], [422, 'Invalid'])
      const other = await patch(`${namespace}/e`, { metadata: { finalizers: ['example.com/x'] } })
      assert.equal(other.status, 422)
      const alive = await patch(`${namespace}/e`, {
        metadata: { deletionTimestamp: null, deletionGracePeriodSeconds: null },
      })
      assert.equal(alive.json.metadata.deletionTimestamp, labelled.json.metadata.deletionTimestamp)
    })

    test('removing the last finalizer deletes the event, by any kind of write, and watchers get one DELETED', async () => {
      const namespace = 'released'
      const event = eventWith(namespace, 'put', {})
      const none = { metadata: { finalizers: null } }
      const removals: Readonly<Record<string, Omit<Call, 'at'>>> = {
        put: { method: 'PUT', body: event },
        merge: { method: 'PATCH', headers: mergePatch, body: none },
        json: {
          method: 'PATCH',
          headers: jsonPatch,
          body: [{ op: 'remove', path: '/metadata/finalizers/0' }],
        },
        strategic: {
          method: 'PATCH',
          headers: strategicPatch,
          body: { metadata: { '$deleteFromPrimitiveList/finalizers': [finalizer] } },
        },
      }
      await using watched = await api.watchFromNow(namespace)
      for (const [name, removal] of Object.entries(removals)) {
        const at = `${namespace}/${name}`
        await create(namespace, name, { finalizers: [finalizer] })
        const marked = await api.call({ method: 'DELETE', at })
        const removed = await api.call({ at, ...removal })
        assert.equal(removed.status, 200, name)
        assert.equal(removed.json.metadata.finalizers, undefined)
        assert.equal(
          removed.json.metadata.deletionTimestamp,
          marked.json.metadata.deletionTimestamp,
          name,
        )
        assert.equal((await api.call({ at })).status, 404, name)
      }
      const expected = Object.keys(removals).flatMap((name) =>
        ['ADDED', 'MODIFIED', 'DELETED'].map((type) => `${type} ${name}`),
      )
      assert.deepEqual(await receivedBy(watched, namespace), expected)
    })

    test('a client cannot set the deletion timestamp itself', async () => {
      const namespace = 'claimed'
      const claim = { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 0 }
      await create(namespace, 'e')
      const put = await api.call({
        method: 'PUT',
        at: `${namespace}/e`,
        body: eventWith(namespace, 'e', claim),
      })
      const patched = await patch(`${namespace}/e`, { metadata: claim })
      assert.deepEqual([put.status, patched.status], [422, 422])
      const { status, json } = await api.call({ at: `${namespace}/e` })
      assert.deepEqual([status, json.metadata.deletionTimestamp], [200, undefined])
    })
  })

  test('a write that changes nothing writes nothing', async () => {
    const namespace = 'same'
    const at = `${namespace}/e`
    const event = eventWith(namespace, 'e', { labels: { a: 'b' }, annotations: { c: 'd' } })
    const { json: created } = await api.call({ method: 'POST', at: namespace, body: event })
    const { signal } = new AbortController()
    const key = { cluster: 'local', namespace, name: 'e' }
    const { writtenAtMs } = await api.storage.get(key, { signal })
    await using watched = await api.watchFromNow(namespace)
    const writes: readonly Omit<Call, 'at'>[] = [
      { method: 'PUT', body: event },
      { method: 'PUT', body: created },
      { method: 'PATCH', headers: mergePatch, body: {} },
      { method: 'PATCH', headers: mergePatch, body: { metadata: { labels: { a: 'b' } } } },
      { method: 'PATCH', headers: strategicPatch, body: { reason: created.reason } },
      { method: 'PATCH', headers: jsonPatch, body: [] },
      {
        method: 'PATCH',
        headers: jsonPatch,
        body: [{ op: 'replace', path: '/note', value: created.note }],
      },
    ]
    for (const write of writes) {
      const { status, json } = await api.call({ at, ...write })
      assert.equal(status, 200)
      assert.deepEqual(json, created)
    }
    const { version, writtenAtMs: stillAtMs } = await api.storage.get(key, { signal })
    assert.equal(String(version), created.metadata.resourceVersion)
    assert.equal(stillAtMs, writtenAtMs)
    await patch(at, { metadata: { labels: { a: 'c' } } })
    assert.deepEqual(await receivedBy(watched, namespace), ['MODIFIED e'])
  })

  describe('concurrent writes', () => {
    test('of two updates of one version exactly one succeeds', async () => {
      const namespace = 'contest'
      for (let round = 0; round < 20; round++) {
        const name = `e${round}`
        const { json } = await create(namespace, name)
        const { resourceVersion } = json.metadata
        const answers = await Promise.all(
          ['one', 'other'].map((label) => {
            const body = eventWith(namespace, name, { resourceVersion, labels: { label } })
            return api.call({ method: 'PUT', at: `${namespace}/${name}`, body })
          }),
        )
        assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409])
        const refused = answers.find(({ status }) => status === 409)
        assert.equal(refused?.json.reason, 'Conflict')
        const made = answers.find(({ status }) => status === 200)
        assert.deepEqual((await api.call({ at: `${namespace}/${name}` })).json, made?.json)
      }
    })

    test('of many concurrent PUTs of a missing event exactly one creates it', async () => {
      const namespace = 'race'
      await using watched = await api.watchFromNow(namespace)
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, index) => {
          const body = eventWith(namespace, 'e', { labels: { by: String(index) } })
          return api.call({ method: 'PUT', at: `${namespace}/e`, body })
        }),
      )
      const codes = answers.map(({ status }) => status).sort()
      assert.deepEqual(codes, [...Array.from({ length: 19 }, () => 200), 201])
      assert.equal(new Set(answers.map(({ json }) => json.metadata.uid)).size, 1)
      const versions = new Set(answers.map(({ json }) => json.metadata.resourceVersion))
      assert.equal(versions.size, 20)
      const seen = await receivedBy(watched, namespace)
      assert.deepEqual(seen, ['ADDED e', ...Array.from({ length: 19 }, () => 'MODIFIED e')])
    })

    for (const headers of [mergePatch, strategicPatch, jsonPatch]) {
      const type = headers['content-type']
      test(`concurrent patches of different fields are all applied: ${type}`, async () => {
        const namespace = `patches-${type.replaceAll(/\W/g, '-')}`
        await create(namespace, 'e', { labels: { first: 'x' } })
        await using watched = await api.watchFromNow(namespace)
        const names = Array.from({ length: 100 }, (_, index) => `l${index}`)
        const bodyFor = (label: string): object =>
          headers === jsonPatch
            ? [{ op: 'add', path: `/metadata/labels/${label}`, value: 'x' }]
            : { metadata: { labels: { [label]: 'x' } } }
        const answers = await Promise.all(
          names.map((label) => patch(`${namespace}/e`, bodyFor(label), headers)),
        )
        for (const [index, { status, json }] of answers.entries()) {
          assert.equal(status, 200)
          assert.equal(json.metadata.labels[`l${index}`], 'x', 'the response has its own label')
        }
        const versions = new Set(answers.map(({ json }) => json.metadata.resourceVersion))
        assert.equal(versions.size, names.length)
        const { json } = await api.call({ at: `${namespace}/e` })
        assert.deepEqual(Object.keys(json.metadata.labels).sort(), ['first', ...names].sort())
        await receivedBy(watched, namespace)
        assert.deepEqual(
          watched.frames
            .slice(0, -1)
            .map(({ object }) => Object.keys(object.metadata.labels ?? {}).length),
          names.map((_, index) => index + 2),
          'one more label each time',
        )
      })
    }

    test('of many concurrent deletes one succeeds', async () => {
      const namespace = 'deletes'
      await create(namespace, 'e')
      const answers = await Promise.all(
        Array.from({ length: 10 }, () => api.call({ method: 'DELETE', at: `${namespace}/e` })),
      )
      assert.equal(answers.filter(({ status }) => status === 200).length, 1)
      assert.equal(answers.filter(({ status }) => status === 404).length, 9)
    })

    test('a delete with a version or uid as precondition deletes only that object', async () => {
      const namespace = 'guarded'
      const { json: first } = await create(namespace, 'e')
      const { json: second } = await patch(`${namespace}/e`, { metadata: { labels: { a: 'b' } } })
      const wrong = [
        { resourceVersion: first.metadata.resourceVersion },
        { uid: '00000000-0000-0000-0000-000000000000' },
        // Sent by a client that forwards an object whose fields it never set.
        { uid: '' },
        { resourceVersion: '' },
      ]
      for (const preconditions of wrong) {
        const body = { kind: 'DeleteOptions', apiVersion: 'v1', preconditions }
        const refused = await api.call({ method: 'DELETE', at: `${namespace}/e`, body })
        assert.deepEqual([refused.status, refused.json.reason], [409, 'Conflict'])
      }
      const { uid, resourceVersion } = second.metadata
      const body = { preconditions: { uid, resourceVersion } }
      const done = await api.call({ method: 'DELETE', at: `${namespace}/e`, body })
      assert.equal(done.status, 200)
    })
  })

  test('namespaces-need-not-exist: a namespace exists with its first event', async () => {
    const { json: before } = await api.call({ at: 'never-heard-of' })
    assert.deepEqual(before.items, [])
    const { status } = await create('never-heard-of', 'e')
    assert.equal(status, 201)
    const { json: after } = await api.call({ at: 'never-heard-of' })
    assert.equal(after.items.length, 1)
  })

  test('generated names are all different, and all are found', async () => {
    const namespace = 'generated'
    const event = eventWith(namespace, '', { generateName: 'pod-', name: undefined })
    const names = new Set<string>()
    await inParallel(2_000, 200, async () => {
      const { status, json } = await api.call({ method: 'POST', at: namespace, body: event })
      assert.equal(status, 201)
      names.add(json.metadata.name)
    })
    assert.equal(names.size, 2_000)
    const { json } = await api.call({ at: namespace })
    const found = json.items.map(({ metadata }: WireEvent) => metadata.name)
    assert.deepEqual(new Set(found), names)
  })

  test('a dry run of any verb writes nothing', async () => {
    const namespace = 'dry'
    const at = `${namespace}/e`
    const { json: created } = await create(namespace, 'e')
    const { json: held } = await create(namespace, 'held', { finalizers: [finalizer] })
    await using watched = await api.watchFromNow(namespace)
    const query = { dryRun: 'All' }
    const changed = eventWith(namespace, 'e', { labels: { a: 'b' } })
    const runs: readonly (readonly [Call, number])[] = [
      [{ method: 'POST', at: namespace, body: eventWith(namespace, 'new', {}) }, 201],
      [{ method: 'POST', at: namespace, body: changed }, 409],
      [{ method: 'PUT', at, body: changed }, 200],
      [{ method: 'PUT', at: `${namespace}/new`, body: eventWith(namespace, 'new', {}) }, 201],
      [{ method: 'PATCH', at, headers: mergePatch, body: { metadata: { labels: {} } } }, 200],
      [{ method: 'PATCH', at: `${namespace}/no`, headers: mergePatch, body: {} }, 404],
      [{ method: 'DELETE', at }, 200],
      [{ method: 'DELETE', at: `${namespace}/held` }, 200],
      [{ method: 'DELETE', at: `${namespace}/no` }, 404],
      [{ method: 'DELETE', at: namespace }, 200],
    ]
    for (const [call, status] of runs) {
      const answer = await api.call({ ...call, query })
      assert.equal(answer.status, status, `${call.method} ${call.at}: ${answer.text}`)
    }
    const { json } = await api.call({ at: namespace })
    assert.deepEqual(
      json.items.map((item: WireEvent) => item.metadata),
      [created.metadata, held.metadata],
    )
    assert.deepEqual(await receivedBy(watched, namespace), [])
  })
})

/** `metadata` overrides the default members; undefined members are left out. */
function eventWith(namespace: string, name: string, metadata: object): object {
  const event = makeEvent(namespace, name)
  return { ...event, metadata: { ...event.metadata, ...metadata } }
}
