import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Event, ManagedFieldsEntry } from '../../api/event.ts'
import { encodeEvent } from '../../codec/event/event-json.ts'
import { type Before, tracked } from './update-tracking.ts'

const V1 = 'events.k8s.io/v1'
const stored: ManagedFieldsEntry = {
  manager: 'one',
  operation: 'Apply',
  apiVersion: V1,
  time: '2026-01-01T00:00:00Z',
  fieldsType: 'FieldsV1',
  fieldsV1: { 'f:note': {}, 'f:type': {} },
}
const served = new Set(['v1', V1])
const event: Event = { metadata: { name: 'e', namespace: 'n' }, note: 'x', type: 'Normal' }
const managed: Event = { ...event, metadata: { ...event.metadata, managedFields: [stored] } }
const writing = (): { manager: string; apiVersion: string; at: string } => ({
  manager: 'two',
  apiVersion: V1,
  at: '2026-01-01T00:00:09Z',
})

function before(old: Event): Before {
  return { old, stored: { body: encodeEvent(old) } }
}

function entriesAfter(
  changed: Event,
  sent?: readonly ManagedFieldsEntry[],
): readonly ManagedFieldsEntry[] | undefined {
  return tracked(changed, before(managed), { sent, served, writing }).metadata.managedFields
}

describe('a change of an event that was never applied', () => {
  test('managed-fields-begin-with-apply: adds no owners and does not compute its manager', () => {
    const change = { sent: [stored], served, writing: () => assert.fail('not needed') }
    const changed = { ...event, note: 'y' }
    assert.equal(tracked(changed, before(event), change), changed)
  })
})

describe('a change of an event that was applied', () => {
  test('makes its manager the owner of the changed fields', () => {
    assert.deepEqual(entriesAfter({ ...managed, note: 'y' }), [
      { ...stored, fieldsV1: { 'f:type': {} } },
      {
        ...stored,
        manager: 'two',
        operation: 'Update',
        time: '2026-01-01T00:00:09Z',
        fieldsV1: { 'f:note': {} },
      },
    ])
  })

  test('keeps all entries, including their times, when nothing changes', () => {
    assert.deepEqual(entriesAfter(managed, [stored]), [stored])
    assert.deepEqual(entriesAfter(managed, [{ ...stored, time: '2026-05-05T00:00:00Z' }]), [stored])
  })

  test('may set the owners', () => {
    const sent = { ...stored, manager: 'three' }
    assert.deepEqual(entriesAfter(managed, [sent]), [sent])
  })

  test('ignores invalid owners in the request', () => {
    assert.deepEqual(entriesAfter(managed, [{ ...stored, operation: 'Delete' }]), [stored])
    assert.deepEqual(entriesAfter(managed, [{ ...stored, fieldsV1: {} }]), [stored])
    assert.deepEqual(entriesAfter(managed, undefined), [stored])
  })

  test('drops stored and sent owners whose version is not served', () => {
    const older = { ...stored, manager: 'old', apiVersion: 'events.k8s.io/v1beta1' }
    const mixed = { ...managed, metadata: { ...managed.metadata, managedFields: [older, stored] } }
    const change = { sent: undefined, served, writing }
    assert.deepEqual(tracked(mixed, before(mixed), change).metadata.managedFields, [stored])
    assert.deepEqual(entriesAfter(managed, [older, stored]), [stored])
    // The sent owners replace the stored ones, so none are left.
    assert.equal(entriesAfter(managed, [older]), undefined)
  })

  test('makes the manager that emptied a field its owner if the group shows it when empty', () => {
    const reported = { ...managed, reportingController: 'a.io/b' }
    const owned = { ...stored, fieldsV1: { 'f:reportingController': {} } }
    const applied = { ...reported, metadata: { ...managed.metadata, managedFields: [owned] } }
    const change = { sent: undefined, served, writing }
    const { reportingController: _, ...emptied } = applied
    const entries = (shownWhenEmpty: readonly string[]): unknown =>
      tracked(emptied, before(applied), { ...change, shownWhenEmpty }).metadata.managedFields?.map(
        ({ manager }) => manager,
      )
    assert.deepEqual(entries([]), undefined)
    assert.deepEqual(entries(['reportingController']), ['two'])
  })

  test('removes all owners instead of failing when there would be too many', () => {
    const many = Array.from({ length: 128 }, (_, at) => ({ ...stored, manager: `m${at}` }))
    assert.equal(entriesAfter(managed, many)?.length, 128)
    const labelled = { ...managed, metadata: { ...managed.metadata, labels: { a: '1' } } }
    assert.equal(entriesAfter(labelled, many), undefined)
  })

  test('can remove all owners', () => {
    assert.equal(entriesAfter(managed, []), undefined)
    assert.equal(entriesAfter({ ...managed, note: 'y' }, [{}]), undefined)
  })
})

describe('arbitrary owners in the request', () => {
  test('are accepted or ignored, and a repeated write changes nothing', () => {
    const names = fc.constantFrom('f:note', 'f:metadata', '.', 'v:"a"', 'k:{"uid":"u"}', 'x')
    const fieldsV1 = fc.dictionary(names, fc.dictionary(names, fc.constant({})))
    const sent = fc.array(
      fc.record(
        {
          manager: fc.string(),
          operation: fc.constantFrom('Apply', 'Update', 'Delete'),
          apiVersion: fc.constantFrom('v1', V1, 'other/v2'),
          time: fc.constantFrom('2026-01-01T00:00:00Z', '2026-01-01T00:00:05Z'),
          fieldsType: fc.constantFrom('FieldsV1', 'FieldsV2'),
          fieldsV1: fc.oneof(fieldsV1, fc.jsonValue()),
        },
        { requiredKeys: ['operation', 'fieldsType'] },
      ),
    )
    fc.assert(
      fc.property(sent, (entries) => {
        const once = tracked(managed, before(managed), { sent: entries, served, writing })
        const twice = tracked(once, before(once), {
          sent: once.metadata.managedFields,
          served,
          writing,
        })
        assert.deepEqual(twice, once)
      }),
    )
  })
})
