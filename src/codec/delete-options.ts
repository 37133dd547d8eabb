import type { DecodedDeleteOptions } from '../api/delete-options.ts'
import { StructType } from '../api/schema.ts'
import { badRequest } from '../api/status.ts'
import { goQuote } from '../lib/go-quote.ts'
import { isObject, type Json, memberOf } from '../lib/json.ts'
import { EVENT_VALUES_MAX, JsonSyntaxError, parseJson } from './json-text.ts'
import { jsonKind, StructDecoder, TypeMismatch } from './struct-decoding.ts'
import { parseYaml } from './yaml.ts'
import { YamlSyntaxError } from './yaml-nodes.ts'

/**
 * The body of a delete; fails with a StatusError 400. Of whatever API version it says it is, it is
 * the same thing, and names that nobody knows do not matter.
 */
export function decodeDeleteOptions(
  body: Buffer,
  mediaType: 'json' | 'yaml',
): DecodedDeleteOptions {
  try {
    const text = body.toString('utf8')
    const { value } = mediaType === 'json' ? parseJson(text, EVENT_VALUES_MAX) : parseYaml(text)
    return decoded(value)
  } catch (error) {
    throw asBadRequest(error)
  }
}

const preconditionsType: StructType = new StructType('Preconditions', [
  { name: 'uid', number: 1, type: 'string', doc: 'UID that the object must have.' },
  { name: 'resourceVersion', number: 2, type: 'string', doc: 'Version that it must have.' },
])

const deleteOptionsType: StructType = new StructType('DeleteOptions', [
  {
    name: 'gracePeriodSeconds',
    number: 1,
    type: 'int64',
    keepsZero: true,
    doc: 'Seconds to end in.',
  },
  {
    name: 'preconditions',
    number: 2,
    type: { struct: preconditionsType },
    doc: 'What must be so for the object to go.',
  },
  {
    name: 'orphanDependents',
    number: 3,
    type: 'bool',
    keepsZero: true,
    doc: 'Whether dependents stay. Older than propagationPolicy.',
  },
  { name: 'propagationPolicy', number: 4, type: 'string', doc: 'What becomes of dependents.' },
  { name: 'dryRun', number: 5, type: { listOf: 'string' }, doc: '`All`: try, and store nothing.' },
])

const SHOWN_LENGTH_MAX = 256

function decoded(value: Json): DecodedDeleteOptions {
  if (value === null) return {}
  if (!isObject(value)) {
    throw new TypeMismatch(
      `couldn't get version/kind; json parse error: json: cannot unmarshal ${jsonKind(value)} into Go value of type DeleteOptions`,
    )
  }
  const kind = memberOf(value, 'kind') ?? ''
  if (typeof kind !== 'string') {
    throw new TypeMismatch(
      `couldn't get version/kind; json parse error: json: cannot unmarshal ${jsonKind(kind)} into Go struct field .kind of type string`,
    )
  }
  if (kind !== '' && kind !== 'DeleteOptions') {
    const shown = goQuote(kind.slice(0, SHOWN_LENGTH_MAX))
    throw new TypeMismatch(`no kind ${shown} is registered for the options of a delete`)
  }
  return new StructDecoder(new Set(), undefined).struct(deleteOptionsType, value, '')
}

function asBadRequest(error: unknown): unknown {
  if (error instanceof JsonSyntaxError) {
    return badRequest(`couldn't get version/kind; json parse error: ${error.message}`, error)
  }
  const isTheirs = error instanceof TypeMismatch || error instanceof YamlSyntaxError
  return isTheirs ? badRequest(error.message, error) : error
}
