/**
 * Sets of fields of an object, as trees. A step down has the format of FieldsV1: `f:note` is a
 * member of an object, `k:{"uid":"…"}` an entry of a list by its key, `v:"…"` an entry that is a
 * scalar. Sets are immutable, so they may share parts.
 */
import { isObject, type Json, type JsonObject } from '../../lib/json.ts'

export type FieldSet = ReadonlyMap<string, FieldNode>

export interface FieldNode {
  /** Whether the field itself, apart from the fields inside it, is in the set. */
  readonly isMember: boolean
  readonly inner: FieldSet
}

export const NO_FIELDS: FieldSet = new Map()

/** A member with no fields inside. */
export const WHOLE: FieldNode = { isMember: true, inner: NO_FIELDS }

/** Objects have few levels; a set with more is invalid. */
const DEPTH_MAX = 16

/** Undefined when the node would be empty. */
export function fieldNode(isMember: boolean, inner: FieldSet): FieldNode | undefined {
  if (inner.size > 0) return { isMember, inner }
  return isMember ? WHOLE : undefined
}

export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (a.size === 0) return b
  if (b.size === 0) return a
  const result = new Map(a)
  for (const [step, right] of b) {
    const left = a.get(step)
    const both = left === undefined ? right : unitedNode(left, right)
    result.set(step, both)
  }
  return result
}

function unitedNode(left: FieldNode, right: FieldNode): FieldNode {
  return { isMember: left.isMember || right.isMember, inner: union(left.inner, right.inner) }
}

/** The fields that are in `a` and not in `b`. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  if (a.size === 0 || b.size === 0) return a
  const result = new Map<string, FieldNode>()
  for (const [step, left] of a) {
    const right = b.get(step)
    const rest =
      right === undefined
        ? left
        : fieldNode(left.isMember && !right.isMember, difference(left.inner, right.inner))
    if (rest !== undefined) result.set(step, rest)
  }
  return result
}

export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  const result = new Map<string, FieldNode>()
  for (const [step, left] of a) {
    const right = b.get(step)
    if (right === undefined) continue
    const both = fieldNode(left.isMember && right.isMember, intersection(left.inner, right.inner))
    if (both !== undefined) result.set(step, both)
  }
  return result
}

export function isSameSet(a: FieldSet, b: FieldSet): boolean {
  if (a.size !== b.size) return false
  for (const [step, left] of a) {
    const right = b.get(step)
    if (right === undefined || left.isMember !== right.isMember) return false
    if (!isSameSet(left.inner, right.inner)) return false
  }
  return true
}

/** The number of fields in a set. */
export function sizeOf(set: FieldSet): number {
  let size = 0
  for (const { isMember, inner } of set.values()) size += (isMember ? 1 : 0) + sizeOf(inner)
  return size
}

/** The same set with other names at the top level. */
export function renamedTop(set: FieldSet, rename: (name: string) => string): FieldSet {
  return new Map(
    [...set].map(([step, node]) => [
      step.startsWith('f:') ? `f:${rename(step.slice(2))}` : step,
      node,
    ]),
  )
}

/** The paths of all fields in the set: `.metadata.finalizers[="a"]`. Outer fields come first. */
export function* shownPaths(set: FieldSet, prefix = ''): Generator<string> {
  const steps = [...set].sort(([a], [b]) => compareTexts(a, b))
  for (const [step, { isMember }] of steps) if (isMember) yield prefix + shownStep(step)
  for (const [step, { inner }] of steps) yield* shownPaths(inner, prefix + shownStep(step))
}

/** Compares by code units. */
export function compareTexts(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

function shownStep(step: string): string {
  const rest = step.slice(2)
  switch (step[0]) {
    case 'f':
      return `.${rest}`
    case 'k': {
      const keys = Object.entries(JSON.parse(rest) as JsonObject)
      return `[${keys.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(',')}]`
    }
    case 'v':
      return `[=${rest}]`
    default:
      return `[${rest}]`
  }
}

/** The set as `fieldsV1`, unsorted: the encoder sorts it. */
export function fieldsV1Of(set: FieldSet): JsonObject {
  return Object.fromEntries([...set].map(([step, node]) => [step, nodeV1(node)]))
}

function nodeV1({ isMember, inner }: FieldNode): JsonObject {
  // A field with nothing inside needs no dot to mark it as a member.
  return isMember && inner.size > 0 ? { '.': {}, ...fieldsV1Of(inner) } : fieldsV1Of(inner)
}

/** Parses `fieldsV1`; undefined when it is invalid. */
export function fieldSetOfV1(tree: unknown): FieldSet | undefined {
  return innerOfV1(tree as Json | undefined, 0)
}

function innerOfV1(tree: Json | undefined, depth: number): FieldSet | undefined {
  if (!isObject(tree) || depth === DEPTH_MAX) return undefined
  const set = new Map<string, FieldNode>()
  for (const [name, value] of Object.entries(tree)) {
    if (name === '.') continue
    const step = canonicalStep(name)
    const inner = innerOfV1(value, depth + 1)
    if (step === undefined || inner === undefined) return undefined
    const node = { isMember: inner.size === 0 || Object.hasOwn(value as JsonObject, '.'), inner }
    const known = set.get(step)
    set.set(step, known === undefined ? node : unitedNode(known, node))
  }
  return set
}

/** More than the length of any uid or finalizer. */
const STEP_LENGTH_MAX = 1024

/** The canonical text of a step, so that equal steps have equal texts; undefined when invalid. */
function canonicalStep(name: string): string | undefined {
  const rest = name.slice(2)
  switch (name.slice(0, 2)) {
    case 'f:':
      return name
    case 'k:': {
      const keys = parsed(rest)
      return isObject(keys) ? keyStep(keys) : undefined
    }
    case 'v:': {
      const value = parsed(rest)
      return value === undefined ? undefined : valueStep(value)
    }
    case 'i:':
      return /^(0|[1-9]\d{0,8})$/.test(rest) ? name : undefined
    default:
      return undefined
  }
}

/** Undefined for invalid JSON, or for a text too long to be a list key or value. */
function parsed(text: string): Json | undefined {
  if (text.length > STEP_LENGTH_MAX) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The step to a member of an object. */
export function nameStep(name: string): string {
  return `f:${name}`
}

/** The step to an entry of a list that is a scalar. */
export function valueStep(value: Json): string {
  return `v:${JSON.stringify(value)}`
}

/** The step to the entry of a list that has these keys. */
export function keyStep(keys: JsonObject): string {
  const names = Object.keys(keys).sort()
  const members = names.map((name) => `${JSON.stringify(name)}:${JSON.stringify(keys[name])}`)
  return `k:{${members.join(',')}}`
}
