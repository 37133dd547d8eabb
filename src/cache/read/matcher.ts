import { isAnyMatch, type ValuePattern } from '../../api/selectors/value-pattern.ts'
import { shownMax } from '../../lib/text/shortened.ts'
import { hasTexts, type RequiredText } from '../../storage/requires.ts'
import type { EventScope, StoredEvent } from '../../storage/storage.ts'
import {
  anyOfConditions,
  COLUMNS,
  type Column,
  type Condition,
  conditionsOf,
  type TextCondition,
} from '../memory/columns.ts'
import type { EventTable } from '../memory/event-table.ts'
import type { EventMemory } from '../memory/memory.ts'
import { type Found, Needle } from '../memory/plain-notes.ts'
import type { Query } from './query.ts'
import type { SlotBatch } from './slot-walks.ts'

/** The clock is read after this much of bodies was read. */
const clockReadBytes = 64 * 1024
const unknown = 0
const yes = 1
const no = 2

/** Decides from the columns first, and reads the event only if these do not decide. */
export class Matcher {
  /** Nothing can match. */
  readonly isImpossible: boolean
  readonly #table: EventTable
  readonly #conditions: readonly Condition[]
  readonly #marked: readonly MarkedColumn[]
  readonly #anyOf: readonly (readonly Condition[])[]
  readonly #sinceMs: number
  readonly #untilMs: number
  readonly #texts: TextSearch | undefined
  readonly #fragments: readonly (readonly Buffer[])[]
  readonly #matches: ((stored: StoredEvent) => boolean) | undefined
  #hits = new Uint32Array(0)
  #readBytes = 0

