import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inCallerNames, withAllowedTypes } from './caller-fields.ts'

const invalid = (message: string, ...fields: string[]): { [name: string]: string | object } => ({
  kind: 'Status',
  reason: 'Invalid',
  message,
  details: { causes: fields.map((field) => ({ field, message: `count: of ${field}` })) },
})

test('fields of core/v1 get the names that callers of events.k8s.io use', () => {
  assert.deepEqual(
    inCallerNames(
      invalid(
        'Event "a" is invalid: [involvedObject.namespace: Invalid value: "x", message: Too long, count: field is immutable]',
        'involvedObject.namespace',
        'message',
        'count',
      ) as never,
    ),
    {
      ...invalid(
        'Event "a" is invalid: [regarding.namespace: Invalid value: "x", note: Too long, deprecatedCount: field is immutable]',
      ),
      details: {
        causes: [
          { field: 'regarding.namespace', message: 'count: of involvedObject.namespace' },
          { field: 'note', message: 'count: of message' },
          { field: 'deprecatedCount', message: 'count: of count' },
        ],
      },
    },
  )
})

test('names below another field, other fields and other errors stay unchanged', () => {
  for (const status of [
    invalid('Event "a" is invalid: series.count: Invalid value: ""', 'series.count', 'reason'),
    { ...invalid('field label not supported: source.component'), reason: 'BadRequest' },
    { kind: 'Event', message: 'count: 3' },
  ]) {
    assert.deepEqual(inCallerNames(status as never), status)
  }
})

test('the error for an invalid type lists the allowed types', () => {
  assert.deepEqual(
    withAllowedTypes(
      invalid(
        '[type: Invalid value: "": has invalid value: Info, eventTime: Required value]',
      ) as never,
    ),
    invalid(
      '[type: Invalid value: "": has invalid value: Info (must be Normal or Warning), eventTime: Required value]',
    ),
  )
  const other = invalid('eventTime: Required value')
  assert.deepEqual(withAllowedTypes(other as never), other)
})
