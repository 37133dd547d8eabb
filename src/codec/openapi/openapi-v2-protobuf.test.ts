import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { coreGroup, eventsGroup } from '../../api/event-groups.ts'
import type { JsonObject } from '../../lib/json.ts'
import { Reader } from '../../lib/protobuf.ts'
import { openApiV2 } from './openapi.ts'
import { eventsOpenApi } from './openapi-groups.ts'
import { openApiV2Protobuf } from './openapi-v2-protobuf.ts'

const document = openApiV2([eventsGroup('events.k8s.io'), coreGroup].map(eventsOpenApi), 'v1.37.0')
const bytes = openApiV2Protobuf(document)

/** The bytes of each field with this number. */
function fields(message: Buffer | undefined, number: number): Buffer[] {
  assert.ok(message)
  const found: Buffer[] = []
  const reader = new Reader(message)
  while (reader.next()) {
    if (reader.field === number) found.push(reader.bytes())
    else reader.skip()
  }
  return found
}

/** Follows a path of field numbers, always through the first field. */
function follow(message: Buffer | undefined, ...numbers: readonly number[]): Buffer | undefined {
  return numbers.reduce((inner, number) => fields(inner, number)[0], message)
}

const text = (message: Buffer | undefined, ...numbers: readonly number[]): string =>
  String(follow(message, ...numbers))

/** The value of a name in a list of name-value pairs. */
function named(list: readonly Buffer[], name: string): Buffer | undefined {
  return follow(
    list.find((entry) => text(entry, 1) === name),
    2,
  )
}

const definitions = fields(follow(bytes, 9), 1)
const paths = fields(follow(bytes, 8), 2)

describe('openApiV2Protobuf', () => {
  test('the message has the version, all paths and all definitions, in order', () => {
    assert.equal(text(bytes, 1), '2.0')
    assert.equal(text(bytes, 2, 1), 'tidings')
    const names = (list: readonly Buffer[]): string[] => list.map((entry) => text(entry, 1))
    assert.deepEqual(names(paths), Object.keys(document['paths'] as JsonObject))
    assert.deepEqual(names(definitions), Object.keys(document['definitions'] as JsonObject))
  })

  test('a definition has its fields, its required fields, and its kind as YAML', () => {
    const event = named(definitions, 'io.k8s.api.events.v1.Event')
    assert.deepEqual(fields(event, 19).map(String), ['eventTime'])
    assert.equal(text(event, 22, 1), 'object')
    const properties = fields(follow(event, 25), 1)
    assert.equal(
      text(named(properties, 'eventTime'), 1),
      '#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime',
    )
    assert.equal(text(named(properties, 'deprecatedCount'), 2), 'int32')
    const kinds = named(fields(event, 31), 'x-kubernetes-group-version-kind')
    assert.deepEqual(JSON.parse(text(kinds, 2)), [
      { group: 'events.k8s.io', version: 'v1', kind: 'Event' },
    ])
  })

  test('maps and lists have the type of their entries', () => {
    const meta = named(definitions, 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta')
    const properties = fields(follow(meta, 25), 1)
    assert.equal(text(named(properties, 'labels'), 21, 1, 22, 1), 'string')
    assert.equal(text(named(properties, 'finalizers'), 23, 1, 22, 1), 'string')
  })

  test('an operation has its parameters, each in the message for its location', () => {
    const path = '/api/v1/namespaces/{namespace}/events/{name}'
    const patch = follow(named(paths, path), 8)
    assert.equal(text(patch, 5), 'patchCoreV1NamespacedEvent')
    const parameters = fields(patch, 8).map((item) => follow(item, 1))
    const [body, ...others] = parameters
    assert.equal(text(body, 1, 2), 'body')
    const queried = others.flatMap((item) => {
      const parameter = fields(follow(item, 2), 3)[0]
      return parameter === undefined ? [] : [text(parameter, 4)]
    })
    assert.ok(queried.includes('fieldValidation'))
    const inPath = others.flatMap((item) => {
      const parameter = fields(follow(item, 2), 4)[0]
      return parameter === undefined ? [] : [text(parameter, 4)]
    })
    assert.deepEqual(inPath, ['name', 'namespace'])
    const responses = fields(follow(patch, 9), 1)
    assert.equal(
      text(named(responses, '200'), 1, 2, 1, 1),
      '#/definitions/io.k8s.api.core.v1.Event',
    )
    const kind = named(fields(patch, 13), 'x-kubernetes-group-version-kind')
    assert.deepEqual(JSON.parse(text(kind, 2)), { group: '', version: 'v1', kind: 'Event' })
  })

  test('refuses a member without a field number instead of omitting it silently', () => {
    assert.throws(() => openApiV2Protobuf({ swagger: '2.0', host: 'h' }), /no field number .* host/)
  })
})
