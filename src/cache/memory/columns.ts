/**
 * What memory knows of an event without reading its body: numbers, one for each column.
 *
 * Hashes have 32 bits. Equal values have equal hashes; collisions are harmless, since a lookup by
 * hash checks the event itself afterwards. Interned texts are exact.
 */
import { exactValues, type ValuePattern } from '../../api/selectors/value-pattern.ts'
import { placeAndWorkload } from '../../incidents/marks.ts'
import { patternOf } from '../../incidents/pattern.ts'
import { HASH_BASIS, hashed, mixed } from '../../lib/hash.ts'
import type { EventFields, ObjectReference } from '../../storage/event-fields.ts'
import type { Mention, Requires, ValueField } from '../../storage/requires.ts'
import type { StoredEvent } from '../../storage/storage.ts'
import type { InternedTexts } from './interned-texts.ts'

export const COLUMNS = {
  /** Hash of the uid. */
  regardingUid: 0,
  /** Hash of kind, without case, and name. */
  regarding: 1,
  /** The same hash for `related`; 0 when nothing is related. */
  relatedUid: 2,
  related: 3,
  /** Another hash of the regarded object, of everything that identifies it. */
  object: 4,
  /** Hash of the kind and name of the workload, like `regarding`. */
  workload: 5,
  /** What the note has in common with others; see incidents/pattern.ts. 0 without a note. */
  pattern: 6,
  /** Hash of the name of the node; 0 when it is not known. */
  node: 7,
  /** Interned texts from here on. */
  type: 8,
  reason: 9,
  kind: 10,
  controller: 11,
  /** The interned `cluster/namespace` of the key. */
  namespace: 12,
  /** The controller or, of events that name none, the component of the deprecated source. */
  source: 13,
} as const

export type Column = (typeof COLUMNS)[keyof typeof COLUMNS]

export const columnsPerRow = 14
/** Columns before this one hold hashes, the others interned texts. */
export const firstTextColumn = 8

/**
 * Columns with a tree are indexes. The type has no tree: it has two values, and an index that leads
 * to half of all events is worth less than the ten megabytes it takes. Its number still saves a scan
 * from reading the events that do not match. Nor has the reporting controller, which is also in the
 * column `source` where an event names it. Nodes and patterns have none either: each tree takes a
 * microsecond of every write, and a scan of their columns takes some milliseconds for a million
 * events. The index of related objects has only events that have one, which are few.
 */
export const indexes: readonly { readonly column: Column; readonly isSparse: boolean }[] = [
  { column: COLUMNS.regardingUid, isSparse: false },
  { column: COLUMNS.regarding, isSparse: false },
  { column: COLUMNS.reason, isSparse: false },
  { column: COLUMNS.source, isSparse: false },
  { column: COLUMNS.relatedUid, isSparse: true },
  { column: COLUMNS.related, isSparse: true },
  { column: COLUMNS.workload, isSparse: false },
]

/** Writes the numbers of an event, from `at` on. Interned texts get one more use. */
export function writeColumns(
  target: Uint32Array,
  at: number,
  stored: Pick<StoredEvent, 'key' | 'fields' | 'trailer'>,
  texts: InternedTexts,
): void {
  const { key, fields } = stored
  const { regarding, related } = fields
  const { cluster, namespace } = key
  const { workload, node } = placeAndWorkload(stored)
  target[at + COLUMNS.workload] = objectNumber(workload)
  target[at + COLUMNS.pattern] = patternOf(fields.note)
  target[at + COLUMNS.node] = nodeNumber(node)
  target[at + COLUMNS.regardingUid] = uidNumber(regarding.uid)
  target[at + COLUMNS.regarding] = objectNumber(regarding)
  target[at + COLUMNS.relatedUid] = related.uid === '' ? 0 : uidNumber(related.uid)
  target[at + COLUMNS.related] = hasObject(related) ? objectNumber(related) : 0
  target[at + COLUMNS.object] = hashOfIdentity(cluster, fields)
  target[at + COLUMNS.type] = texts.take(fields.type)
  target[at + COLUMNS.reason] = texts.take(fields.reason)
  target[at + COLUMNS.kind] = texts.take(regarding.kind)
  target[at + COLUMNS.controller] = texts.take(fields.reportingController)
  target[at + COLUMNS.namespace] = texts.take(`${cluster}/${namespace}`)
  target[at + COLUMNS.source] = texts.take(fields.reportingController || fields.sourceComponent)
}

/** Every match has one of these numbers in this column, or no match has one. */
export interface Condition {
  readonly column: Column
  /** Each once. */
  readonly values: readonly number[]
  readonly isEqual: boolean
}

