import { type Field, type FieldType, StructType } from '../api/schema.ts'
import type { Json, JsonObject } from '../lib/json.ts'
import { jsonOf, quotedJson, sortedNames } from './json-write.ts'

/** Prints structures of one type, members in the order of the table. Made once, used often. */
export class StructEncoder {
  readonly #members: readonly Member[]

  constructor(type: StructType) {
    this.#members = type.fields.map(member)
  }

  /** Compact JSON. What the table prints for members that are not set is printed. */
  text(source: JsonObject): string {
    let text = '{'
    for (const { name, first, next, unset, print } of this.#members) {
      const value = source[name]
      const printed = value === undefined ? unset : print(value)
      if (printed !== '') text += (text === '{' ? first : next) + printed
    }
    return `${text}}`
  }
}

interface Member {
  readonly name: string
  /** What stands before the value of the first member that is printed, and of any after it. */
  readonly first: string
  readonly next: string
  /** What is printed instead of a value that is not set; nothing, then not the name either. */
  readonly unset: string
  readonly print: (value: Json) => string
}

function member(field: Field): Member {
  const { name, type, whenUnset = '' } = field
  const first = `"${name}":`
  return { name, first, next: `,${first}`, unset: whenUnset, print: printerOf(type) }
}

function printerOf(type: FieldType): (value: Json) => string {
  if (type === 'stringMap') return printMap
  // The one form of a time has nothing to escape.
  if (type === 'time' || type === 'microTime') return (value) => `"${value}"`
  if (typeof type === 'string') return jsonOf
  if ('struct' in type) return structPrinter(type.struct)
  const printEntry = type.listOf instanceof StructType ? structPrinter(type.listOf) : jsonOf
  return (list) => `[${(list as Json[]).map(printEntry).join(',')}]`
}

function structPrinter(type: StructType): (value: Json) => string {
  const encoder = new StructEncoder(type)
  return (value) => encoder.text(value as JsonObject)
}

function printMap(map: Json): string {
  const entries = map as Record<string, string>
  let text = ''
  for (const name of sortedNames(entries)) {
    const lead = text === '' ? '' : ','
    text += `${lead}${quotedJson(name)}:${quotedJson(entries[name] ?? '')}`
  }
  return `{${text}}`
}
