/**
 * Encodes and decodes structures as protobuf messages, with the field numbers of the schema.
 * Decoding returns the same tree as for JSON: empty members are absent. Unknown fields are skipped,
 * as protobuf specifies.
 */
import { type Field, type ScalarKind, StructType } from '../../api/schema.ts'
import { type Instant, instantOfTime, timeOfInstant, ZERO_TIME } from '../../api/time.ts'
import { isObject, type Json, type JsonObject, setMember } from '../../lib/json.ts'
import { BackwardWriter, Reader } from '../../lib/protobuf.ts'
import { parseJson, tooManyValues } from '../json/json-text.ts'
import { jsonOf, sortedNames } from '../json/json-write.ts'

/** Thrown for bytes that are not a valid message. */
export class ProtobufError extends Error {
  override readonly name = 'ProtobufError'
}

const WIRE_NUMBER = 0
const WIRE_BYTES = 2
/** Large enough for most messages, so that the buffer rarely grows. */
const CAPACITY = 1024

/** Writes the fields that are set, from last to first, as a BackwardWriter requires. */
function writeStruct(writer: BackwardWriter, type: StructType, value: JsonObject): void {
  for (const field of type.descending) {
    const member = value[field.name]
    if (member !== undefined && member !== null) writeField(writer, field, member)
  }
}

export function encodeStruct(type: StructType, value: JsonObject): Buffer {
  const writer = new BackwardWriter(CAPACITY)
  writeStruct(writer, type, value)
  return writer.finish()
}

/**
 * Throws a ProtobufError for an invalid message, or a StatusError 413 if it has too many values.
 */
export function decodeStruct(type: StructType, bytes: Buffer, valuesMax: number): JsonObject {
  try {
    return new StructReader(bytes, valuesMax).struct(type)
  } catch (error) {
    if (error instanceof RangeError) throw new ProtobufError(error.message)
    throw error
  }
}

function writeField(writer: BackwardWriter, { number, type }: Field, value: Json): void {
  if (type === 'stringMap') writeMap(writer, number, value as JsonObject)
  else if (typeof type === 'string') writeScalar(writer, number, type, value)
  else if ('struct' in type) writeMessage(writer, number, type.struct, value)
  else {
    const { listOf } = type
    for (const entry of (value as Json[]).toReversed()) {
      if (listOf instanceof StructType) writeMessage(writer, number, listOf, entry)
      else writer.bytes(number, Buffer.from(entry as string), { always: true })
    }
  }
}

function writeMessage(writer: BackwardWriter, number: number, type: StructType, value: Json): void {
  const mark = writer.mark()
  if (isObject(value)) writeStruct(writer, type, value)
  writer.message(number, mark)
}

function writeMap(writer: BackwardWriter, number: number, map: JsonObject): void {
  for (const name of sortedNames(map).reverse()) {
    const mark = writer.mark()
    writer.bytes(2, Buffer.from(String(map[name])), { always: true })
    writer.bytes(1, Buffer.from(name), { always: true })
    writer.message(number, mark)
  }
}

function writeScalar(writer: BackwardWriter, number: number, type: ScalarKind, value: Json): void {
  switch (type) {
    case 'string':
      writer.bytes(number, Buffer.from(value as string))
      return
    case 'bool':
      writer.number(number, value === true ? 1 : 0, { always: true })
      return
    case 'int32':
    case 'int64':
      writer.number(number, wholeNumber(value as number), { always: true })
      return
    case 'time':
    case 'microTime':
      writeInstant(writer, number, value as string)
      return
    case 'raw': {
      const mark = writer.mark()
      writer.bytes(1, Buffer.from(jsonOf(value)))
      writer.message(number, mark)
    }
  }
}

function writeInstant(writer: BackwardWriter, number: number, text: string): void {
  const { seconds, nanos } = instantOfTime(text)
  const mark = writer.mark()
  writer.number(2, nanos)
  // Written even when it is 0, because an empty message means an unset time.
  writer.number(1, wholeNumber(seconds), { always: true })
  writer.message(number, mark)
}

/** Protobuf encodes negative numbers with 64 bits. */
function wholeNumber(value: number): number | bigint {
  return value < 0 ? BigInt(value) : value
}

class StructReader {
  readonly #reader: Reader
  readonly #valuesMax: number
  #values = 0

  constructor(bytes: Buffer, valuesMax: number) {
    this.#reader = new Reader(bytes)
    this.#valuesMax = valuesMax
  }

