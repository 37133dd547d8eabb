import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../lib/json.ts'
import { fieldsV1Of } from './field-set.ts'
import { allowedByLastApplied, withLastApplied } from './last-applied.ts'

const NAME = 'kubectl.kubernetes.io/last-applied-configuration'
const type = { apiVersion: 'events.k8s.io/v1', kind: 'Event' }

function eventWith(annotation: string, fields: JsonObject = {}): JsonObject {
  return { metadata: { name: 'e', annotations: { [NAME]: annotation, other: 'o' } }, ...fields }
}

describe('fields that kubectl applied by itself', () => {
  const annotation = JSON.stringify({
    ...type,
    metadata: { labels: { a: '1' } },
    note: 'x',
    type: 'y',
  })

  test('may be taken while they are as it left them', () => {
    assert.deepEqual(
      fieldsV1Of(allowedByLastApplied(eventWith(annotation, { note: 'x', type: 'z' }))),
      {
        'f:note': {},
      },
    )
  })

  test('may be taken whatever they were called', () => {
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
    test(`are none when the annotation is ${text || 'empty'}`, () => {
      assert.equal(allowedByLastApplied(eventWith(text)).size, 0)
    })
  }

  test('are none without the annotation', () => {
    assert.equal(allowedByLastApplied({ metadata: {} }).size, 0)
    assert.equal(allowedByLastApplied({}).size, 0)
  })
})

describe('the annotation', () => {
  test('says what was applied now, members sorted', () => {
    const sent = { ...type, note: 'x', metadata: { name: 'e', annotations: { [NAME]: 'old' } } }
    const text =
      '{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"annotations":{},"name":"e"},"note":"x"}\n'
    assert.deepEqual(withLastApplied(eventWith('old'), sent), eventWith(text))
  })

  test('is not made where there was none', () => {
    const event = { metadata: { name: 'e' } }
    assert.equal(withLastApplied(event, type), event)
    assert.deepEqual(withLastApplied(eventWith(''), type), eventWith(''))
  })

  test('goes when it would be too long', () => {
    const sent = { ...type, note: 'x'.repeat(262_144) }
    assert.deepEqual(withLastApplied(eventWith('old'), sent), {
      metadata: { name: 'e', annotations: { other: 'o' } },
    })
  })
})
