/** Reviews of oneself in Kubernetes' protobuf: kubectl sends them so. Only what is asked in them is read. */
import type { JsonObject } from '../lib/json.ts'
import { opened } from './kube-protobuf.ts'
import { decodeStruct } from './protobuf-struct.ts'
import { askedTypes } from './review-types.ts'

/** Many times what a review has. */
const VALUES_MAX = 1000

/** The review as it would be in JSON, without metadata and status. Fails with a ProtobufError. */
export function decodeReview(bytes: Buffer): JsonObject {
  const { kind, apiVersion, raw } = opened(bytes)
  const type = askedTypes.get(kind)
  const read = type === undefined ? {} : decodeStruct(type, raw, VALUES_MAX)
  return { ...(apiVersion === '' ? {} : { apiVersion }), ...(kind === '' ? {} : { kind }), ...read }
}
