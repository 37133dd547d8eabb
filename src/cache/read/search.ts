import { TimeSlicer } from '../../lib/yield.ts'
import { throwIfAborted } from '../aborted-read.ts'
import type { EventMemory, ReaderKind, State } from '../memory/memory.ts'
import { Matcher } from './matcher.ts'
import { SourceWalk } from './slot-walks.ts'
import { type Query, type Source, scanCost, scanOf, sourcesOf } from './sources.ts'

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
  const least = smallest(sourcesOf(memory, state, { ...query, order: 'key' }))
  if (least === undefined) return
  const cost = scanCost(state)
  const scan = cost !== undefined && cost < least.size ? scanOf(state) : undefined
  await walk(memory, state, { ...query, source: scan ?? least }, visit)
}

export function smallest(sources: readonly Source[]): Source | undefined {
  let best: Source | undefined
  for (const source of sources) if (best === undefined || source.size < best.size) best = source
  return best
}

export interface WalkOptions extends SearchOptions {
  readonly source: Source
  readonly isReverse?: boolean | undefined
  /** Ends after about this many slots. */
  readonly passMax?: number | undefined
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
  using slicer = pinningSlicer(memory, state)
  return await walkSliced(memory, { ...options, slicer }, visit)
}

/** Pins the state before the first yield, until it is disposed of, or for pages that may follow. */
export function pinningSlicer(memory: EventMemory, state: State, pages?: ReaderKind): TimeSlicer {
  return new TimeSlicer(() => memory.pin(state, pages))
}

/** The same in time slices that others share, so that one pin is enough. */
export async function walkSliced(
  memory: EventMemory,
  options: WalkOptions & { readonly slicer: TimeSlicer },
  visit: Visit,
): Promise<number> {
  const { source, slicer, signal } = options
  const matcher = new Matcher(memory, options, source.isInScope)
  if (matcher.isImpossible) return source.size
  const pause = async () => {
    await slicer.yield()
    throwIfAborted(signal)
  }
  const slots = new SourceWalk(source, options)
  let passed = 0
  for (let batch = slots.next(); batch !== undefined; batch = slots.next()) {
    // A short search ends within its first batch, and pins nothing.
    if (isOver(slicer, passed > 0)) await pause()
    for (const index of matcher.hitsIn(batch)) {
      const slot = batch.slots[index] ?? 0
      if (matcher.isMatch(slot) && !visit(slot)) return passed + index + 1
      if (isOver(slicer, matcher.hasReadMuch())) await pause()
    }
    passed += batch.length
  }
  return passed
}

/** Not a promise: whoever waits without a pin lets others change the memory. */
function isOver(slicer: TimeSlicer, hasDoneMuch: boolean): boolean {
  return hasDoneMuch && slicer.isOver()
}
