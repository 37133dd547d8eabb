/**
 * Compares and merges events as typed trees. The table in schema.ts says which values are atomic and
 * which key identifies the entries of a list.
 */
import { isDeepStrictEqual } from 'node:util'
import { atomicTypes, eventType, type FieldType, StructType } from '../../api/schema.ts'
import { isObject, type Json, type JsonObject, memberOf, setMember } from '../../lib/json.ts'
import {
  type FieldNode,
  type FieldSet,
  fieldNode,
  keyStep,
  NO_FIELDS,
  nameStep,
  valueStep,
  WHOLE,
} from './field-set.ts'

export interface Changes {
  /** Fields that are new or have another value. */
  readonly set: FieldSet
  readonly removed: FieldSet
}

/** How values of a type are compared: as one leaf, by members, or by the entries of a list. */
type Shape =
  | { readonly kind: 'leaf' }
  | { readonly kind: 'struct'; readonly members: ReadonlyMap<string, Shape> }
  | { readonly kind: 'map' }
  | { readonly kind: 'list'; readonly stepOf: (entry: Json) => string }

const LEAF: Shape = { kind: 'leaf' }
const MAP: Shape = { kind: 'map' }
const WHOLE_EVENT: Shape = structShape(eventType)

/** All fields that an event contains, including null ones. An applier owns these. */
export function namedFields(event: JsonObject): FieldSet {
  return namedNode(WHOLE_EVENT, event)?.inner ?? NO_FIELDS
}

export function changesOf(old: JsonObject, now: JsonObject): Changes {
  const { set, removed } = compare(WHOLE_EVENT, old, now)
  return { set: set?.inner ?? NO_FIELDS, removed: removed?.inner ?? NO_FIELDS }
}

/** An event overlaid with another one. Shares parts with both. */
export function merged(event: JsonObject, above: JsonObject): JsonObject {
  return merge(WHOLE_EVENT, event, above) as JsonObject
}

/** An event without these fields. A parent stays while it has other fields. */
export function without(event: JsonObject, fields: FieldSet): JsonObject {
  return (remove(WHOLE_EVENT, event, fields) ?? {}) as JsonObject
}

/** The first duplicate entry of a list whose entries have keys: `.finalizers[="a"]`. */
export function repeatedEntry(event: JsonObject): FieldSet | undefined {
  return repeatedIn(WHOLE_EVENT, event)
}

function structShape(type: StructType): Shape {
  const members = type.fields.map((field): [string, Shape] => [
    field.name,
    shapeOf(field.type, field.mergeBy),
  ])
  return { kind: 'struct', members: new Map(members) }
}

function shapeOf(type: FieldType, mergeBy: string | undefined): Shape {
  if (type === 'stringMap') return MAP
  if (typeof type === 'string') return LEAF
  if ('struct' in type) return atomicTypes.has(type.struct) ? LEAF : structShape(type.struct)
  if (mergeBy === undefined) return LEAF
  if (!(type.listOf instanceof StructType)) return { kind: 'list', stepOf: valueStep }
  const stepOf = (entry: Json): string =>
    keyStep({ [mergeBy]: isObject(entry) ? (memberOf(entry, mergeBy) ?? '') : '' })
  return { kind: 'list', stepOf }
}

interface Child {
  readonly shape: Shape
  readonly value: Json
}

/** The direct children of a value, keyed by their steps. */
function childrenOf(shape: Shape, value: Json | undefined): Map<string, Child> {
  const children = new Map<string, Child>()
  if (shape.kind === 'list') {
    for (const entry of Array.isArray(value) ? value : []) {
      children.set(shape.stepOf(entry), { shape: LEAF, value: entry })
    }
  } else if (isObject(value)) {
    for (const name of Object.keys(value)) {
      const inner = innerShape(shape, name)
      if (inner === undefined) continue
      children.set(nameStep(name), { shape: inner, value: value[name] ?? null })
    }
  }
  return children
}

/** The shape of a member of an object; undefined for a member that is not in the table. */
function innerShape(shape: Shape, name: string): Shape | undefined {
  return shape.kind === 'struct' ? shape.members.get(name) : LEAF
}

function namedNode(shape: Shape, value: Json): FieldNode | undefined {
  if (shape.kind === 'leaf' || value === null) return WHOLE
  const children = childrenOf(shape, value)
  if (children.size === 0) return shape.kind === 'list' ? undefined : WHOLE
  const inner = new Map<string, FieldNode>()
  for (const [step, child] of children) {
    const node = namedNode(child.shape, child.value)
    if (node !== undefined) inner.set(step, node)
  }
  return fieldNode(false, inner)
}

interface NodeChanges {
  readonly set?: FieldNode | undefined
  readonly removed?: FieldNode | undefined
}

