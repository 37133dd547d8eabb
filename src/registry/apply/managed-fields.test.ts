import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ManagedFieldsEntry } from '../../api/event.ts'
import type { JsonObject } from '../../lib/json.ts'
import { fieldSetOfV1, NO_FIELDS } from './field-set.ts'
import {
  afterUpdate,
  areTooMany,
  isSameButForTimes,
  NO_OWNERS,
  type Owners,
  printOwners,
  readOwners,
  tooManyOwners,
} from './managed-fields.ts'
import type { Changes } from './structured-diff.ts'

const AT = '2026-01-01T00:00:00Z'
const LATER = '2026-01-01T00:00:09Z'
const V1 = 'events.k8s.io/v1'

function entry(changes: Partial<ManagedFieldsEntry> = {}): ManagedFieldsEntry {
  return {
    manager: 'm',
    operation: 'Update',
    apiVersion: V1,
    time: AT,
    fieldsType: 'FieldsV1',
    fieldsV1: { 'f:note': {} },
    ...changes,
  }
}

function read(...entries: ManagedFieldsEntry[]): Owners {
  const owners = readOwners(entries)
  assert.ok(owners)
  return owners
}

function changed(set: JsonObject, removed: JsonObject = {}): Changes {
  return { set: fieldSetOfV1(set) ?? NO_FIELDS, removed: fieldSetOfV1(removed) ?? NO_FIELDS }
}

describe('entries of managedFields', () => {
  test('are written as they were read', () => {
    const entries = [
      entry({ operation: 'Apply', manager: 'a' }),
      entry({ subresource: 'status' }),
      entry({ apiVersion: 'v1', fieldsV1: { 'f:message': {}, 'f:involvedObject': {} } }),
    ]
    assert.deepEqual(printOwners(read(...entries)), entries)
  })

  test('are sorted by operation, second, manager and version', () => {
    const sorted = [
      entry({ operation: 'Apply', manager: 'z', time: LATER }),
      entry({ manager: 'y' }),
      entry({ manager: 'z' }),
      entry({ manager: 'z', apiVersion: 'v1', fieldsV1: { 'f:type': {} } }),
      entry({ manager: 'a', time: LATER }),
    ]
    assert.deepEqual(printOwners(read(...sorted.toReversed())), sorted)
  })

  test('are merged for one applier in two API versions', () => {
    const one = entry({ operation: 'Apply' })
    assert.equal(read(one, { ...one, apiVersion: 'v1' }).size, 1)
    assert.equal(read(entry(), entry({ apiVersion: 'v1' })).size, 2)
  })

  test('are ignored without fields', () => {
    assert.equal(read(entry({ fieldsV1: {} })).size, 0)
  })

  const unreadable: readonly (readonly [string, Partial<ManagedFieldsEntry>])[] = [
    ['another operation', { operation: 'Delete' }],
    ['another format', { fieldsType: 'FieldsV2' }],
    ['no version', { apiVersion: '' }],
    ['invalid fields', { fieldsV1: { note: {} } }],
    ['a manager of more than 128 bytes', { manager: 'ü'.repeat(65) }],
    ['a version that is too long', { apiVersion: 'v'.repeat(300) }],
    ['a subresource that is too long', { subresource: 's'.repeat(300) }],
  ]
  for (const [what, wrong] of unreadable) {
    test(`one entry with ${what} invalidates all entries`, () => {
      assert.equal(readOwners([entry(), entry(wrong)]), undefined)
    })
  }

  test('owners-are-bounded: are not read beyond 128 entries', () => {
    const many = Array.from({ length: 129 }, (_, at) =>
      entry({ operation: 'Apply', manager: `m${at}` }),
    )
    assert.equal(readOwners(many), undefined)
    const [extra = entry()] = many
    const owners = new Map([...read(...many.slice(1)), ...read(extra)])
    assert.ok(areTooMany(owners))
    assert.equal(tooManyOwners().code, 413)
  })

  test('owners-are-bounded: are not read beyond 2000 fields', () => {
    const fields = (count: number): JsonObject =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`f:${at}`, {}]))
    const half = entry({ fieldsV1: fields(1000) })
    const more = entry({ manager: 'n', fieldsV1: fields(1001) })
    assert.equal(readOwners([half, more]), undefined)
    const owners = new Map([...read(half), ...read(more)])
    assert.ok(areTooMany(owners))
    assert.equal(tooManyOwners().code, 413)
  })

  test('isSameButForTimes ignores times and nothing else', () => {
    assert.ok(isSameButForTimes([entry()], [entry({ time: LATER })]))
    assert.ok(!isSameButForTimes([entry()], [entry({ manager: 'n' })]))
    assert.ok(!isSameButForTimes([entry()], []))
  })
})

