import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Event, ManagedFieldsEntry } from '../api/event.ts'
import { encodeEvent } from '../codec/event-json.ts'
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
  test('managed-fields-begin-with-apply: gives it no owners, and does not even ask who makes it', () => {
    const change = { sent: [stored], served, writing: () => assert.fail('nobody needs to know') }
    const changed = { ...event, note: 'y' }
    assert.equal(tracked(changed, before(event), change), changed)
  })
})

describe('a change of an event that was applied', () => {
  test('makes its manager the owner of what it changed', () => {
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

  test('that changes nothing leaves all as it is, times included', () => {
    assert.deepEqual(entriesAfter(managed, [stored]), [stored])
    assert.deepEqual(entriesAfter(managed, [{ ...stored, time: '2026-05-05T00:00:00Z' }]), [stored])
  })

  test('may bring owners with it', () => {
    const brought = { ...stored, manager: 'three' }
    assert.deepEqual(entriesAfter(managed, [brought]), [brought])
  })

  test('keeps the owners when those it brings cannot be read', () => {
    assert.deepEqual(entriesAfter(managed, [{ ...stored, operation: 'Delete' }]), [stored])
    assert.deepEqual(entriesAfter(managed, [{ ...stored, fieldsV1: {} }]), [stored])
    assert.deepEqual(entriesAfter(managed, undefined), [stored])
  })

  test('drops owners whose version is not served, stored or brought', () => {
    const older = { ...stored, manager: 'old', apiVersion: 'events.k8s.io/v1beta1' }
    const mixed = { ...managed, metadata: { ...managed.metadata, managedFields: [older, stored] } }
    const change = { sent: undefined, served, writing }
    assert.deepEqual(tracked(mixed, before(mixed), change).metadata.managedFields, [stored])
    assert.deepEqual(entriesAfter(managed, [older, stored]), [stored])
    // They were meant in place of those that are stored.
    assert.equal(entriesAfter(managed, [older]), undefined)
  })

  test('that would make too many owners leaves none, and is not refused', () => {
    const many = Array.from({ length: 128 }, (_, at) => ({ ...stored, manager: `m${at}` }))
    assert.equal(entriesAfter(managed, many)?.length, 128)
    const labelled = { ...managed, metadata: { ...managed.metadata, labels: { a: '1' } } }
    assert.equal(entriesAfter(labelled, many), undefined)
  })

  test('can do away with all owners, until the event is applied again', () => {
    assert.equal(entriesAfter(managed, []), undefined)
    assert.equal(entriesAfter({ ...managed, note: 'y' }, [{}]), undefined)
  })
})

describe('owners that anybody may have sent', () => {
  test('are taken or passed over, and never in the way', () => {
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