function compare(shape: Shape, old: Json | undefined, now: Json | undefined): NodeChanges {
  if (old === now) return {}
  if (shape.kind === 'leaf' || (isEmpty(old) && isEmpty(now))) return compareLeaves(old, now)
  const before = childrenOf(shape, old)
  const after = childrenOf(shape, now)
  const set = new Map<string, FieldNode>()
  const removed = new Map<string, FieldNode>()
  for (const step of new Set([...before.keys(), ...after.keys()])) {
    const left = before.get(step)
    const right = after.get(step)
    if (left === undefined && shape.kind === 'struct' && isUnset(right)) continue
    const changes = compare((right ?? left)?.shape ?? LEAF, left?.value, right?.value)
    if (changes.set !== undefined) set.set(step, changes.set)
    if (changes.removed !== undefined) removed.set(step, changes.removed)
  }
  return {
    set: fieldNode(old === undefined, set),
    removed: fieldNode(now === undefined, removed),
  }
}

/** Whether the value means the same as a missing member. */
function isUnset(child: Child | undefined): boolean {
  const { shape, value } = child ?? { shape: LEAF, value: null }
  if (value === null || value === '' || value === 0) return true
  return shape.kind !== 'struct' && isEmpty(value)
}

function compareLeaves(old: Json | undefined, now: Json | undefined): NodeChanges {
  if (now === undefined) return old === undefined ? {} : { removed: WHOLE }
  return isDeepStrictEqual(old, now) ? {} : { set: WHOLE }
}

/** Whether the value is missing, null, an empty list or an empty object. */
function isEmpty(value: Json | undefined): boolean {
  if (value === undefined || value === null) return true
  if (Array.isArray(value)) return value.length === 0
  if (typeof value !== 'object') return false
  for (const _ in value) return false
  return true
}

function merge(shape: Shape, below: Json | undefined, above: Json): Json {
  if (shape.kind === 'leaf' || below === undefined || isEmpty(below)) return above
  if (isEmpty(above)) return below
  if (shape.kind === 'list') return mergedLists(shape.stepOf, below as Json[], above as Json[])
  const lower = below as JsonObject
  const result: JsonObject = { ...lower }
  for (const [name, value] of Object.entries(above as JsonObject)) {
    const inner = innerShape(shape, name) ?? LEAF
    setMember(result, name, merge(inner, memberOf(lower, name), value))
  }
  return result
}

/** Shared entries have the order of `above`; others stay before the entry they preceded. */
function mergedLists(stepOf: (entry: Json) => string, below: Json[], above: Json[]): Json[] {
  const upper = above.map((entry) => ({ step: stepOf(entry), entry }))
  const lowerSteps = new Set(below.map(stepOf))
  const upperSteps = new Set(upper.map(({ step }) => step))
  const shared = upper.map(({ step }) => step).filter((step) => lowerSteps.has(step))
  const result: Json[] = []
  let next = 0
  let taken = 0
  for (const entry of below) {
    const step = stepOf(entry)
    if (!upperSteps.has(step)) result.push(entry)
    else if (step === shared[next]) {
      next++
      while (upper[taken]?.step !== step) result.push(upper[taken++]?.entry ?? null)
      result.push(upper[taken++]?.entry ?? null)
    }
  }
  return [...result, ...upper.slice(taken).map((each) => each.entry)]
}

/** Undefined when nothing is left. */
function remove(shape: Shape, value: Json, fields: FieldSet): Json | undefined {
  if (shape.kind === 'list') {
    const { stepOf } = shape
    const left = (value as Json[]).filter((entry) => !fields.get(stepOf(entry))?.isMember)
    return left.length === 0 ? undefined : left
  }
  const left: JsonObject = {}
  for (const [name, member] of Object.entries(value as JsonObject)) {
    const node = fields.get(nameStep(name))
    const rest = node === undefined ? member : leftOf(innerShape(shape, name), member, node)
    if (rest !== undefined) setMember(left, name, rest)
  }
  return isEmptied(shape, left) ? undefined : left
}

function isEmptied(shape: Shape, left: JsonObject): boolean {
  if (shape.kind !== 'struct') return isEmpty(left)
  return [...childrenOf(shape, left).values()].every(isUnset)
}

function leftOf(shape: Shape | undefined, value: Json, node: FieldNode): Json | undefined {
  if (shape === undefined) return value
  if (shape.kind !== 'leaf' && !isEmpty(value)) return remove(shape, value, node.inner)
  return node.isMember ? undefined : value
}

function repeatedIn(shape: Shape, value: Json): FieldSet | undefined {
  if (shape.kind === 'leaf' || isEmpty(value)) return undefined
  const children = childrenOf(shape, value)
  if (shape.kind === 'list') {
    for (const entry of value as Json[]) {
      const step = shape.stepOf(entry)
      if (!children.delete(step)) return new Map([[step, WHOLE]])
    }
    return undefined
  }
  for (const [step, child] of children) {
    const inner = repeatedIn(child.shape, child.value)
    if (inner !== undefined) return new Map([[step, { isMember: false, inner }]])
  }
  return undefined
}
