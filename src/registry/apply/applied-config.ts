/** A server-side-apply configuration: a partial event, and the fields that it names. */
import { type EventGroup, toCoreName } from '../../api/event-groups.ts'
import { atomicTypes, type FieldType, StructType } from '../../api/schema.ts'
import { badRequest, type StatusError } from '../../api/status.ts'
import { canonicalTime } from '../../api/time.ts'
import { cutText } from '../../api/validation/field-error.ts'
import { decodeEventTree } from '../../codec/event/event-json.ts'
import type { ParsedJson } from '../../codec/json/json-text.ts'
import { isObject, type Json, type JsonObject, memberOf, setMember } from '../../lib/json.ts'
import { type FieldSet, renamedTop, shownPaths } from './field-set.ts'
import { ownable } from './managed-fields.ts'
import { namedFields, repeatedEntry } from './structured-diff.ts'

export interface AppliedConfig {
  /** Uses internal field names and canonical times. */
  readonly tree: JsonObject
  /** The fields of `tree` that can have an owner. */
  readonly fields: FieldSet
  /** The document that the client sent. */
  readonly sent: JsonObject
  /** Warnings about duplicate fields; unknown fields have already been refused. */
  readonly problems: readonly string[]
}

/** Throws a StatusError with code 400. */
export function readConfig(
  sent: Json,
  group: EventGroup,
  duplicates?: ParsedJson['duplicates'],
): AppliedConfig {
  const document = isObject(sent) ? sent : {}
  checkType(document, group.apiVersion)
  const metadata = memberOf(document, 'metadata') ?? {}
  if (isObject(metadata) && (memberOf(metadata, 'managedFields') ?? null) !== null) {
    throw badRequest('metadata.managedFields must be nil')
  }
  // The number of reported problems is bounded, so duplicates must not use it up.
  const { problems: unknown } = decodeEventTree(document, group)
  if (unknown.length > 0) throw untyped(document, unknown.map(undeclared))
  const hasDuplicates = duplicates !== undefined && duplicates.size > 0
  const problems = hasDuplicates ? decodeEventTree(document, group, duplicates).problems : []
  const { kind: _kind, apiVersion: _apiVersion, ...fields } = document
  const tree = group.toEvent(canonical(group.type, fields)) as unknown as JsonObject
  checkEntries(document, tree, group)
  return { tree, fields: ownable(namedFields(tree)), sent: document, problems }
}

const UNKNOWN = 'unknown field "'

function undeclared(problem: string): string {
  return `.${problem.slice(UNKNOWN.length, -1)}: field not declared in schema`
}

/** Unlike in other bodies, apiVersion and kind are required. */
function checkType(document: JsonObject, expected: string): void {
  const apiVersion = textOf(memberOf(document, 'apiVersion'))
  const kind = textOf(memberOf(document, 'kind'))
  if (apiVersion === expected && kind === 'Event') return
  throw badRequest(`invalid object type: ${kindText(apiVersion, kind)}`)
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? cutText(value) : ''
}

function kindText(apiVersion: string, kind: string): string {
  return `${apiVersion.includes('/') ? '' : '/'}${apiVersion}, Kind=${kind}`
}

/** The tree in canonical form, for comparisons. It must already have been type-checked. */
function canonical(type: StructType, object: JsonObject): JsonObject {
  const result: JsonObject = {}
  for (const [name, value] of Object.entries(object)) {
    const field = type.field(name)
    if (field !== undefined) setMember(result, name, canonicalValue(field.type, value))
  }
  return result
}

function canonicalValue(type: FieldType, value: Json): Json {
  if (typeof value === 'string' && (type === 'time' || type === 'microTime')) {
    return canonicalTime(value, type) ?? null
  }
  if (typeof type === 'string' || value === null) return value
  if ('struct' in type) return canonicalStruct(type.struct, value as JsonObject)
  const { listOf } = type
  if (!(listOf instanceof StructType)) return value
  return (value as Json[]).map((entry) => canonicalStruct(listOf, (entry ?? {}) as JsonObject))
}

function canonicalStruct(type: StructType, object: JsonObject): JsonObject {
  return atomicTypes.has(type) ? asPrinted(type, object) : canonical(type, object)
}

/** An atomic value with exactly the members that are encoded, since it is compared as a whole. */
function asPrinted(type: StructType, object: JsonObject): JsonObject {
  const result: JsonObject = {}
  for (const { name, whenUnset } of type.fields) {
    const value = memberOf(object, name) ?? ''
    if (value !== '') result[name] = value
    else if (whenUnset === '""') result[name] = ''
  }
  return result
}

/** Throws a 400 for duplicate list entries, which a field path could not distinguish. */
function checkEntries(document: JsonObject, tree: JsonObject, group: EventGroup): void {
  const repeated = repeatedEntry(tree)
  if (repeated === undefined) return
  const shown = group.name === '' ? renamedTop(repeated, toCoreName) : repeated
  throw untyped(
    document,
    [...shownPaths(shown)].map((path) => `${cutText(path)}: duplicate entry`),
  )
}

function untyped(document: JsonObject, errors: readonly string[]): StatusError {
  const metadata = memberOf(document, 'metadata') ?? {}
  const { namespace, name } = isObject(metadata) ? metadata : {}
  const type = kindText(textOf(document['apiVersion']), textOf(document['kind']))
  const what = `${textOf(namespace)}/${textOf(name)}; ${type}`
  const why = errors.length === 1 ? errors[0] : `errors:\n  ${errors.join('\n  ')}`
  return badRequest(`failed to create typed patch object (${what}): ${why}`)
}
