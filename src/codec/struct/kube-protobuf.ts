/**
 * The Kubernetes envelope for protobuf: a four-byte magic number, then a message that contains the
 * apiVersion and kind of the object, and the encoded object.
 */
import { StructType } from '../../api/schema.ts'
import type { JsonObject } from '../../lib/json.ts'
import { BackwardWriter, Reader } from '../../lib/protobuf.ts'
import { documentTypes } from './meta-types.ts'
import { decodeStruct, encodeStruct, ProtobufError } from './protobuf-struct.ts'

const MAGIC: Buffer = Buffer.from([0x6b, 0x38, 0x73, 0x00])
const WIRE_BYTES = 2
/** A TypeMeta has two values. The limit leaves some slack. */
const TYPE_VALUES_MAX = 16
/** An envelope has four fields, and a client may add its own. */
const ENVELOPE_FIELDS_MAX = 16

const typeMetaType: StructType = new StructType('TypeMeta', [
  { name: 'apiVersion', number: 1, type: 'string', doc: 'Group and version.' },
  { name: 'kind', number: 2, type: 'string', doc: 'Kind.' },
])

export interface TypeMeta {
  readonly apiVersion: string
  readonly kind: string
}

export interface Envelope extends TypeMeta {
  readonly raw: Buffer
}

export function wrapEnvelope(meta: TypeMeta, raw: Buffer): Buffer {
  return Buffer.concat([envelopeHead(meta, raw.length), raw])
}

/** Encodes the part of an envelope before its object, which has `rawBytes` bytes. */
export function envelopeHead(meta: TypeMeta, rawBytes: number): Buffer {
  const writer = new BackwardWriter(128)
  writer.prefix(2, rawBytes)
  writer.bytes(1, encodeStruct(typeMetaType, { ...meta }), { always: true })
  return Buffer.concat([MAGIC, writer.finish()])
}

/** Throws a ProtobufError if the bytes are not an envelope. */
export function unwrapEnvelope(bytes: Buffer): Envelope {
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) {
    throw new ProtobufError(
      'provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]',
    )
  }
  let type: Buffer = Buffer.alloc(0)
  let raw: Buffer = Buffer.alloc(0)
  try {
    const reader = new Reader(bytes.subarray(MAGIC.length))
    for (let fields = 0; reader.next(); fields++) {
      if (fields === ENVELOPE_FIELDS_MAX) throw new ProtobufError('too many fields in an envelope')
      const isBytes = reader.wireType === WIRE_BYTES
      if (reader.field === 1 && isBytes) {
        type = reader.bytes()
      } else if (reader.field === 2 && isBytes) raw = reader.bytes()
      else reader.skip()
    }
  } catch (error) {
    if (error instanceof RangeError) throw new ProtobufError(error.message)
    throw error
  }
  const { apiVersion = '', kind = '' } = decodeStruct(
    typeMetaType,
    type,
    TYPE_VALUES_MAX,
  ) as Partial<TypeMeta>
  return { apiVersion, kind, raw }
}

/** Encodes a Status or a discovery document, given as its JSON form. */
export function encodeDocument(document: object): Buffer {
  const { kind = '', apiVersion = 'v1' } = document as Partial<TypeMeta>
  const type = documentTypes.get(kind)
  if (type === undefined) throw new TypeError(`no protobuf message for kind ${kind}`)
  const tree = JSON.parse(JSON.stringify(document)) as JsonObject
  return wrapEnvelope({ apiVersion, kind }, encodeStruct(type, withVerbLists(tree)))
}

/** Wraps the verbs of a resource, which are a message in protobuf. */
function withVerbLists(document: JsonObject): JsonObject {
  const { resources } = document
  if (!Array.isArray(resources)) return document
  const wrapped = (resources as JsonObject[]).map((resource) => ({
    ...resource,
    verbs: { items: resource['verbs'] ?? [] },
  }))
  return { ...document, resources: wrapped }
}
