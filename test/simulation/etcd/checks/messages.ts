/** Builds requests and takes responses apart, field by field, without a schema. */
import { Reader } from '../../../../src/lib/protobuf.ts'
import { numbersOf } from '../messages.ts'

/** Absent fields are undefined; numbers that are 0 and empty bytes are left out, as in proto3. */
export type FieldValue = number | bigint | string | Buffer | boolean | undefined

/** A message of [field, value] pairs, in this order. Strings are latin1. */
export function message(...fields: readonly (readonly [number, FieldValue])[]): Buffer {
  return Buffer.concat(fields.map(([field, value]) => encodeField(field, value)))
}

/** A nested message, which is there even when it is empty. */
export function nested(field: number, content: Buffer): Buffer {
  return Buffer.concat([varint(BigInt(field * 8 + 2)), varint(BigInt(content.length)), content])
}

function encodeField(field: number, value: FieldValue): Buffer {
  if (value === undefined || value === false || value === 0 || value === 0n || value === '') {
    return Buffer.alloc(0)
  }
  if (value === true) return encodeField(field, 1)
  if (typeof value === 'string') return nested(field, Buffer.from(value, 'latin1'))
  if (typeof value === 'object') return nested(field, value)
  return Buffer.concat([varint(BigInt(field * 8)), varint(BigInt.asUintN(64, BigInt(value)))])
}

function varint(value: bigint): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
  bytes.push(Number(rest))
  return Buffer.from(bytes)
}

export interface Header {
  readonly clusterId: bigint
  readonly memberId: bigint
  readonly revision: number
  readonly term: number
}

export interface Response {
  readonly header: Header | undefined
  /** Everything after the header, as sent. */
  readonly rest: Buffer
}

/** Separates the header, which names the member, from the rest, which does not. */
export function takeApart(response: Buffer): Response {
  const reader = new Reader(response)
  if (!reader.next() || reader.field !== 1 || reader.wireType !== 2) {
    return { header: undefined, rest: response }
  }
  const content = reader.bytes()
  const fields = numbersOf(content)
  const number = (field: number) => fields.get(field) ?? 0n
  const header = {
    clusterId: number(1),
    memberId: number(2),
    revision: Number(number(3)),
    term: Number(number(4)),
  }
  return { header, rest: response.subarray(nested(1, content).length) }
}
