/**
 * Reviews of oneself in Kubernetes' protobuf: kubectl sends them so. Only what is asked in them is
 * read; all of it is text, at most two levels down.
 */
import { type JsonObject, setMember } from '../lib/json.ts'

export const KUBERNETES_PROTOBUF = 'application/vnd.kubernetes.protobuf'

/** The bytes are no such message. */
export class ReviewSyntaxError extends Error {
  override readonly name = 'ReviewSyntaxError'
}

/** Four bytes that tell the envelope apart from everything else. */
const MAGIC: Buffer = Buffer.from('k8s\0')

/** By field number: the name of a text, or of a message with fields of its own. */
type Shape = ReadonlyMap<number, string | { readonly name: string; readonly shape: Shape }>

const TYPE_META: Shape = texts(['apiVersion', 'kind'])
const RESOURCE_ATTRIBUTES: Shape = texts([
  'namespace',
  'verb',
  'group',
  'version',
  'resource',
  'subresource',
  'name',
])
const ACCESS_SPEC: Shape = new Map([
  [1, { name: 'resourceAttributes', shape: RESOURCE_ATTRIBUTES }],
  [2, { name: 'nonResourceAttributes', shape: texts(['path', 'verb']) }],
])
const SPECS: ReadonlyMap<unknown, Shape> = new Map([
  ['SelfSubjectAccessReview', ACCESS_SPEC],
  ['SelfSubjectRulesReview', texts(['namespace'])],
])

/** The review as it would be in JSON, without metadata and status. Fails with a ReviewSyntaxError. */
export function decodeReview(bytes: Buffer): JsonObject {
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) {
    throw new ReviewSyntaxError('no protobuf message of Kubernetes')
  }
  let review: JsonObject = {}
  let raw = bytes.subarray(bytes.length)
  for (const field of fieldsOf(bytes.subarray(MAGIC.length))) {
    if (field.number === 1) review = decode(TYPE_META, field.bytes)
    else if (field.number === 2) raw = field.bytes
  }
  const spec = SPECS.get(review['kind'])
  if (spec === undefined) return review
  return { ...review, ...decode(new Map([[2, { name: 'spec', shape: spec }]]), raw) }
}

function texts(names: readonly string[]): Shape {
  return new Map(names.map((name, index) => [index + 1, name]))
}

function decode(shape: Shape, bytes: Buffer): JsonObject {
  const tree: JsonObject = {}
  for (const field of fieldsOf(bytes)) {
    const known = shape.get(field.number)
    if (typeof known === 'string') setMember(tree, known, field.bytes.toString())
    else if (known !== undefined) setMember(tree, known.name, decode(known.shape, field.bytes))
  }
  return tree
}

interface BytesField {
  readonly number: number
  readonly bytes: Buffer
}

/** Fields that hold bytes; others are passed over. */
function* fieldsOf(message: Buffer): Generator<BytesField> {
  let at = 0
  const varint = (): number => {
    let value = 0
    for (let scale = 1; scale < 2 ** 64; scale *= 128) {
      const byte = message[at++]
      if (byte === undefined) throw new ReviewSyntaxError('a protobuf message is cut off')
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
    }
    throw new ReviewSyntaxError('a number in a protobuf message has too many bytes')
  }
  const skip = (length: number): void => {
    at += length
    if (at > message.length) throw new ReviewSyntaxError('a protobuf message is cut off')
  }
  while (at < message.length) {
    const tag = varint()
    const number = Math.floor(tag / 8)
    switch (tag % 8) {
      case 0:
        varint()
        break
      case 1:
        skip(8)
        break
      case 2: {
        const length = varint()
        skip(length)
        yield { number, bytes: message.subarray(at - length, at) }
        break
      }
      case 5:
        skip(4)
        break
      default:
        throw new ReviewSyntaxError('a protobuf message has a field of no known kind')
    }
  }
}
