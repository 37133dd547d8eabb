/** Decodes self reviews in Kubernetes protobuf, which kubectl sends. Only the spec is decoded. */
import type { JsonObject } from '../lib/json.ts'
import { reviewSpecTypes } from './review-types.ts'
import { unwrapEnvelope } from './struct/kube-protobuf.ts'
import { decodeStruct } from './struct/protobuf-struct.ts'

/** Many times the number of values in a review. */
const VALUES_MAX = 1000

/** The review as in JSON, without metadata and status. Throws a ProtobufError. */
export function decodeReview(bytes: Buffer): JsonObject {
  const { kind, apiVersion, raw } = unwrapEnvelope(bytes)
  const type = reviewSpecTypes.get(kind)
  const read = type === undefined ? {} : decodeStruct(type, raw, VALUES_MAX)
  return { ...(apiVersion === '' ? {} : { apiVersion }), ...(kind === '' ? {} : { kind }), ...read }
}
