import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../../lib/json.ts'
import { fieldsV1Of } from './field-set.ts'
import { allowedByLastApplied, withLastApplied } from './last-applied.ts'

const NAME = 'kubectl.kubernetes.io/last-applied-configuration'
const type = { apiVersion: 'events.k8s.io/v1', kind: 'Event' }

function eventWith(annotation: string, fields: JsonObject = {}): JsonObject {
  return { metadata: { name: 'e', annotations: { [NAME]: annotation, other: 'o' } }, ...fields }
}

describe('allowedByLastApplied', () => {
  const annotation = JSON.stringify({
    ...type,
    metadata: { labels: { a: '1' } },
    note: 'x',
    type: 'y',
  })

  test('allows fields that are unchanged since the client-side apply', () => {
    assert.deepEqual(
      fieldsV1Of(allowedByLastApplied(eventWith(annotation, { note: 'x', type: 'z' }))),
      {
        'f:note': {},
      },
    )
  })

  test('allows fields with the names of core/v1', () => {
    const core = JSON.stringify({ apiVersion: 'v1', kind: 'Event', message: 'x' })
    assert.deepEqual(fieldsV1Of(allowedByLastApplied(eventWith(core, { note: 'x' }))), {
      'f:note': {},
    })
  })

  const useless = [
    '',
    '{',
    '[]',
    '{"apiVersion":1}',
    '{"apiVersion":"v1","kind":"Pod"}',
    '{"apiVersion":"v1","kind":"Event","surprise":1}',
  ]
  for (const text of useless) {
    test(`the annotation ${text || '(empty)'} allows no fields`, () => {
      assert.equal(allowedByLastApplied(eventWith(text)).size, 0)
    })
  }

  test('allows no fields without the annotation', () => {
    assert.equal(allowedByLastApplied({ metadata: {} }).size, 0)
    assert.equal(allowedByLastApplied({}).size, 0)
  })
})

describe('withLastApplied', () => {
  test('sets the annotation to the applied configuration, with sorted members', () => {
    const sent = { ...type, note: 'x', metadata: { name: 'e', annotations: { [NAME]: 'old' } } }
    const text =
      '{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"annotations":{},"name":"e"},"note":"x"}\n'
    assert.deepEqual(withLastApplied(eventWith('old'), sent), eventWith(text))
  })

  test('adds no annotation to an event without one', () => {
    const event = { metadata: { name: 'e' } }
    assert.equal(withLastApplied(event, type), event)
    assert.deepEqual(withLastApplied(eventWith(''), type), eventWith(''))
  })

  test('removes an annotation that would be too long', () => {
    const sent = { ...type, note: 'x'.repeat(262_144) }
    assert.deepEqual(withLastApplied(eventWith('old'), sent), {
      metadata: { name: 'e', annotations: { other: 'o' } },
    })
  })
})
