/**
 * OpenAPI in protobuf, in the messages of the gnostic project: what those of both versions have in
 * common. A map is a list of names with values there, and whatever could be one of several things is
 * wrapped in a message that says which.
 */
import type { Json, JsonObject } from '../lib/json.ts'
import { BackwardWriter } from '../lib/protobuf.ts'

/** Writes a value as the field of that number. */
export type Encode = (writer: BackwardWriter, field: number, value: Json) => void

/** Number and form of each member that a message has. */
export type Members = Readonly<Record<string, readonly [number, Encode]>>

/** A document; `extensions` is the number of the field for members that begin with `x-`. */
export function encodedDocument(document: JsonObject, fields: Members, extensions: number): Buffer {
  const writer = new BackwardWriter(256 * 1024)
  members(writer, document, { fields, extensions })
  return writer.finish()
}

export const text: Encode = (writer, field, value) => {
  writer.bytes(field, Buffer.from(String(value)), { always: true })
}

export const flag: Encode = (writer, field, value) => writer.number(field, value === true ? 1 : 0)

/** Whatever has no message of its own is there as YAML, which JSON is. */
const anything: Encode = (writer, field, value) =>
  nested(writer, field, () => text(writer, 2, JSON.stringify(value)))

export const listOf =
  (one: Encode): Encode =>
  (writer, field, value) => {
    for (const entry of (value as Json[]).toReversed()) one(writer, field, entry)
  }

export const texts: Encode = listOf(text)

/** A message whose only member, of that number, is the value. */
export const wrapped =
  (number: number, inner: Encode): Encode =>
  (writer, field, value) =>
    nested(writer, field, () => inner(writer, number, value))

/** A message whose members of that number are the names and values of an object. */
export const named =
  (number: number, inner: Encode): Encode =>
  (writer, field, value) =>
    nested(writer, field, () => entries(writer, number, { inner, object: value as JsonObject }))

/** Without a number for extensions there can be none. */
export const message =
  (fields: () => Members, extensions?: number): Encode =>
  (writer, field, value) =>
    nested(writer, field, () =>
      members(writer, value as JsonObject, { fields: fields(), extensions }),
    )

/** Whatever `inside` writes, as a message. */
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
