/** Responses in Kubernetes protobuf as trees, so that they can be compared member by member. */
import { coreEventType } from '../../src/api/core-schema.ts'
import { eventType, StructType } from '../../src/api/schema.ts'
import { unwrapEnvelope } from '../../src/codec/struct/kube-protobuf.ts'
import {
  documentTypes,
  listMetaType,
  partialObjectType,
} from '../../src/codec/struct/meta-types.ts'
import { decodeStruct } from '../../src/codec/struct/protobuf-struct.ts'
import { isObject, type Json, type JsonObject } from '../../src/lib/json.ts'
import { Reader } from '../../src/lib/protobuf.ts'

const VALUES_MAX = 100_000
const LENGTH_BYTES = 4

/** One object in its envelope, or the frames of a watch. */
export function protobufTree(bytes: Buffer, isWatch: boolean): Json {
  return isWatch ? frames(bytes) : envelope(bytes)
}

function envelope(bytes: Buffer): Json {
  const { kind, apiVersion, raw } = unwrapEnvelope(bytes)
  const tree = decodeStruct(typeOf(kind, apiVersion), raw, VALUES_MAX)
  return withoutManagedFields({ kind, apiVersion, ...tree })
}

function frames(bytes: Buffer): Json {
  const found: Json[] = []
  for (let at = 0; at + LENGTH_BYTES <= bytes.length; ) {
    const end = at + LENGTH_BYTES + bytes.readUInt32BE(at)
    found.push(frame(bytes.subarray(at + LENGTH_BYTES, end)))
    at = end
  }
  return found
}

function frame(bytes: Buffer): Json {
  let type = ''
  let object: Json = null
  const reader = new Reader(bytes)
  while (reader.next()) {
    if (reader.field === 1) type = reader.bytes().toString()
    else {
      const inner = new Reader(reader.bytes())
      inner.next()
      object = envelope(inner.bytes())
    }
  }
  return { type, object }
}

function typeOf(kind: string, apiVersion: string): StructType {
  const known = documentTypes.get(kind)
  if (known !== undefined) return known
  const one = kind.startsWith('Partial')
    ? partialObjectType
    : apiVersion === 'v1'
      ? coreEventType
      : eventType
  if (!kind.endsWith('List')) return one
  return new StructType(kind, [
    { name: 'metadata', number: 1, type: { struct: listMetaType }, doc: '' },
    { name: 'items', number: 2, type: { listOf: one }, doc: '' },
  ])
}

/** managedFields: here they begin with the first apply, and have their own suite. */
export function withoutManagedFields(tree: Json): Json {
  if (Array.isArray(tree)) return tree.map(withoutManagedFields)
  if (!isObject(tree)) return tree
  const members = Object.entries(tree).filter(([name]) => name !== 'managedFields')
  return Object.fromEntries(
    members.map(([name, value]) => [name, withoutManagedFields(value)]),
  ) as JsonObject
}
