import { hasTexts, type RequiredText } from '../../storage/requires.ts'
import type { EventScope, StoredEvent } from '../../storage/storage.ts'
import { COLUMNS, type Condition, conditionsOf, mentionConditions } from '../memory/columns.ts'
import type { EventTable } from '../memory/event-table.ts'
import type { EventMemory } from '../memory/memory.ts'
import { Needle } from '../memory/plain-notes.ts'
import type { SlotBatch } from './slot-walks.ts'
import type { Query } from './sources.ts'

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
  readonly #mention: readonly [Condition, Condition] | undefined
  readonly #sinceMs: number
  readonly #untilMs: number
  readonly #homes: TextMarks | undefined
  readonly #texts: TextSearch | undefined
  readonly #matches: ((stored: StoredEvent) => boolean) | undefined
  #hits = new Uint32Array(0)
  #readBytes = 0

  /** `isInScope`: only slots of the scope are offered. */
  constructor({ table }: EventMemory, { scope, selector }: Query, isInScope: boolean) {
    const requires = selector?.requires
    const conditions = conditionsOf(requires, table.texts)
    const home = isInScope ? undefined : homeOf(table, scope)
    this.#table = table
    this.isImpossible = conditions === undefined || home === 'none'
    this.#conditions = [...(conditions ?? []), ...(typeof home === 'object' ? [home] : [])]
    this.#mention =
      requires?.mentions === undefined ? undefined : mentionConditions(requires.mentions)
    this.#sinceMs = requires?.sinceMs ?? Number.NEGATIVE_INFINITY
    this.#untilMs = requires?.untilMs ?? Number.POSITIVE_INFINITY
    const { cluster, namespace } = scope
    this.#homes =
      isInScope || namespace !== undefined || cluster === undefined
        ? undefined
        : new TextMarks(table, (text) => text.startsWith(`${cluster}/`))
    this.#texts = requires?.texts === undefined ? undefined : new TextSearch(table, requires.texts)
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
    if (except !== undefined) {
      count = this.#keep(slots, hits.subarray(0, count), { ...except, isEqual: false })
    }
    if (this.#mention !== undefined) {
      count = this.#keepMentions(slots, hits.subarray(0, count), this.#mention)
    }
    count = this.#keepInTime(slots, hits.subarray(0, count))
    if (this.#homes !== undefined)
      count = this.#keepHomes(slots, hits.subarray(0, count), this.#homes)
    return hits.subarray(0, count)
  }

  /** Decides about a slot that the columns do not rule out. */
  isMatch(slot: number): boolean {
    const table = this.#table
    if (this.#texts !== undefined) {
      this.#readBytes += table.noteBytesOf(slot)
      const found = this.#texts.find(slot)
      if (found === undefined) this.#readBytes += table.bytesOf(slot)
      if (!(found ?? this.#texts.isIn(table.read(slot)))) return false
    }
    if (this.#matches === undefined) return true
    this.#readBytes += table.bytesOf(slot)
    return this.#matches(table.read(slot))
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
    { column, value, isEqual }: Condition,
  ): number {
    const table = this.#table
    let kept = 0
    for (let at = 0; at < hits.length; at++) {
      const index = hits[at] ?? 0
      if ((table.valueOf(slots[index] ?? 0, column) === value) === isEqual) hits[kept++] = index
    }
    return kept
  }

  #keepMentions(
    slots: ArrayLike<number>,
    hits: Uint32Array,
    [regarding, related]: readonly [Condition, Condition],
  ): number {
    const table = this.#table
    let kept = 0
    for (let at = 0; at < hits.length; at++) {
      const index = hits[at] ?? 0
      const slot = slots[index] ?? 0
      const isMentioned =
        table.valueOf(slot, regarding.column) === regarding.value ||
        table.valueOf(slot, related.column) === related.value
      if (isMentioned) hits[kept++] = index
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

  #keepHomes(slots: ArrayLike<number>, hits: Uint32Array, homes: TextMarks): number {
    const table = this.#table
    let kept = 0
    for (let at = 0; at < hits.length; at++) {
      const index = hits[at] ?? 0
      if (homes.has(table.valueOf(slots[index] ?? 0, COLUMNS.namespace))) hits[kept++] = index
    }
    return kept
  }
}

/** The condition of one namespace; `none` when no event has it. */
function homeOf(
  table: EventTable,
  { cluster, namespace }: EventScope,
): Condition | 'none' | undefined {
  if (namespace === undefined) return undefined
  const value = table.texts.find(`${cluster}/${namespace}`)
  return value === undefined ? 'none' : { column: COLUMNS.namespace, value, isEqual: true }
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

/** Whether notes and reasons have texts. */
class TextSearch {
  readonly #table: EventTable
  readonly #texts: readonly RequiredText[]
  readonly #terms: readonly {
    readonly needle: Needle
    readonly reasons: TextMarks
    readonly isIn: boolean
  }[]

  constructor(table: EventTable, texts: readonly RequiredText[]) {
    this.#table = table
    this.#texts = texts
    this.#terms = texts.map(({ text, isIn }) => ({
      needle: new Needle(text),
      reasons: new TextMarks(table, (reason) => reason.toLowerCase().includes(text)),
      isIn,
    }))
  }

  /** Undefined when the event must be read to know it. */
  find(slot: number): boolean | undefined {
    const table = this.#table
    const reason = table.valueOf(slot, COLUMNS.reason)
    if (table.texts.isShortened(reason)) return undefined
    for (const { needle, reasons, isIn } of this.#terms) {
      const found = reasons.has(reason) || table.findInNote(slot, needle)
      if (found === undefined) return undefined
      if (found !== isIn) return false
    }
    return true
  }

  isIn({ fields }: StoredEvent): boolean {
    return hasTexts(this.#texts, fields)
  }
}
