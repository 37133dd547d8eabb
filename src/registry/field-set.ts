/**
 * Sets of fields of an object, as trees. A step down is written as FieldsV1 writes it: `f:note` is a
 * member of an object, `k:{"uid":"…"}` an entry of a list by its key, `v:"…"` an entry that is a
 * plain value. Sets are never changed, so they may share parts.
 */
import { isObject, type Json, type JsonObject } from '../lib/json.ts'

export type FieldSet = ReadonlyMap<string, FieldNode>

/** What is below one step: never nothing at all. */
export interface FieldNode {
  /** Whether the place itself is in the set, whatever is inside it. */
  readonly isMember: boolean
  readonly inner: FieldSet
}

export const NO_FIELDS: FieldSet = new Map()

/** A place that is in the set, with nothing inside. */
export const WHOLE: FieldNode = { isMember: true, inner: NO_FIELDS }

/** An object has few levels; a client that sends more means something else. */
const DEPTH_MAX = 16

/** A node, or undefined when it would say nothing. */
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

/** What is in `a` and not in `b`. */
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

/** How many places a set has. */
export function sizeOf(set: FieldSet): number {
  let size = 0
  for (const { isMember, inner } of set.values()) size += (isMember ? 1 : 0) + sizeOf(inner)
  return size
}

/** The same set with other names at the top. */
export function renamedTop(set: FieldSet, rename: (name: string) => string): FieldSet {
  return new Map(
    [...set].map(([step, node]) => [
      step.startsWith('f:') ? `f:${rename(step.slice(2))}` : step,
      node,
    ]),
  )
}

/** Each place in the set, as people read it: `.metadata.finalizers[="a"]`. Outer places come first. */
export function* shownPaths(set: FieldSet, prefix = ''): Generator<string> {
  const steps = [...set].sort(([a], [b]) => compareSteps(a, b))
  for (const [step, { isMember }] of steps) if (isMember) yield prefix + shownStep(step)
  for (const [step, { inner }] of steps) yield* shownPaths(inner, prefix + shownStep(step))
}

function compareSteps(a: string, b: string): number {
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

/** The set as it stands in `fieldsV1`. Whoever prints it sorts it. */
export function fieldsV1Of(set: FieldSet): JsonObject {
  return Object.fromEntries([...set].map(([step, node]) => [step, nodeV1(node)]))
}

function nodeV1({ isMember, inner }: FieldNode): JsonObject {
  // A place with nothing inside needs no dot to say that it is meant itself.
  return isMember && inner.size > 0 ? { '.': {}, ...fieldsV1Of(inner) } : fieldsV1Of(inner)
}

/** The set that `fieldsV1` stands for; undefined when it is none. */
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
    const twin = set.get(step)
    set.set(step, twin === undefined ? node : unitedNode(twin, node))
  }
  return set
}

/** Longer than any uid or finalizer. */
const STEP_LENGTH_MAX = 1024

/** One way to write each step, so that equal steps are equal texts; undefined for what is none. */
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

/** Undefined for what is no JSON, or more of it than the keys and values of lists are. */
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

/** The step to an entry of a list that is a plain value. */
export function valueStep(value: Json): string {
  return `v:${JSON.stringify(value)}`
}

/** The step to the entry of a list that has these keys. */
export function keyStep(keys: JsonObject): string {
  const names = Object.keys(keys).sort()
  const members = names.map((name) => `${JSON.stringify(name)}:${JSON.stringify(keys[name])}`)
  return `k:{${members.join(',')}}`
}
