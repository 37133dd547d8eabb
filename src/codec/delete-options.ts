import type { DecodedDeleteOptions } from '../api/delete-options.ts'
import { badRequest } from '../api/status.ts'
import { goQuote } from '../lib/go-quote.ts'
import { isObject, type Json, type JsonObject, memberOf } from '../lib/json.ts'
import { shown } from '../lib/shown.ts'
import { EVENT_VALUES_MAX, JsonSyntaxError, parseJson } from './json-text.ts'
import { opened } from './kube-protobuf.ts'
import { deleteOptionsType } from './meta-types.ts'
import { decodeStruct, ProtobufError } from './protobuf-struct.ts'
import { jsonKind, StructDecoder, TypeMismatch } from './struct-decoding.ts'
import { parseYaml } from './yaml.ts'
import { YamlSyntaxError } from './yaml-nodes.ts'

/**
 * The body of a delete; fails with a StatusError: 400, or 413 for too much. Of whatever API
 * version it says it is, it is the same thing, and names that nobody knows do not matter.
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
    const { kind, raw } = opened(body)
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
      `no kind ${goQuote(shown(kind))} is registered for the options of a delete`,
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
  const isTheirs =
    error instanceof TypeMismatch ||
    error instanceof YamlSyntaxError ||
    error instanceof ProtobufError
  return isTheirs ? badRequest(error.message, error) : error
}