describe('an update', () => {
  const writing = { manager: 'w', apiVersion: V1, at: LATER }

  test('takes the fields it changes from all other owners', () => {
    const owners = read(
      entry({ operation: 'Apply', manager: 'a', fieldsV1: { 'f:note': {}, 'f:type': {} } }),
      entry({ manager: 'b' }),
    )
    assert.deepEqual(printOwners(afterUpdate(owners, changed({ 'f:note': {} }), writing)), [
      entry({ operation: 'Apply', manager: 'a', fieldsV1: { 'f:type': {} } }),
      entry({ manager: 'w', time: LATER }),
    ])
  })

  test('adds to the fields of its manager', () => {
    const owners = read(entry({ manager: 'w', fieldsV1: { 'f:type': {} } }))
    assert.deepEqual(printOwners(afterUpdate(owners, changed({ 'f:note': {} }), writing)), [
      entry({ manager: 'w', time: LATER, fieldsV1: { 'f:note': {}, 'f:type': {} } }),
    ])
  })

  test('leaves a removed field without an owner', () => {
    const owners = read(entry({ manager: 'w', fieldsV1: { 'f:note': {}, 'f:type': {} } }), entry())
    assert.deepEqual(printOwners(afterUpdate(owners, changed({}, { 'f:note': {} }), writing)), [
      entry({ manager: 'w', fieldsV1: { 'f:type': {} } }),
    ])
  })

  test('does not own fields set by the server or the name of the object', () => {
    const fields = { 'f:metadata': { '.': {}, 'f:name': {}, 'f:uid': {}, 'f:resourceVersion': {} } }
    assert.equal(afterUpdate(NO_OWNERS, changed(fields), writing).size, 0)
  })

  test('records fields with the names of its API version', () => {
    const core = { ...writing, apiVersion: 'v1' }
    assert.deepEqual(
      printOwners(afterUpdate(read(entry()), changed({ 'f:note': {}, 'f:regarding': {} }), core)),
      [
        entry({
          manager: 'w',
          apiVersion: 'v1',
          time: LATER,
          fieldsV1: { 'f:message': {}, 'f:involvedObject': {} },
        }),
      ],
    )
  })
})

describe('more than ten updaters', () => {
  const at = (second: number): string => `2026-01-01T00:00:${String(second).padStart(2, '0')}Z`
  const labelled = (name: string): JsonObject => ({
    'f:metadata': { 'f:labels': { [`f:${name}`]: {} } },
  })

  function afterMany(
    count: number,
    versionOf: (index: number) => string,
  ): readonly ManagedFieldsEntry[] {
    let owners = NO_OWNERS
    for (let index = 0; index < count; index++) {
      const writing = { manager: `m${index}`, apiVersion: versionOf(index), at: at(index) }
      owners = afterUpdate(owners, changed(labelled(`l${index}`)), writing)
    }
    return printOwners(owners)
  }

  test('are reduced to ten by merging the oldest', () => {
    const entries = afterMany(15, () => V1)
    assert.deepEqual(
      entries.map(({ manager }) => manager),
      ['ancient-changes', 'm6', 'm7', 'm8', 'm9', 'm10', 'm11', 'm12', 'm13', 'm14'],
    )
    assert.equal(entries[0]?.time, at(5))
    const names = ['l0', 'l1', 'l2', 'l3', 'l4', 'l5'].map((name) => [`f:${name}`, {}])
    const labels = Object.fromEntries(names)
    assert.deepEqual(entries[0]?.fieldsV1, { 'f:metadata': { 'f:labels': labels } })
  })

  test('are merged per API version', () => {
    const entries = afterMany(14, (index) => (index % 2 === 0 ? V1 : 'v1'))
    const ancients = entries.filter(({ manager }) => manager === 'ancient-changes')
    assert.deepEqual(ancients.map(({ apiVersion }) => apiVersion).sort(), [V1, 'v1'])
    assert.equal(entries.length, 10)
  })

  test('do not cause appliers to be merged', () => {
    const appliers = Array.from({ length: 12 }, (_, index) =>
      entry({ operation: 'Apply', manager: `a${index}` }),
    )
    const writing = { manager: 'w', apiVersion: V1, at: LATER }
    assert.equal(afterUpdate(read(...appliers), changed({ 'f:type': {} }), writing).size, 13)
  })

  test('keep the fields of an existing merged entry', () => {
    const updaters = Array.from({ length: 10 }, (_, index) =>
      entry({ manager: `m${index}`, time: at(index), fieldsV1: labelled(`l${index}`) }),
    )
    const joint = entry({ manager: 'ancient-changes', time: at(40), fieldsV1: labelled('old') })
    const writing = { manager: 'w', apiVersion: V1, at: at(50) }
    const entries = printOwners(
      afterUpdate(read(...updaters, joint), changed({ 'f:type': {} }), writing),
    )
    const text = JSON.stringify(entries)
    for (const name of ['old', 'l0', 'l1', 'l9']) assert.ok(text.includes(`"f:${name}"`), name)
  })
})
