/**
 * OpenAPI version 2 in protobuf, as older clients ask for it: the message of the gnostic project,
 * as far as our document uses it. A map is a list of names with values there, and whatever could be
 * one of several things is wrapped in a message that says which.
 */
import type { Json, JsonObject } from '../lib/json.ts'
import { BackwardWriter } from '../lib/protobuf.ts'

/** Writes a value as the field of that number. */
type Encode = (writer: BackwardWriter, field: number, value: Json) => void

/** Number and form of each member that a message has. */
type Members = Readonly<Record<string, readonly [number, Encode]>>

/** A document made by `openApiV2`. */
export function openApiV2Protobuf(document: JsonObject): Buffer {
  const writer = new BackwardWriter(256 * 1024)
  members(writer, document, { fields: DOCUMENT, extensions: 16 })
  return writer.finish()
}

const text: Encode = (writer, field, value) => {
  writer.bytes(field, Buffer.from(String(value)), { always: true })
}

const flag: Encode = (writer, field, value) => writer.number(field, value === true ? 1 : 0)

/** Whatever has no message of its own is there as YAML, which JSON is. */
const anything: Encode = (writer, field, value) =>
  nested(writer, field, () => text(writer, 2, JSON.stringify(value)))

const listOf =
  (one: Encode): Encode =>
  (writer, field, value) => {
    for (const entry of (value as Json[]).toReversed()) one(writer, field, entry)
  }

/** A message whose only member, of that number, is the value. */
const wrapped =
  (number: number, inner: Encode): Encode =>
  (writer, field, value) =>
    nested(writer, field, () => inner(writer, number, value))

/** A message whose members of that number are the names and values of an object. */
const named =
  (number: number, inner: Encode): Encode =>
  (writer, field, value) =>
    nested(writer, field, () => entries(writer, number, { inner, object: value as JsonObject }))

const message =
  (fields: () => Members, extensions: number): Encode =>
  (writer, field, value) =>
    nested(writer, field, () =>
      members(writer, value as JsonObject, { fields: fields(), extensions }),
    )

const texts: Encode = listOf(text)

const SCHEMA: Members = {
  $ref: [1, text],
  format: [2, text],
  description: [4, text],
  required: [19, texts],
  additionalProperties: [21, wrapped(1, (...args) => schema(...args))],
  // One type, or one schema for all entries, is a list of one.
  type: [22, wrapped(1, text)],
  items: [23, wrapped(1, (...args) => schema(...args))],
  properties: [25, named(1, (...args) => schema(...args))],
}
const schema: Encode = message(() => SCHEMA, 31)

const BODY_PARAMETER: Members = {
  description: [1, text],
  name: [2, text],
  in: [3, text],
  required: [4, flag],
  schema: [5, schema],
}
const QUERY_PARAMETER: Members = {
  required: [1, flag],
  in: [2, text],
  description: [3, text],
  name: [4, text],
  type: [6, text],
  uniqueItems: [20, flag],
}
const PATH_PARAMETER: Members = {
  required: [1, flag],
  in: [2, text],
  description: [3, text],
  name: [4, text],
  type: [5, text],
  uniqueItems: [19, flag],
}

const bodyParameter = wrapped(
  1,
  wrapped(
    1,
    message(() => BODY_PARAMETER, 6),
  ),
)
const queryParameter = wrapped(
  1,
  wrapped(
    2,
    wrapped(
      3,
      message(() => QUERY_PARAMETER, 23),
    ),
  ),
)
const pathParameter = wrapped(
  1,
  wrapped(
    2,
    wrapped(
      4,
      message(() => PATH_PARAMETER, 22),
    ),
  ),
)

const parameter: Encode = (writer, field, value) => {
  const { in: place } = value as JsonObject
  if (place === 'body') bodyParameter(writer, field, value)
  else (place === 'query' ? queryParameter : pathParameter)(writer, field, value)
}

const RESPONSE: Members = { description: [1, text], schema: [2, wrapped(1, schema)] }

const OPERATION: Members = {
  tags: [1, texts],
  description: [3, text],
  operationId: [5, text],
  produces: [6, texts],
  consumes: [7, texts],
  parameters: [8, listOf(parameter)],
  responses: [
    9,
    named(
      1,
      wrapped(
        1,
        message(() => RESPONSE, 5),
      ),
    ),
  ],
  deprecated: [11, flag],
}
const operation: Encode = message(() => OPERATION, 13)

const PATH_ITEM: Members = {
  get: [2, operation],
  put: [3, operation],
  post: [4, operation],
  delete: [5, operation],
  patch: [8, operation],
}

const INFO: Members = { title: [1, text], version: [2, text] }

const API_KEY: Members = {
  type: [1, text],
  name: [2, text],
  in: [3, text],
  description: [4, text],
}

const DOCUMENT: Members = {
  swagger: [1, text],
  info: [2, message(() => INFO, 7)],
  paths: [
    8,
    named(
      2,
      message(() => PATH_ITEM, 10),
    ),
  ],
  definitions: [9, named(1, schema)],
  security: [12, listOf(named(1, wrapped(1, texts)))],
  securityDefinitions: [
    13,
    named(
      1,
      wrapped(
        2,
        message(() => API_KEY, 5),
      ),
    ),
  ],
}

/** Whatever `inside` writes, as a message. */
function nested(writer: BackwardWriter, field: number, inside: () => void): void {
  const mark = writer.mark()
  inside()
  writer.message(field, mark)
}

/** Members that begin with `x-` are extensions, which a message has in a field of their own. */
function members(
  writer: BackwardWriter,
  object: JsonObject,
  { fields, extensions }: { readonly fields: Members; readonly extensions: number },
): void {
  const isExtension = (name: string): boolean => name.startsWith('x-')
  const extended = Object.entries(object).filter(([name]) => isExtension(name))
  entries(writer, extensions, { inner: anything, object: Object.fromEntries(extended) })
  const own = Object.entries(object)
    .filter(([name]) => !isExtension(name))
    .map(([name, value]) => ({ value, member: memberIn(fields, name) }))
    .sort((one, other) => other.member[0] - one.member[0])
  for (const { value, member } of own) member[1](writer, member[0], value)
}

function memberIn(fields: Members, name: string): readonly [number, Encode] {
  const member = fields[name]
  if (member === undefined) throw new Error(`OpenAPI in protobuf: no number is known for ${name}`)
  return member
}

function entries(
  writer: BackwardWriter,
  field: number,
  { inner, object }: { readonly inner: Encode; readonly object: JsonObject },
): void {
  for (const [name, value] of Object.entries(object).toReversed()) {
    nested(writer, field, () => {
      inner(writer, 2, value)
      text(writer, 1, name)
    })
  }
}
