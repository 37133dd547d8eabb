/**
 * Encodes OpenAPI in the protobuf messages of the gnostic project: the parts that both versions
 * share. A map is a list of name-value pairs, and a value that can have one of several types is
 * wrapped in a message whose field number selects the type.
 */
import type { Json, JsonObject } from '../../lib/json.ts'
import { BackwardWriter } from '../../lib/protobuf.ts'

/** Writes a value with this field number. */
export type Encode = (writer: BackwardWriter, field: number, value: Json) => void

/** The field number and encoding of each member of a message. */
export type Members = Readonly<Record<string, readonly [number, Encode]>>

/** Encodes a document; `extensions` is the field number for members that begin with `x-`. */
export function encodeOpenApiDocument(
  document: JsonObject,
  fields: Members,
  extensions: number,
): Buffer {
  const writer = new BackwardWriter(256 * 1024)
  members(writer, document, { fields, extensions })
  return writer.finish()
}

export const text: Encode = (writer, field, value) => {
  writer.bytes(field, Buffer.from(String(value)), { always: true })
}

export const flag: Encode = (writer, field, value) => writer.number(field, value === true ? 1 : 0)

/** Values without a message type are encoded as YAML; JSON is valid YAML. */
const anything: Encode = (writer, field, value) =>
  nested(writer, field, () => text(writer, 2, JSON.stringify(value)))

export const listOf =
  (one: Encode): Encode =>
  (writer, field, value) => {
    for (const entry of (value as Json[]).toReversed()) one(writer, field, entry)
  }

export const texts: Encode = listOf(text)

/** A message with one field of this number, which contains the value. */
export const wrapped =
  (number: number, inner: Encode): Encode =>
  (writer, field, value) =>
    nested(writer, field, () => inner(writer, number, value))

/** A message with one field of this number for each name and value of an object. */
export const mapOf =
  (number: number, inner: Encode): Encode =>
  (writer, field, value) =>
    nested(writer, field, () => entries(writer, number, { inner, object: value as JsonObject }))

/** Without a field number for extensions, members that begin with `x-` are an error. */
export const message =
  (fields: () => Members, extensions?: number): Encode =>
  (writer, field, value) =>
    nested(writer, field, () =>
      members(writer, value as JsonObject, { fields: fields(), extensions }),
    )

/** Writes the output of `inside` as a message. */
function nested(writer: BackwardWriter, field: number, inside: () => void): void {
  const mark = writer.mark()
  inside()
  writer.message(field, mark)
}

function members(
  writer: BackwardWriter,
  object: JsonObject,
  { fields, extensions }: { readonly fields: Members; readonly extensions: number | undefined },
): void {
  const isExtension = (name: string): boolean => extensions !== undefined && name.startsWith('x-')
  const extended = Object.entries(object).filter(([name]) => isExtension(name))
  entries(writer, extensions ?? 0, { inner: anything, object: Object.fromEntries(extended) })
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
