/** Reviews of oneself in request bodies: read by their table, and warned about. */
import { StructType } from '../api/schema.ts'
import { badRequest, type StatusError } from '../api/status.ts'
import { JsonSyntaxError, parseJson } from '../codec/json-text.ts'
import { ProtobufError } from '../codec/protobuf-struct.ts'
import { decodeReview } from '../codec/review-protobuf.ts'
import { askedTypes } from '../codec/review-types.ts'
import { StructDecoder, TypeMismatch } from '../codec/struct-decoding.ts'
import { parseYaml } from '../codec/yaml.ts'
import { YamlSyntaxError } from '../codec/yaml-nodes.ts'
import type { Request } from '../http/exchange.ts'
import { isObject, type Json, type JsonObject, memberOf } from '../lib/json.ts'
import { shown } from '../lib/shown.ts'
import { bodyMediaType } from './negotiate.ts'
import { receiveBytes } from './sent-event.ts'
import { readCreateOptions } from './write-options.ts'

/** What is asked, and what its sender should know about it. */
export interface SentReview {
  readonly spec: JsonObject
  readonly warnings: readonly string[]
}

export interface ReviewKind {
  readonly apiVersion: string
  readonly kind: string
}

/** What any review may have besides what it asks; nobody looks into it. */
const TOP_NAMES: ReadonlySet<string> = new Set(['kind', 'apiVersion', 'metadata', 'status'])
const NOTHING_ASKED: StructType = new StructType('Review', [])

/** Throws a 400 for what cannot be read, a 413 for too much, a 422 for options that are no good. */
export async function readSentReview(request: Request, review: ReviewKind): Promise<SentReview> {
  const { fieldValidation } = readCreateOptions(request.query)
  const { value, duplicates, problems: found } = await readTree(request)
  if (!isObject(value)) throw badRequest(`the body must be a ${review.kind}`)
  checkKind(value, review)
  const decoder = new StructDecoder(TOP_NAMES, duplicates)
  const type = askedTypes.get(review.kind) ?? NOTHING_ASKED
  const spec = memberOf(decoded(decoder, type, { value, review }), 'spec') ?? {}
  const problems = [...found, ...decoder.problems]
  if (fieldValidation === 'Strict' && problems.length > 0) {
    throw cannotBeHandled(review, `strict decoding error: ${problems.join(', ')}`)
  }
  return { spec: spec as JsonObject, warnings: fieldValidation === 'Warn' ? problems : [] }
}

function decoded(
  decoder: StructDecoder,
  type: StructType,
  { value, review }: { readonly value: JsonObject; readonly review: ReviewKind },
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

/** Either may be left out: the path says the same. */
function checkKind(tree: JsonObject, { apiVersion, kind }: ReviewKind): void {
  const sent = [memberOf(tree, 'apiVersion') ?? apiVersion, memberOf(tree, 'kind') ?? kind]
  if (sent[0] === apiVersion && sent[1] === kind) return
  throw badRequest(
    `the API version in the data (${shown(`${String(sent[0])}, Kind=${String(sent[1])}`)}) does not match the expected API version (${apiVersion}, Kind=${kind})`,
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
      throw badRequest(`the body cannot be read: ${(error as Error).message}`, error)
    }
    throw error
  }
}

function unrepeated(value: Json): ReturnType<typeof parseYaml> {
  return { value, duplicates: new Map(), problems: [] }
}

const SYNTAX_ERRORS = [JsonSyntaxError, YamlSyntaxError, ProtobufError]