  /** `isInScope`: only slots of the scope are offered. */
  constructor({ table }: EventMemory, { scope, selector }: Query, isInScope: boolean) {
    const requires = selector?.requires
    const conditions = conditionsOf(requires, table.texts)
    const home = isInScope ? ANYWHERE : homeOf(table, scope)
    this.#table = table
    this.isImpossible = conditions === undefined || home === undefined
    this.#conditions = [...(conditions?.numbers ?? []), ...(home?.conditions ?? [])]
    this.#marked = [
      ...markedOf(table, conditions?.texts ?? []),
      ...namespaceMarks(table, requires?.namespaces),
      ...(home?.marked ?? []),
    ]
    this.#anyOf = anyOfConditions(requires)
    this.#sinceMs = requires?.sinceMs ?? Number.NEGATIVE_INFINITY
    this.#untilMs = requires?.untilMs ?? Number.POSITIVE_INFINITY
    this.#texts = requires?.texts === undefined ? undefined : new TextSearch(table, requires.texts)
    this.#fragments = (requires?.fragments ?? []).map((texts) =>
      texts.map((text) => Buffer.from(text)),
    )
    this.#matches =
      selector === undefined || requires?.isAll === true
        ? undefined
        : (stored) => selector.matches(stored)
  }

  /**
   * The indexes of the slots that the columns do not rule out. Column by column: each loop does one
   * thing for many slots. Valid until the next call.
   */
  hitsIn({ slots, length, except }: SlotBatch): Uint32Array {
    if (this.#hits.length < length) this.#hits = new Uint32Array(length)
    const hits = this.#hits
    for (let index = 0; index < length; index++) hits[index] = index
    let count = length
    for (const condition of this.#conditions) {
      count = this.#keep(slots, hits.subarray(0, count), condition)
    }
    for (const condition of except ?? []) {
      count = this.#keep(slots, hits.subarray(0, count), { ...condition, isEqual: false })
    }
    for (const anyOf of this.#anyOf) {
      count = this.#keepAnyOf(slots, hits.subarray(0, count), anyOf)
    }
    count = this.#keepInTime(slots, hits.subarray(0, count))
    for (const marked of this.#marked) {
      count = this.#keepMarked(slots, hits.subarray(0, count), marked)
    }
    return hits.subarray(0, count)
  }

  /** Decides about a slot that the columns do not rule out. */
  isMatch(slot: number): boolean {
    const table = this.#table
    if (this.#texts !== undefined) {
      this.#readBytes += this.#texts.bytesOf(slot)
      const found = this.#texts.find(slot)
      if (found === undefined) this.#readBytes += table.bytesOf(slot)
      if (!(found ?? this.#texts.isIn(table.read(slot)))) return false
    }
    if (this.#matches === undefined) return true
    this.#readBytes += table.bytesOf(slot)
    const stored = table.read(slot)
    return hasFragments(stored.body, this.#fragments) && this.#matches(stored)
  }

  /** A few large events take as long as many small ones. Begins to count anew when it is true. */
  hasReadMuch(): boolean {
    if (this.#readBytes < clockReadBytes) return false
    this.#readBytes = 0
    return true
  }

  #keep(
    slots: ArrayLike<number>,
    hits: Uint32Array,
    { column, values, isEqual }: Condition,
  ): number {
    const table = this.#table
    let kept = 0
    if (values.length > 1) {
      for (let at = 0; at < hits.length; at++) {
        const index = hits[at] ?? 0
        const own = table.valueOf(slots[index] ?? 0, column)
        if (values.includes(own) === isEqual) hits[kept++] = index
      }
      return kept
    }
    const [value] = values
    for (let at = 0; at < hits.length; at++) {
      const index = hits[at] ?? 0
      if ((table.valueOf(slots[index] ?? 0, column) === value) === isEqual) hits[kept++] = index
    }
    return kept
  }

  #keepAnyOf(slots: ArrayLike<number>, hits: Uint32Array, anyOf: readonly Condition[]): number {
    const table = this.#table
    let kept = 0
    for (let at = 0; at < hits.length; at++) {
      const index = hits[at] ?? 0
      const slot = slots[index] ?? 0
      for (const { column, values } of anyOf) {
        if (!values.includes(table.valueOf(slot, column))) continue
        hits[kept++] = index
        break
      }
    }
    return kept
  }

  #keepInTime(slots: ArrayLike<number>, hits: Uint32Array): number {
    const table = this.#table
    const sinceMs = this.#sinceMs
    const untilMs = this.#untilMs
    if (sinceMs === Number.NEGATIVE_INFINITY && untilMs === Number.POSITIVE_INFINITY) {
      return hits.length
    }
    let kept = 0
    for (let at = 0; at < hits.length; at++) {
      const index = hits[at] ?? 0
      const seenMs = table.lastSeenOf(slots[index] ?? 0)
      if (seenMs >= sinceMs && seenMs < untilMs) hits[kept++] = index
    }
    return kept
  }

  #keepMarked(
    slots: ArrayLike<number>,
    hits: Uint32Array,
    { column, marks }: MarkedColumn,
  ): number {
    const table = this.#table
    let kept = 0
    for (let at = 0; at < hits.length; at++) {
      const index = hits[at] ?? 0
      if (marks.has(table.valueOf(slots[index] ?? 0, column))) hits[kept++] = index
    }
    return kept
  }
}

interface MarkedColumn {
  readonly column: Column
  readonly marks: TextMarks
}

/** The numbers and texts of the column of namespaces. */
interface Home {
  readonly conditions: readonly Condition[]
  readonly marked: readonly MarkedColumn[]
}

const ANYWHERE: Home = { conditions: [], marked: [] }

/** What events of the scope have; undefined when there are none. */
function homeOf(table: EventTable, { cluster, namespace }: EventScope): Home | undefined {
  const column = COLUMNS.namespace
  if (cluster === undefined) return ANYWHERE
  if (namespace === undefined) {
    const marks = new TextMarks(table, (text) => text.startsWith(`${cluster}/`))
    return { conditions: [], marked: [{ column, marks }] }
  }
  const value = table.texts.find(`${cluster}/${namespace}`)
  if (value === undefined) return undefined
  return { conditions: [{ column, values: [value], isEqual: true }], marked: [] }
}

function markedOf(
  table: EventTable,
  conditions: readonly TextCondition[],
): readonly MarkedColumn[] {
  return conditions.map(({ column, patterns, isEqual }) => ({
    column,
    marks: new TextMarks(table, (text) => isAnyMatch(patterns, text) === isEqual),
  }))
}

/** Rules out other namespaces, in whichever cluster they are. */
function namespaceMarks(
  table: EventTable,
  patterns: readonly ValuePattern[] | undefined,
): readonly MarkedColumn[] {
  if (patterns === undefined) return []
  const marks = new TextMarks(
    table,
    (text) => text.length > shownMax || isAnyMatch(patterns, text.slice(text.indexOf('/') + 1)),
  )
  return [{ column: COLUMNS.namespace, marks }]
}

/** Finding a text in a body takes a tenth of the time of parsing it. */
function hasFragments(body: Buffer, fragments: readonly (readonly Buffer[])[]): boolean {
  for (const anyOf of fragments) if (!hasAnyOf(body, anyOf)) return false
  return true
}

function hasAnyOf(body: Buffer, texts: readonly Buffer[]): boolean {
  for (const text of texts) if (body.includes(text)) return true
  return false
}

/** Tests each interned text once. Texts that are interned later are not asked for. */
class TextMarks {
  readonly #table: EventTable
  readonly #test: (text: string) => boolean
  readonly #marks: Uint8Array

  constructor(table: EventTable, test: (text: string) => boolean) {
    this.#table = table
    this.#test = test
    this.#marks = new Uint8Array(table.texts.span)
  }

  has(id: number): boolean {
    const mark = this.#marks[id] ?? unknown
    if (mark !== unknown) return mark === yes
    const has = this.#test(this.#table.texts.textOf(id))
    this.#marks[id] = has ? yes : no
    return has
  }
}

/** Whether events have texts. */
class TextSearch {
  readonly #table: EventTable
  readonly #required: readonly RequiredText[]
  readonly #terms: readonly SearchTerm[]
  readonly #isAnywhere: boolean

  constructor(table: EventTable, required: readonly RequiredText[]) {
    this.#table = table
    this.#required = required
    this.#isAnywhere = required.some(({ isAnywhere }) => isAnywhere)
    this.#terms = required.map(({ texts, isIn, isAnywhere }) => {
      const words = new TextMarks(table, (word) => {
        const lower = word.toLowerCase()
        return texts.some((text) => lower.includes(text))
      })
      return { needles: texts.map((text) => new Needle(text)), words, isIn, isAnywhere }
    })
  }

  /** How many bytes a search for the texts reads. */
  bytesOf(slot: number): number {
    return this.#isAnywhere ? this.#table.bytesOf(slot) : this.#table.noteBytesOf(slot)
  }

  /** Undefined when the event must be read to know it. */
  find(slot: number): boolean | undefined {
    const table = this.#table
    const reason = table.valueOf(slot, COLUMNS.reason)
    if (table.texts.isShortened(reason)) return undefined
    for (const term of this.#terms) {
      const { needles, words, isIn, isAnywhere } = term
      const found =
        words.has(reason) ||
        (isAnywhere ? this.#findAnywhere(slot, term) : this.#findInNote(slot, needles))
      if (found === undefined) return undefined
      if (found !== isIn) return false
    }
    return true
  }

  isIn(stored: StoredEvent): boolean {
    return hasTexts(this.#required, stored)
  }

  #findInNote(slot: number, needles: readonly Needle[]): Found {
    let isKnown = true
    for (const needle of needles) {
      const found = this.#table.findInNote(slot, needle)
      if (found === true) return true
      isKnown &&= found !== undefined
    }
    return isKnown ? false : undefined
  }

  /** A text that is in the body and not in the note may be in a name, or in an annotation. */
  #findAnywhere(slot: number, { needles, words }: SearchTerm): Found {
    const table = this.#table
    const kind = table.valueOf(slot, COLUMNS.kind)
    if (table.texts.isShortened(kind)) return undefined
    if (words.has(kind)) return true
    if (this.#isNowhere(slot, needles)) return false
    return this.#findInNote(slot, needles) === true ? true : undefined
  }

  #isNowhere(slot: number, needles: readonly Needle[]): boolean {
    for (const needle of needles) {
      if (this.#table.findInBody(slot, needle) !== false) return false
    }
    return true
  }
}

interface SearchTerm {
  readonly needles: readonly Needle[]
  /** Reasons and kinds that contain one of the texts. */
  readonly words: TextMarks
  readonly isIn: boolean
  readonly isAnywhere: boolean
}