/** The same for the texts of the numbers, of which any number may match. */
export interface TextCondition {
  readonly column: Column
  readonly patterns: readonly ValuePattern[]
  readonly isEqual: boolean
}

export interface Conditions {
  readonly numbers: readonly Condition[]
  readonly texts: readonly TextCondition[]
}

const VALUE_COLUMNS: Readonly<Record<ValueField, Column>> = {
  'regarding.kind': COLUMNS.kind,
  reason: COLUMNS.reason,
  type: COLUMNS.type,
  reportingController: COLUMNS.controller,
  controller: COLUMNS.source,
}

/** Undefined when no row can match. */
export function conditionsOf(
  requires: Requires | undefined,
  texts: InternedTexts,
): Conditions | undefined {
  if (requires === undefined) return NO_CONDITIONS
  const { regarding, regardingUids, nodes, notePatterns, values = [] } = requires
  const found: Condition[] = []
  const prefixed: TextCondition[] = []
  if (regardingUids !== undefined) {
    found.push(equal(COLUMNS.regardingUid, regardingUids.map(uidNumber)))
  }
  if (regarding !== undefined) found.push(equal(COLUMNS.regarding, regarding.map(objectNumber)))
  if (nodes !== undefined) found.push(equal(COLUMNS.node, nodes.map(nodeNumber)))
  if (notePatterns !== undefined) found.push(equal(COLUMNS.pattern, notePatterns))
  for (const { field, operator, patterns } of values) {
    const column = VALUE_COLUMNS[field]
    const isEqual = operator === '='
    const exact = exactValues(patterns)
    if (exact === undefined) {
      prefixed.push({ column, patterns, isEqual })
      continue
    }
    const numbers = exact.map((text) => texts.find(text)).filter((number) => number !== undefined)
    if (numbers.length > 0) found.push({ ...equal(column, numbers), isEqual })
    else if (isEqual) return undefined
    if (field === 'reportingController' && isEqual && !exact.includes('')) {
      // This column has an index.
      found.push(equal(COLUMNS.source, numbers))
    }
  }
  return { numbers: found.sort(byStrictness), texts: prefixed.sort(byStrictness) }
}

/** Conditions that most rows do not meet come first. */
function byStrictness(one: Pick<Condition, 'isEqual'>, other: Pick<Condition, 'isEqual'>): number {
  return Number(other.isEqual) - Number(one.isEqual)
}

/** A match meets one condition of each of these lists. */
export function anyOfConditions(requires: Requires | undefined): readonly (readonly Condition[])[] {
  const { mentions, workloads } = requires ?? {}
  const hashes = workloads?.map(objectNumber)
  return [
    ...(mentions === undefined ? [] : [mentionConditions(mentions)]),
    ...(hashes === undefined
      ? []
      : [[equal(COLUMNS.workload, hashes), equal(COLUMNS.regarding, hashes)]]),
  ]
}

function mentionConditions(mentions: readonly Mention[]): readonly Condition[] {
  const uids: number[] = []
  const objects: number[] = []
  for (const mention of mentions) {
    if (mention.uid !== undefined) uids.push(uidNumber(mention.uid))
    else objects.push(objectNumber(mention))
  }
  return [
    ...(objects.length === 0
      ? []
      : [equal(COLUMNS.regarding, objects), equal(COLUMNS.related, objects)]),
    ...(uids.length === 0
      ? []
      : [equal(COLUMNS.regardingUid, uids), equal(COLUMNS.relatedUid, uids)]),
  ]
}

const NO_CONDITIONS: Conditions = { numbers: [], texts: [] }

function equal(column: Column, values: readonly number[]): Condition {
  return { column, values: [...new Set(values)], isEqual: true }
}

/** The number of a uid in the columns of uids. */
export function uidNumber(uid: string): number {
  return hash(uid)
}

function nodeNumber(name: string): number {
  return name === '' ? 0 : hash(name)
}

function hasObject({ kind, name }: ObjectReference): boolean {
  return kind !== '' || name !== ''
}

interface Named {
  readonly kind: string
  readonly name: string
}

/** The number of an object in the columns of objects and workloads. */
export function objectNumber({ kind, name }: Named): number {
  return hash(name, hash(kind.toLowerCase()))
}

function hashOfIdentity(cluster: string, { regarding }: EventFields): number {
  const { kind, namespace, name } = regarding
  return hash(name, hash(namespace, hash(kind, hash(cluster))))
}

/** Hashes the code units of the text. */
function hash(text: string, seed: number = HASH_BASIS): number {
  let value = seed
  for (let index = 0; index < text.length; index++) value = hashed(value, text.charCodeAt(index))
  return mixed(value)
}
