/** Reviews of oneself in Kubernetes' protobuf: kubectl sends them so. Only what is asked in them is read. */
import { type Field, StructType } from '../api/schema.ts'
import type { JsonObject } from '../lib/json.ts'
import { opened } from './kube-protobuf.ts'
import { decodeStruct } from './protobuf-struct.ts'

/** Many times what a review has. */
const VALUES_MAX = 100

const texts = (name: string, names: readonly string[]): StructType =>
  new StructType(
    name,
    names.map((text, index): Field => ({ name: text, number: index + 1, type: 'string', doc: '' })),
  )

const resourceAttributesType: StructType = texts('ResourceAttributes', [
  'namespace',
  'verb',
  'group',
  'version',
  'resource',
  'subresource',
  'name',
])
const accessSpecType: StructType = new StructType('SelfSubjectAccessReviewSpec', [
  { name: 'resourceAttributes', number: 1, type: { struct: resourceAttributesType }, doc: '' },
  {
    name: 'nonResourceAttributes',
    number: 2,
    type: { struct: texts('NonResourceAttributes', ['path', 'verb']) },
    doc: '',
  },
])
const rulesSpecType: StructType = texts('SelfSubjectRulesReviewSpec', ['namespace'])

const reviewTypes: ReadonlyMap<string, StructType> = new Map([
  ['SelfSubjectAccessReview', reviewType(accessSpecType)],
  ['SelfSubjectRulesReview', reviewType(rulesSpecType)],
])

function reviewType(spec: StructType): StructType {
  return new StructType('Review', [{ name: 'spec', number: 2, type: { struct: spec }, doc: '' }])
}

/** The review as it would be in JSON, without metadata and status. Fails with a ProtobufError. */
export function decodeReview(bytes: Buffer): JsonObject {
  const { kind, apiVersion, raw } = opened(bytes)
  const type = reviewTypes.get(kind)
  const read = type === undefined ? {} : decodeStruct(type, raw, VALUES_MAX)
  return { ...(apiVersion === '' ? {} : { apiVersion }), ...(kind === '' ? {} : { kind }), ...read }
}
