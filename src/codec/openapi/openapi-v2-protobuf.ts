/**
 * Encodes OpenAPI version 2 as protobuf, which older clients request: the messages of the gnostic
 * project, as far as our document uses them. A map is a list of name-value pairs, and a value that
 * can have one of several types is wrapped in a message whose field number selects the type.
 */
import type { Json, JsonObject } from '../../lib/json.ts'
import { BackwardWriter } from '../../lib/protobuf.ts'

/** The field number of members that begin with `x-` in the document itself. */
const DOCUMENT_EXTENSIONS = 16
/** Large enough for the whole document, so that the buffer does not grow. */
const CAPACITY = 256 * 1024

/** Encodes a document from `openApiV2`. */
export function openApiV2Protobuf(document: JsonObject): Buffer {
  const writer = new BackwardWriter(CAPACITY)
  members(writer, document, DOCUMENT, DOCUMENT_EXTENSIONS)
  return writer.finish()
}

/** Writes a value with this field number. */
type Encode = (writer: BackwardWriter, field: number, value: Json) => void

/** The field number and encoding of each member of a message. */
type Members = Readonly<Record<string, readonly [number, Encode]>>

const text: Encode = (writer, field, value) => {
  writer.bytes(field, Buffer.from(String(value)), { always: true })
}

const flag: Encode = (writer, field, value) => writer.number(field, value === true ? 1 : 0)

/** Values without a message type are encoded as YAML, of which JSON is a subset. */
const anything: Encode = (writer, field, value) =>
  nested(writer, field, () => text(writer, 2, JSON.stringify(value)))

const listOf =
  (one: Encode): Encode =>
  (writer, field, value) => {
    for (const entry of (value as Json[]).toReversed()) one(writer, field, entry)
  }

const texts: Encode = listOf(text)

/** A message with one field of this number, which contains the value. */
const wrapped =
  (number: number, inner: Encode): Encode =>
  (writer, field, value) =>
    nested(writer, field, () => inner(writer, number, value))

/** A message with one field of this number for each name and value of an object. */
const mapOf =
  (number: number, inner: Encode): Encode =>
  (writer, field, value) =>
    nested(writer, field, () => entries(writer, number, inner, value as JsonObject))

/** `extensions` is the field number of members that begin with `x-`. */
const message =
  (fields: Members, extensions: number): Encode =>
  (writer, field, value) =>
    nested(writer, field, () => members(writer, value as JsonObject, fields, extensions))

/** Writes the output of `inside` as a message. */
function nested(writer: BackwardWriter, field: number, inside: () => void): void {
  const mark = writer.mark()
  inside()
  writer.message(field, mark)
}

function members(
  writer: BackwardWriter,
  object: JsonObject,
  fields: Members,
  extensions: number,
): void {
  const isExtension = (name: string): boolean => name.startsWith('x-')
  const extended = Object.entries(object).filter(([name]) => isExtension(name))
  entries(writer, extensions, anything, Object.fromEntries(extended))
  const own = Object.entries(object)
    .filter(([name]) => !isExtension(name))
    .map(([name, value]) => ({ value, member: memberIn(fields, name) }))
    .sort((one, other) => other.member[0] - one.member[0])
  for (const { value, member } of own) member[1](writer, member[0], value)
}

function memberIn(fields: Members, name: string): readonly [number, Encode] {
  const member = fields[name]
  if (member === undefined) throw new Error(`OpenAPI in protobuf: no field number for ${name}`)
  return member
}

function entries(writer: BackwardWriter, field: number, inner: Encode, object: JsonObject): void {
  for (const [name, value] of Object.entries(object).toReversed()) {
    nested(writer, field, () => {
      inner(writer, 2, value)
      text(writer, 1, name)
    })
  }
}

const SCHEMA: Members = {
  $ref: [1, text],
  format: [2, text],
  description: [4, text],
  required: [19, texts],
  additionalProperties: [21, wrapped(1, (...args) => schema(...args))],
  // A single type, or a single schema for all entries, is encoded as a list of one.
  type: [22, wrapped(1, text)],
  items: [23, wrapped(1, (...args) => schema(...args))],
  properties: [25, mapOf(1, (...args) => schema(...args))],
}
const schema: Encode = message(SCHEMA, 31)

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

const bodyParameter = wrapped(1, wrapped(1, message(BODY_PARAMETER, 6)))
const queryParameter = wrapped(1, wrapped(2, wrapped(3, message(QUERY_PARAMETER, 23))))
const pathParameter = wrapped(1, wrapped(2, wrapped(4, message(PATH_PARAMETER, 22))))

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
  responses: [9, mapOf(1, wrapped(1, message(RESPONSE, 5)))],
  deprecated: [11, flag],
}
const operation: Encode = message(OPERATION, 13)

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
  info: [2, message(INFO, 7)],
  paths: [8, mapOf(2, message(PATH_ITEM, 10))],
  definitions: [9, mapOf(1, schema)],
  security: [12, listOf(mapOf(1, wrapped(1, texts)))],
  securityDefinitions: [13, mapOf(1, wrapped(2, message(API_KEY, 5)))],
}
