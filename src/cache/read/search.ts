import { TimeSlicer } from '../../lib/yield.ts'
import type { EventScope, StoredEvent } from '../../storage/storage.ts'
import { throwIfAborted } from '../aborted-read.ts'
import { COLUMNS, type Condition, conditionsOf } from '../memory/columns.ts'
import type { EventMemory, State } from '../memory/memory.ts'
import { orderRange, viewOf } from '../memory/order-key.ts'
import { type Query, type Range, type Source, sourcesOf } from './sources.ts'

/** The clock is read after selectors have parsed this much of bodies. */
const clockReadBytes = 64 * 1024

/** Returns false to end the search with this slot. */
export type Visit = (slot: number) => boolean

export interface SearchOptions extends Query {
  readonly signal: AbortSignal
}

/**
 * Visits the slots of all matches in a state of `memory`, which may be the present, in no promised
 * order. A long search is time-sliced and pins the state meanwhile.
 */
export async function search(
  memory: EventMemory,
  state: State,
  query: SearchOptions,
  visit: Visit,
): Promise<void> {
  const source = smallest(sourcesOf(memory, state, { ...query, order: 'key' }))
  if (source !== undefined) await walk(memory, state, { ...query, source }, visit)
}

export function smallest(sources: readonly Source[]): Source | undefined {
  let best: Source | undefined
  for (const source of sources) if (best === undefined || source.size < best.size) best = source
  return best
}

export interface WalkOptions extends SearchOptions {
  readonly source: Source
  readonly isReverse?: boolean | undefined
}

/**
 * Visits the matches of a source, in its order or in reverse. Returns how many slots of the source
 * it passed.
 */
export async function walk(
  memory: EventMemory,
  state: State,
  options: WalkOptions,
  visit: Visit,
): Promise<number> {
  const { source, signal, isReverse = false } = options
  const matcher = new Matcher(memory, options, source.isInScope)
  if (matcher.isImpossible) return source.size
  using slicer = new TimeSlicer(() => memory.pin(state))
  let passed = 0
  for (const range of source.ranges) {
    const slots = new RangeWalk(range, isReverse)
    for (let index = 0; index < slots.length; index++) {
      const slot = slots.at(index)
      passed++
      if (matcher.isMatch(slot, range.except) && !visit(slot)) return passed
      if (!(slots.isAtRunEnd || matcher.hasReadMuch()) || !slicer.isOver()) continue
      await slicer.yield()
      throwIfAborted(signal)
    }
  }
  return passed
}

/** The slots of a range, run by run, forwards or backwards. */
class RangeWalk {
  readonly length: number
  /** The slot returned last was the last of its run. */
  isAtRunEnd = false
  readonly #range: Range
  readonly #isReverse: boolean
  #slots: readonly number[] = []
  #at = 0

  constructor(range: Range, isReverse: boolean) {
    this.length = Math.max(0, range.to - range.from)
    this.#range = range
    this.#isReverse = isReverse
  }

  /** Must be called with 0, 1, 2 and so on. */
  at(index: number): number {
    if (index === 0 || this.isAtRunEnd) {
      const { view, from, to } = this.#range
      const { run, offset } = view.runAt(this.#isReverse ? to - 1 - index : from + index)
      this.#slots = run.slots
      this.#at = offset
    } else this.#at += this.#isReverse ? -1 : 1
    this.isAtRunEnd = this.#at === (this.#isReverse ? 0 : this.#slots.length - 1)
    return this.#slots[this.#at] ?? 0
  }
}

/** Decides from the columns first, and reads the event only if these do not decide. */
class Matcher {
  /** Nothing can match. */
  readonly isImpossible: boolean
  readonly #memory: EventMemory
  readonly #conditions: readonly Condition[]
  readonly #sinceMs: number
  readonly #untilMs: number
  readonly #isInScope: ((slot: number) => boolean) | undefined
  readonly #matches: ((stored: StoredEvent) => boolean) | undefined
  #readBytes = 0

  constructor(memory: EventMemory, { scope, selector }: Query, isInScope: boolean) {
    const { texts } = memory.table
    const requires = selector?.requires
    const conditions = conditionsOf(requires, texts)
    this.#memory = memory
    this.#sinceMs = requires?.sinceMs ?? Number.NEGATIVE_INFINITY
    this.#untilMs = requires?.untilMs ?? Number.POSITIVE_INFINITY
    const { cluster, namespace } = scope
    const home =
      isInScope || namespace === undefined ? undefined : texts.find(`${cluster}/${namespace}`)
    const isEmpty = !isInScope && namespace !== undefined && home === undefined
    this.isImpossible = conditions === undefined || isEmpty
    this.#conditions = [
      ...(conditions ?? []),
      ...(home === undefined ? [] : [{ column: COLUMNS.namespace, value: home, isEqual: true }]),
    ]
    this.#isInScope = isInScope || home !== undefined ? undefined : scopeTest(memory, scope)
    this.#matches =
      selector === undefined || requires?.isAll === true
        ? undefined
        : (stored) => selector.matches(stored)
  }

  isMatch(slot: number, except: Condition | undefined): boolean {
    const { table } = this.#memory
    if (except !== undefined && table.valueOf(slot, except.column) === except.value) return false
    for (const { column, value, isEqual } of this.#conditions) {
      if ((table.valueOf(slot, column) === value) !== isEqual) return false
    }
    const seenMs = table.lastSeenOf(slot)
    if (seenMs < this.#sinceMs || seenMs >= this.#untilMs) return false
    if (this.#isInScope?.(slot) === false) return false
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
}

function scopeTest({ table }: EventMemory, scope: EventScope): (slot: number) => boolean {
  const { start, end } = orderRange(scope, undefined)
  const first = viewOf(start)
  const behind = end === undefined ? undefined : viewOf(end)
  return (slot) =>
    table.compareKey(slot, first) >= 0 &&
    (behind === undefined || table.compareKey(slot, behind) < 0)
}