  /** Merges a message field that occurs twice: the second adds to the first. */
  struct(type: StructType, result: JsonObject = {}): JsonObject {
    const reader = this.#reader
    while (reader.next()) {
      if (++this.#values > this.#valuesMax) throw tooManyValues(this.#valuesMax)
      const field = type.byNumber(reader.field)
      if (field === undefined) reader.skip()
      else this.#field(field, result)
    }
    for (const field of type.fields) dropUnset(field, result)
    return result
  }

  #field(field: Field, result: JsonObject): void {
    const isNumber = field.type === 'int32' || field.type === 'int64' || field.type === 'bool'
    if (this.#reader.wireType !== (isNumber ? WIRE_NUMBER : WIRE_BYTES)) {
      throw new ProtobufError(`wrong wireType = ${this.#reader.wireType} for field ${field.name}`)
    }
    const { type } = field
    if (type === 'stringMap') this.#mapEntry(field, result)
    else if (typeof type === 'string')
      result[field.name] = this.#scalar(type, field.keepsZero) ?? null
    else if ('struct' in type) {
      const before = result[field.name]
      result[field.name] = this.#message(type.struct, isObject(before) ? before : {})
    } else {
      const list = (result[field.name] ?? []) as Json[]
      const isMessage = type.listOf instanceof StructType
      list.push(isMessage ? this.#message(type.listOf as StructType) : this.#text())
      result[field.name] = list
    }
  }

  #message(type: StructType, before: JsonObject = {}): JsonObject {
    const outer = this.#reader.enter()
    const message = this.struct(type, before)
    this.#reader.leave(outer)
    return message
  }

  #mapEntry(field: Field, result: JsonObject): void {
    const entry = this.#message(mapEntryType)
    const map = (result[field.name] ?? {}) as JsonObject
    setMember(map, String(entry['key'] ?? ''), entry['value'] ?? '')
    result[field.name] = map
  }

  #scalar(type: ScalarKind, keepsZero?: true): Json | undefined {
    const reader = this.#reader
    switch (type) {
      case 'string':
        return this.#text()
      case 'bool':
        return reader.boolean()
      case 'int32':
        return reader.number() | 0
      case 'int64':
        return reader.number()
      case 'time':
      case 'microTime':
        return this.#instant(type, keepsZero)
      case 'raw':
        return this.#raw()
    }
  }

  #text(): string {
    return this.#reader.bytes().toString()
  }

  #instant(type: 'time' | 'microTime', keepsZero?: true): string | undefined {
    const bytes = this.#reader.bytes()
    if (bytes.length === 0) return undefined
    const { seconds = 0, nanos = 0 } = decodeStruct(
      instantType,
      bytes,
      this.#valuesMax - this.#values,
    ) as Partial<Instant>
    try {
      return timeOfInstant({ seconds, nanos }, type) ?? (keepsZero && ZERO_TIME)
    } catch (error) {
      throw new ProtobufError(error instanceof Error ? error.message : String(error))
    }
  }

  /** Treats invalid JSON as unset, since only this server reads these values. */
  #raw(): Json | undefined {
    const { raw } = this.#message(rawType) as { raw?: string }
    if (raw === undefined) return undefined
    try {
      return parseJson(raw, this.#valuesMax - this.#values).value
    } catch {
      return undefined
    }
  }
}

/** Removes an empty member, which means the same as an unset one. */
function dropUnset(field: Field, result: JsonObject): void {
  const value = result[field.name]
  if (value === undefined) return
  const isNothing =
    value === null ||
    (!field.keepsZero && (value === '' || value === 0 || value === false)) ||
    (field.whenUnset === '{}' && isObject(value) && Object.keys(value).length === 0)
  if (isNothing) delete result[field.name]
}

const mapEntryType: StructType = new StructType('Entry', [
  { name: 'key', number: 1, type: 'string', doc: 'Name.' },
  { name: 'value', number: 2, type: 'string', doc: 'Value.' },
])

const instantType: StructType = new StructType('Time', [
  { name: 'seconds', number: 1, type: 'int64', doc: 'Seconds since 1970.' },
  { name: 'nanos', number: 2, type: 'int32', doc: 'Nanoseconds of the second.' },
])

const rawType: StructType = new StructType('FieldsV1', [
  { name: 'raw', number: 1, type: 'string', doc: 'JSON.' },
])
