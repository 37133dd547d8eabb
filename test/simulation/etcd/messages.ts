/**
 * etcd's messages. The requests and responses that tidings uses are encoded by the generated code of
 * its own protocol description; the few numbers that only operators and tests send are read by field.
 */
import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf'
import { Reader } from '../../../src/lib/protobuf.ts'

/** Throws when the request has a field that the simulation would ignore. */
export function decode<Schema extends DescMessage>(
  schema: Schema,
  message: Buffer,
): MessageShape<Schema> {
  const request = fromBinary(schema, message)
  if (request.$unknown !== undefined) {
    throw new RangeError(`${schema.name} has a field ${request.$unknown[0]?.no}`)
  }
  return request
}

export function encode<Schema extends DescMessage>(
  schema: Schema,
  init: MessageInitShape<Schema>,
): Buffer {
  const bytes = toBinary(schema, create(schema, init))
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}

/** The numbers of a message, keyed by field. */
export function numbersOf(message: Buffer): ReadonlyMap<number, bigint> {
  const reader = new Reader(message)
  const numbers = new Map<number, bigint>()
  while (reader.next()) {
    if (reader.wireType === 0) numbers.set(reader.field, reader.bigint())
    else reader.skip()
  }
  return numbers
}

/** A key as a string that sorts like its bytes. */
export function nameOf(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.length).latin1Slice()
}

/** The end of a range of keys. Undefined: the range is one key. '': the range has no end. */
export function endOf(rangeEnd: Uint8Array): string | undefined {
  if (rangeEnd.length === 0) return undefined
  return rangeEnd.length === 1 && rangeEnd[0] === 0 ? '' : nameOf(rangeEnd)
}

declare global {
  interface Buffer {
    /** Exists in every version of Node, and is faster than `toString`; only its type is missing. */
    latin1Slice(from?: number, to?: number): string
  }
}
