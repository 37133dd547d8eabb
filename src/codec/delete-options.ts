import type { DecodedDeleteOptions } from '../api/delete-options.ts'
import { badRequest } from '../api/status.ts'
import { goQuote } from '../lib/go/go-quote.ts'
import { isObject, type Json, type JsonObject, memberOf } from '../lib/json.ts'
import { truncate } from '../lib/text/truncate.ts'
import { YamlSyntaxError } from '../lib/text/yaml-documents.ts'
import { EVENT_VALUES_MAX, JsonSyntaxError, parseJson } from './json/json-text.ts'
import { unwrapEnvelope } from './struct/kube-protobuf.ts'
import { deleteOptionsType } from './struct/meta-types.ts'
import { decodeStruct, ProtobufError } from './struct/protobuf-struct.ts'
import { jsonKind, StructDecoder, TypeMismatch } from './struct/struct-decoding.ts'
import { parseYaml } from './yaml/yaml.ts'

/**
 * Decodes the body of a delete. Throws a StatusError: 400, or 413 if the body has too many values.
 * The options are the same in every API version, so any version is accepted. Ignores unknown names.
 */
export function decodeDeleteOptions(
  body: Buffer,
  mediaType: 'json' | 'yaml' | 'protobuf',
): DecodedDeleteOptions {
  try {
    return decoded(read(body, mediaType))
  } catch (error) {
    throw asBadRequest(error)
  }
}

function read(body: Buffer, mediaType: 'json' | 'yaml' | 'protobuf'): Json {
  if (mediaType === 'protobuf') {
    const { kind, raw } = unwrapEnvelope(body)
    return { kind, ...decodeStruct(deleteOptionsType, raw, EVENT_VALUES_MAX) }
  }
  const text = body.toString('utf8')
  return (mediaType === 'json' ? parseJson(text, EVENT_VALUES_MAX) : parseYaml(text)).value
}

function decoded(value: Json): DecodedDeleteOptions {
  if (value === null) return {}
  if (!isObject(value)) {
    throw new TypeMismatch(
      `couldn't get version/kind; json parse error: json: cannot unmarshal ${jsonKind(value)} into Go value of type DeleteOptions`,
    )
  }
  textMember(value, 'apiVersion')
  const kind = textMember(value, 'kind')
  if (kind !== '' && kind !== 'DeleteOptions') {
    throw new TypeMismatch(
      `no kind ${goQuote(truncate(kind))} is registered for the options of a delete`,
    )
  }
  return new StructDecoder(new Set(), undefined).struct(deleteOptionsType, value, '')
}

function textMember(value: JsonObject, name: 'apiVersion' | 'kind'): string {
  const text = memberOf(value, name) ?? ''
  if (typeof text === 'string') return text
  throw new TypeMismatch(
    `couldn't get version/kind; json parse error: json: cannot unmarshal ${jsonKind(text)} into Go struct field .${name} of type string`,
  )
}

function asBadRequest(error: unknown): unknown {
  if (error instanceof JsonSyntaxError) {
    return badRequest(`couldn't get version/kind; json parse error: ${error.message}`, error)
  }
  const isClientError =
    error instanceof TypeMismatch ||
    error instanceof YamlSyntaxError ||
    error instanceof ProtobufError
  return isClientError ? badRequest(error.message, error) : error
}
