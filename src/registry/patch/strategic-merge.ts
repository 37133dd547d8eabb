import type { Field, StructType } from '../../api/schema.ts'
import { isObject, type Json, type JsonObject, memberOf, setMember } from '../../lib/json.ts'
import { mergeKeyedList, mergeSet, withoutEntries } from './list-merge.ts'
import { clipped } from './patch-document.ts'
import { PatchError } from './patch-error.ts'

const PATCH = '$patch'
const RETAIN_KEYS = '$retainKeys'
const ELEMENT_ORDER = '$setElementOrder'
const DELETE_FROM_LIST = '$deleteFromPrimitiveList'

/**
 * Applies Kubernetes' strategic merge patch: a merge patch in which lists merge by the key in `type`,
 * and in which names that start with a dollar sign are directives. Recurses as deep as the patch,
 * which the parser limits.
 *
 * Fails with `malformed` for an invalid patch and with `failed` if it does not fit this document.
 */
export function applyStrategicMerge(document: Json, patch: Json, type: StructType): Json {
  if (!isObject(patch)) {
    throw new PatchError('malformed', 'a strategic merge patch must be an object')
  }
  return mergeObject(isObject(document) ? document : {}, patch, type)
}

function mergeObject(
  current: JsonObject,
  patch: JsonObject,
  type: StructType | undefined,
): JsonObject {
  const names = Object.keys(patch)
  if (names.length === 0) return current
  const directive = directiveOf(patch)
  if (directive === 'delete') return {}

  const result = directive === 'replace' ? {} : retained(current, patch)
  for (const name of names) {
    if (!isDirective(name)) mergeMember(result, name, { patch, type })
  }
  for (const name of names) {
    if (isListDirective(name)) followDirective(result, name, { patch, type })
  }
  return result
}

interface Merge {
  readonly patch: JsonObject
  readonly type: StructType | undefined
}

function mergeMember(result: JsonObject, name: string, { patch, type }: Merge): void {
  const value = patch[name]
  const current = memberOf(result, name)
  if (value === undefined || value === null) delete result[name]
  else if (isObject(value)) {
    if (current === undefined && directiveOf(value) === 'delete') return
    const inner = type?.field(name)?.type
    const innerType = typeof inner === 'object' && 'struct' in inner ? inner.struct : undefined
    setMember(result, name, mergeObject(isObject(current) ? current : {}, value, innerType))
  } else if (Array.isArray(value)) {
    setMember(result, name, mergeListMember(current, value, { patch, field: type?.field(name) }))
  } else setMember(result, name, value)
}

function mergeListMember(
  current: Json | undefined,
  value: Json[],
  { patch, field }: { readonly patch: JsonObject; readonly field: Field | undefined },
): Json[] {
  if (field?.mergeBy === undefined) return value
  const lists = {
    current: Array.isArray(current) ? current : [],
    patch: value,
    order: listOf(patch, `${ELEMENT_ORDER}/${field.name}`),
  }
  if (isSet(field)) return mergeSet(lists)
  return mergeKeyedList(lists, { key: field.mergeBy, merge: mergeEntry })
}

/** Entries of lists have no lists that merge. */
function mergeEntry(current: JsonObject, patch: JsonObject): JsonObject {
  return mergeObject(current, patch, undefined)
}

/** Follows a directive such as `$setElementOrder/list`, after all plain members are merged. */
function followDirective(result: JsonObject, name: string, { patch, type }: Merge): void {
  const [directive, ...rest] = name.split('/')
  const entries = listOf(patch, name) ?? []
  const field = type?.field(rest.join('/'))
  if (field?.mergeBy === undefined) throw malformed(name, 'names a list that does not merge')

  const list = memberOf(result, field.name)
  if (directive === ELEMENT_ORDER) {
    // A list that the patch merges is already in this order.
    if (!Array.isArray(list) || Object.hasOwn(patch, field.name)) return
    setMember(result, field.name, mergeListMember(list, [], { patch, field }))
  } else {
    if (directive !== DELETE_FROM_LIST || !isSet(field)) {
      throw malformed(name, 'is not supported for this list')
    }
    if (Array.isArray(list)) setMember(result, field.name, withoutEntries(list, entries))
  }
}

function isDirective(name: string): boolean {
  return name.startsWith('$') && (name === PATCH || name === RETAIN_KEYS || isListDirective(name))
}

function isListDirective(name: string): boolean {
  return name.startsWith(ELEMENT_ORDER) || name.startsWith(DELETE_FROM_LIST)
}

function isSet(field: Field): boolean {
  return typeof field.type === 'object' && 'listOf' in field.type && field.type.listOf === 'string'
}

function directiveOf(patch: JsonObject): 'merge' | 'replace' | 'delete' {
  const directive = memberOf(patch, PATCH)
  if (directive === undefined) return 'merge'
  if (directive === 'merge' || directive === 'replace' || directive === 'delete') return directive
  const shown = clipped(JSON.stringify(directive))
  throw malformed(PATCH, `must be merge, replace or delete, not ${shown}`)
}

/** A copy of the members that stay: those in `$retainKeys`, or all without it. */
function retained(current: JsonObject, patch: JsonObject): JsonObject {
  const names = listOf(patch, RETAIN_KEYS)
  if (names === undefined) return { ...current }
  const retain = new Set(names)
  for (const [name, value] of Object.entries(patch)) {
    if (value === null || isDirective(name) || retain.has(name)) continue
    throw malformed(RETAIN_KEYS, 'must name every member that the patch sets')
  }
  return Object.fromEntries(Object.entries(current).filter(([name]) => retain.has(name)))
}

function listOf(patch: JsonObject, name: string): Json[] | undefined {
  const list = memberOf(patch, name)
  if (list === undefined || Array.isArray(list)) return list
  throw malformed(name, 'must be a list')
}

function malformed(directive: string, why: string): PatchError {
  return new PatchError('malformed', `${clipped(directive)} ${why}`)
}
