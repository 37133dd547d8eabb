import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { coreGroup, eventsGroup } from '../api/event-groups.ts'
import type { Json, JsonObject } from '../lib/json.ts'
import { Reader } from '../lib/protobuf.ts'
import { openApiV3 } from './openapi.ts'
import { eventsOpenApi, reviewsOpenApi } from './openapi-groups.ts'
import { openApiV3Protobuf } from './openapi-v3-protobuf.ts'

/** Makes of the values of one field what JSON has. */
type Read = (values: readonly (Buffer | number)[]) => Json

/** The fields of a message: number, name, and how it is read. */
type Fields = readonly (readonly [number, string, Read])[]

function valuesOf(bytes: Buffer): Map<number, (Buffer | number)[]> {
  const found = new Map<number, (Buffer | number)[]>()
  const reader = new Reader(bytes)
  while (reader.next()) {
    assert.ok(reader.wireType === 0 || reader.wireType === 2)
    const value = reader.wireType === 0 ? reader.number() : reader.bytes()
    found.set(reader.field, [...(found.get(reader.field) ?? []), value])
  }
  return found
}

const only = ([value, ...others]: readonly (Buffer | number)[]): Buffer => {
  assert.deepEqual(others, [])
  assert.ok(value instanceof Buffer)
  return value
}
const text: Read = (values) => only(values).toString()
const flag: Read = ([value]) => value === 1
const many =
  (read: Read): Read =>
  (values) =>
    values.map((value) => read([value]))

/** Names with their values. */
const entries =
  (read: Read): Read =>
  (values) =>
    Object.fromEntries(
      values.map((entry) => {
        const pair = valuesOf(only([entry]))
        return [text(pair.get(1) ?? []), read(pair.get(2) ?? [])]
      }),
    )

/** A message that is nothing but its one field of that number. */
const inside =
  (number: number, read: Read): Read =>
  (values) => {
    const found = valuesOf(only(values))
    assert.deepEqual([...found.keys()], [number])
    return read(found.get(number) ?? [])
  }

const yaml: Read = (values) => JSON.parse(String(inside(2, text)(values)))

function message(fields: () => Fields, extensions: number): Read {
  return (values) => {
    const tree: JsonObject = {}
    for (const [number, raw] of valuesOf(only(values))) {
      if (number === extensions) Object.assign(tree, entries(yaml)(raw))
      else {
        const [, name, read] =
          fields().find(([each]) => each === number) ?? assert.fail(`${number}`)
        tree[name] = read(raw)
      }
    }
    return tree
  }
}

// The numbers of gnostic's OpenAPIv3.proto.
const schema: Read = (values) => {
  const [kind] = valuesOf(only(values)).keys()
  const read = kind === 2 ? message(() => [[1, '$ref', text]], 0) : message(() => schemaFields, 36)
  return inside(kind ?? 0, read)(values)
}
const schemaFields: Fields = [
  [20, 'uniqueItems', flag],
  [23, 'required', many(text)],
  [25, 'type', text],
  [26, 'allOf', many(schema)],
  [30, 'items', inside(1, schema)],
  [31, 'properties', inside(1, entries(schema))],
  [32, 'additionalProperties', inside(1, schema)],
  [34, 'description', text],
  [35, 'format', text],
]
const content = inside(1, entries(message(() => [[1, 'schema', schema]], 5)))
const parameter = message(
  () => [
    [1, 'name', text],
    [2, 'in', text],
    [3, 'description', text],
    [4, 'required', flag],
    [10, 'schema', schema],
  ],
  14,
)
const requestBody = message(
  () => [
    [2, 'content', content],
    [3, 'required', flag],
  ],
  4,
)
const response = message(
  () => [
    [1, 'description', text],
    [3, 'content', content],
  ],
  5,
)
const operation = message(
  () => [
    [1, 'tags', many(text)],
    [3, 'description', text],
    [5, 'operationId', text],
    [6, 'parameters', many(inside(1, parameter))],
    [7, 'requestBody', inside(1, requestBody)],
    [8, 'responses', inside(2, entries(inside(1, response)))],
    [10, 'deprecated', flag],
  ],
  13,
)
const pathItem = message(
  () => [
    [4, 'get', operation],
    [5, 'put', operation],
    [6, 'post', operation],
    [7, 'delete', operation],
    [10, 'patch', operation],
  ],
  14,
)
const info = message(
  () => [
    [1, 'title', text],
    [6, 'version', text],
  ],
  7,
)
const securityScheme = message(
  () => [
    [1, 'type', text],
    [2, 'description', text],
    [3, 'name', text],
    [4, 'in', text],
  ],
  9,
)
const components = message(
  () => [
    [1, 'schemas', inside(1, entries(schema))],
    [7, 'securitySchemes', inside(1, entries(inside(1, securityScheme)))],
  ],
  10,
)
const document = message(
  () => [
    [1, 'openapi', text],
    [2, 'info', info],
    [4, 'paths', inside(1, entries(pathItem))],
    [5, 'components', components],
  ],
  9,
)

/** As JSON has it: an empty list of parameters is none in protobuf. */
function withParameters(tree: Json): Json {
  return JSON.parse(JSON.stringify(tree), (_, value) =>
    value?.operationId === undefined ? value : { parameters: [], ...value },
  )
}

describe('openApiV3Protobuf', () => {
  for (const group of [
    eventsOpenApi(eventsGroup('events.k8s.io')),
    eventsOpenApi(coreGroup),
    ...reviewsOpenApi,
  ]) {
    test(`says what the document of "${group.name}" says in JSON`, () => {
      const told = openApiV3(group, 'v1.36.0')
      const read = withParameters(document([openApiV3Protobuf(told)]))
      assert.deepEqual(read, told)
    })
  }

  test('a member that has no number is a mistake of ours, never left out silently', () => {
    assert.throws(
      () => openApiV3Protobuf({ openapi: '3.0.0', servers: [] }),
      /no number .* servers/,
    )
    const components = { schemas: { A: { $ref: '#/components/schemas/B', 'x-a': 1 } } }
    assert.throws(() => openApiV3Protobuf({ components }), /no number .* x-a/)
  })
})
