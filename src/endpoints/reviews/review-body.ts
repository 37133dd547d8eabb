/** Decodes self reviews in request bodies by the table of their fields, and collects warnings. */
import { StructType } from '../../api/schema.ts'
import { badRequest, type StatusError } from '../../api/status.ts'
import { JsonSyntaxError, parseJson } from '../../codec/json/json-text.ts'
import { decodeReview } from '../../codec/review-protobuf.ts'
import { reviewSpecTypes } from '../../codec/review-types.ts'
import { ProtobufError } from '../../codec/struct/protobuf-struct.ts'
import { StructDecoder, TypeMismatch } from '../../codec/struct/struct-decoding.ts'
import { parseYaml } from '../../codec/yaml/yaml.ts'
import type { Request } from '../../http/exchange.ts'
import { isObject, type Json, type JsonObject, memberOf } from '../../lib/json.ts'
import { truncate } from '../../lib/text/truncate.ts'
import { YamlSyntaxError } from '../../lib/text/yaml-documents.ts'
import { receiveBytes } from '../request/event-body.ts'
import { bodyMediaType } from '../request/negotiate.ts'
import { readCreateOptions } from '../request/write-options.ts'

/** The spec of a review, with warnings for the client. */
export interface SentReview {
  readonly spec: JsonObject
  readonly warnings: readonly string[]
}

export interface ReviewKind {
  readonly apiVersion: string
  readonly kind: string
}

/** Members that any review may have besides its spec. They are ignored. */
const TOP_NAMES: ReadonlySet<string> = new Set(['kind', 'apiVersion', 'metadata', 'status'])
const NO_SPEC: StructType = new StructType('Review', [])

/** Throws a 400 for an invalid body, a 413 for one that is too large, a 422 for invalid options. */
export async function readSentReview(request: Request, review: ReviewKind): Promise<SentReview> {
  const { fieldValidation } = readCreateOptions(request.query)
  const { value, duplicates, problems: found } = await readTree(request)
  if (!isObject(value)) throw badRequest(`the body must be a ${review.kind}`)
  checkKind(value, review)
  const decoder = new StructDecoder(TOP_NAMES, duplicates)
  const type = reviewSpecTypes.get(review.kind) ?? NO_SPEC
  const spec = memberOf(decoded(decoder, type, value, review), 'spec') ?? {}
  const problems = [...found, ...decoder.problems]
  if (fieldValidation === 'Strict' && problems.length > 0) {
    throw cannotBeHandled(review, `strict decoding error: ${problems.join(', ')}`)
  }
  return { spec: spec as JsonObject, warnings: fieldValidation === 'Warn' ? problems : [] }
}

function decoded(
  decoder: StructDecoder,
  type: StructType,
  value: JsonObject,
  review: ReviewKind,
): JsonObject {
  try {
    return decoder.struct(type, value, '')
  } catch (error) {
    throw error instanceof TypeMismatch ? cannotBeHandled(review, error.message) : error
  }
}

function cannotBeHandled({ kind }: ReviewKind, why: string): StatusError {
  return badRequest(`${kind} in version "v1" cannot be handled as a ${kind}: ${why}`)
}

/** Both members are optional, since the path contains the same information. */
function checkKind(tree: JsonObject, { apiVersion, kind }: ReviewKind): void {
  const sent = [memberOf(tree, 'apiVersion') ?? apiVersion, memberOf(tree, 'kind') ?? kind]
  if (sent[0] === apiVersion && sent[1] === kind) return
  throw badRequest(
    `the API version in the data (${truncate(`${String(sent[0])}, Kind=${String(sent[1])}`)}) does not match the expected API version (${apiVersion}, Kind=${kind})`,
  )
}

async function readTree(request: Request): Promise<ReturnType<typeof parseYaml>> {
  const mediaType = bodyMediaType(request)
  const body = await receiveBytes(request)
  try {
    if (mediaType === 'protobuf') return unrepeated(decodeReview(body))
    const text = body.toString()
    return mediaType === 'json' ? { ...parseJson(text), problems: [] } : parseYaml(text)
  } catch (error) {
    if (SYNTAX_ERRORS.some((kind) => error instanceof kind)) {
      throw badRequest(`the body cannot be decoded: ${(error as Error).message}`, error)
    }
    throw error
  }
}

function unrepeated(value: Json): ReturnType<typeof parseYaml> {
  return { value, duplicates: new Map(), problems: [] }
}

const SYNTAX_ERRORS = [JsonSyntaxError, YamlSyntaxError, ProtobufError]
