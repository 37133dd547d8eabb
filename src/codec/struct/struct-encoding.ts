import { type Field, type FieldType, StructType } from '../../api/schema.ts'
import type { Json, JsonObject } from '../../lib/json.ts'
import { jsonOf, quotedJson, sortedNames } from '../json/json-write.ts'

/**
 * Encodes structures of one type as JSON, with members in schema order. Created once and reused.
 */
export class StructEncoder {
  readonly #members: readonly Member[]

  constructor(type: StructType) {
    this.#members = type.fields.map(member)
  }

  /** Returns compact JSON, including the values that the schema defines for unset members. */
  text(source: JsonObject): string {
    let text = '{'
    for (const { name, first, next, unset, encode } of this.#members) {
      const value = source[name]
      const encoded = value === undefined ? unset : encode(value)
      if (encoded !== '') text += (text === '{' ? first : next) + encoded
    }
    return `${text}}`
  }
}

interface Member {
  readonly name: string
  /** The text before the value if it is the first member of the output. */
  readonly first: string
  readonly next: string
  /** The value of an unset member, which is omitted if this is empty. */
  readonly unset: string
  readonly encode: (value: Json) => string
}

function member(field: Field): Member {
  const { name, type, whenUnset = '' } = field
  const first = `"${name}":`
  return { name, first, next: `,${first}`, unset: whenUnset, encode: encoderOf(type) }
}

function encoderOf(type: FieldType): (value: Json) => string {
  if (type === 'stringMap') return encodeMap
  // A canonical time contains nothing to escape.
  if (type === 'time' || type === 'microTime') return (value) => `"${value}"`
  if (typeof type === 'string') return jsonOf
  if ('struct' in type) return structEncoder(type.struct)
  const encodeEntry = type.listOf instanceof StructType ? structEncoder(type.listOf) : jsonOf
  return (list) => `[${(list as Json[]).map(encodeEntry).join(',')}]`
}

function structEncoder(type: StructType): (value: Json) => string {
  const encoder = new StructEncoder(type)
  return (value) => encoder.text(value as JsonObject)
}

function encodeMap(map: Json): string {
  const entries = map as Record<string, string>
  let text = ''
  for (const name of sortedNames(entries)) {
    const lead = text === '' ? '' : ','
    text += `${lead}${quotedJson(name)}:${quotedJson(entries[name] ?? '')}`
  }
  return `{${text}}`
}
