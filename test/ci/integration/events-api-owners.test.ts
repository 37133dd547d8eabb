import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Answered, type EventApiUnderTest, withEventApi } from '../../support/event-api.ts'
import { makeEvent } from '../../support/wire-event.ts'

/**
 * So many labels, with names of the maximum length, that an event with them and their managedFields
 * barely fits.
 */
const LABELS = 1_900
const long = (index: number): string => `${String(index).padStart(61, 'x')}.${'y'.repeat(61)}`
const labels = Object.fromEntries(
  Array.from({ length: LABELS }, (_, index) => [
    `${long(index)}.${long(index)}/${'z'.repeat(63)}`,
    'v'.repeat(63),
  ]),
)
const annotations = { 'example.com/a': 'a'.repeat(240 * 1024) }

describe('an event that does not fit with its managedFields', () => {
  let api: EventApiUnderTest

  withEventApi({
    begin: (started) => {
      api = started
    },
  })

  function apply(at: string, metadata: object): Promise<Answered> {
    const [namespace = '', name = ''] = at.split('/')
    return api.call({
      method: 'PATCH',
      at,
      query: { fieldManager: 'tester' },
      headers: { 'content-type': 'application/apply-patch+yaml' },
      body: {
        apiVersion: 'events.k8s.io/v1',
        kind: 'Event',
        ...makeEvent(namespace, name),
        metadata: { name, namespace, ...metadata },
      },
    })
  }

  const mergePatch = { 'content-type': 'application/merge-patch+json' }
  const managersOf = ({ json }: Answered): unknown[] =>
    (json.metadata.managedFields ?? []).map(({ manager }: { manager: string }) => manager)

  test('an update drops the managedFields, and an apply is rejected with 413', async () => {
    const created = await apply('a/e', { labels })
    assert.equal(created.status, 201, created.text.slice(0, 300))
    assert.deepEqual(managersOf(created), ['tester'])

    const refused = await apply('a/e', { labels, annotations })
    assert.equal(refused.status, 413)
    assert.deepEqual(managersOf(await api.call({ at: 'a/e' })), ['tester'])

    const body = { metadata: { annotations } }
    const patched = await api.call({ method: 'PATCH', at: 'a/e', headers: mergePatch, body })
    assert.equal(patched.status, 200, patched.text.slice(0, 300))
    assert.deepEqual(managersOf(patched), [])
    const read = await api.call({ at: 'a/e' })
    assert.deepEqual(read.json, patched.json)
    assert.deepEqual(read.json.metadata.annotations, annotations)
    assert.equal(Object.keys(read.json.metadata.labels).length, LABELS)
  })

  test('a PUT drops the managedFields, too', async () => {
    assert.equal((await apply('a/put', { labels })).status, 201)
    const { json } = await api.call({ at: 'a/put' })
    const { managedFields: _, ...metadata } = json.metadata
    const body = { ...json, metadata: { ...metadata, annotations } }
    const put = await api.call({ method: 'PUT', at: 'a/put', body })
    assert.equal(put.status, 200, put.text.slice(0, 300))
    assert.deepEqual(managersOf(put), [])
  })
})
