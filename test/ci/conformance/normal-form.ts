/**
 * Two servers never give the same uid, version or time. A response in normal form has a placeholder
 * for each value that a server chooses, so that two of them can be compared member by member. A
 * value in the wrong format is kept, so that the comparison shows it.
 */
import { isObject, type Json, type JsonObject, setMember } from '../../../src/lib/json.ts'

export interface Place {
  /** The namespace that this run used for the suite. */
  readonly namespace: string
}

/** A rule for string members of that name; `inside` names the object or array around them. */
interface MemberRule {
  readonly member: string
  readonly inside?: string
  readonly looks: RegExp
  readonly becomes: string
}

const MEMBER_RULES: readonly MemberRule[] = [
  { member: 'resourceVersion', inside: 'metadata', looks: /^[1-9]\d*$/, becomes: '<rv>' },
  { member: 'creationTimestamp', looks: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/, becomes: '<time>' },
  { member: 'deletionTimestamp', looks: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/, becomes: '<time>' },
  { member: 'time', inside: 'managedFields', looks: /^\d{4}-.*Z$/, becomes: '<time>' },
  { member: 'continue', inside: 'metadata', looks: /^[\w-]+$/, becomes: '<token>' },
  { member: 'storageVersionHash', looks: /^[\w+/=]+$/, becomes: '<hash>' },
  { member: 'description', inside: 'columnDefinitions', looks: /./, becomes: '<text>' },
]

/** Ages, as kubectl prints them, in the cells of a table. */
const AGE_CELL =
  /^(?:<age>|\d+[smhdy](?:\d+[smhd])?)(?: \(x\d+ over (?:<age>|\d+[smhdy](?:\d+[smhd])?)\))?$/
const AGE = /\b\d+[smhdy](?:\d+[smhd])?\b/g

/** The uids of the recorded requests begin with zeros, and are returned as they were sent. */
const UID = /\b(?!00000000-)[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b/g
const GENERATED_NAME = /\b(gen-|Gen_|Bad_|g-|x{58})[bcdfghjklmnpqrstvwxz2456789]{5}\b/g
const VERSION_IN_TEXT = /(?<=in record \()\d+(?=\))|(?<=current: )\d+/g

/** The namespace in recorded protobuf, which cannot have a placeholder for it. */
export function namespaceIn(bytes: Buffer): string {
  return /c-[a-z]+(?:-[a-z]+)*/.exec(bytes.toString('latin1'))?.[0] ?? 'none'
}

/** A tree in normal form. */
export function normalTree(tree: Json, place: Place): Json {
  return normalValue(tree, place, [])
}

/** A text in normal form. */
export function normalText(text: string, place: Place): string {
  return text
    .replaceAll(place.namespace, '<ns>')
    .replace(UID, '<uid>')
    .replace(VERSION_IN_TEXT, '<rv>')
    .replace(GENERATED_NAME, '$1<suffix>')
}

/** `path`: the names of the members around the value, the innermost last. */
function normalValue(value: Json, place: Place, path: readonly string[]): Json {
  if (Array.isArray(value)) {
    const items = value.map((item) => normalValue(item, place, path))
    return path.at(-1) === 'managedFields' ? items.sort(compareEntries) : items
  }
  if (isObject(value)) return normalObject(value, place, path)
  if (typeof value !== 'string') return value
  const [inside, member] = [path.at(-2), path.at(-1)]
  const rule = MEMBER_RULES.find(
    (candidate) =>
      candidate.member === member &&
      (candidate.inside === undefined || candidate.inside === inside) &&
      candidate.looks.test(value),
  )
  if (rule !== undefined) return rule.becomes
  if (member === 'cells' && AGE_CELL.test(value)) return value.replace(AGE, '<age>')
  return normalText(value, place)
}

/** Entries are sorted by seconds first, and which entry gets which second is random. */
function compareEntries(a: Json, b: Json): number {
  const [left, right] = [a, b].map((entry) => {
    const { operation = '', manager = '' } = isObject(entry) ? entry : {}
    return `${operation} ${manager}`
  })
  return (left ?? '') < (right ?? '') ? -1 : 1
}

function normalObject(object: JsonObject, place: Place, path: readonly string[]): JsonObject {
  const normal: JsonObject = {}
  for (const [name, value] of Object.entries(object)) {
    setMember(normal, name, normalValue(value, place, [...path, name]))
  }
  return normal
}
