import type { InLane, Slices } from '../../lib/run-queue.ts'
import { throwIfAborted } from '../../storage/aborted-read.ts'
import type { EventMemory, ReaderKind, State } from '../memory/memory.ts'
import { Matcher } from './matcher.ts'
import type { Query } from './query.ts'
import { SourceWalk } from './slot-walks.ts'
import { type Source, scanCost, scanOf, sourcesOf } from './sources.ts'

/** Returns false to stop after this slot. */
export type Visit = (slot: number) => boolean

export type SearchOptions = Query & InLane

/**
 * Visits the slots of all matches in a state of `memory`, which may be the live one. The order is
 * unspecified. A long search is time-sliced and pins the state meanwhile.
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
  using slices = pinningSlices(memory, state, query)
  await walkSliced(memory, { ...query, source: scan ?? least, slices }, visit)
}

export function smallest(sources: readonly Source[]): Source | undefined {
  let best: Source | undefined
  for (const source of sources) if (best === undefined || source.size < best.size) best = source
  return best
}

interface WalkOptions extends SearchOptions {
  readonly source: Source
  readonly isReverse?: boolean | undefined
  /** Stops at the first batch boundary after this many slots. */
  readonly passMax?: number | undefined
}

/**
 * Slices that pin `state` before the first wait, and release it on disposal, or retain it if more pages
 * may follow.
 */
export function pinningSlices(
  memory: EventMemory,
  state: State,
  options: InLane & { readonly pages?: ReaderKind },
): Slices {
  const { lane, signal, pages } = options
  return lane.slices({ hold: () => memory.pin(state, pages), signal })
}

/**
 * Visits the matches of a source, in its order or in reverse, and returns how many slots it passed.
 * The caller shares the time slices between walks, so that one pin is enough.
 */
export async function walkSliced(
  memory: EventMemory,
  options: WalkOptions & { readonly slices: Slices },
  visit: Visit,
): Promise<number> {
  const { source, slices, signal } = options
  const matcher = new Matcher(memory, options, source.isInScope)
  if (matcher.isImpossible) return source.size
  const pause = async () => {
    await slices.next()
    throwIfAborted(signal)
  }
  const walk = new SourceWalk(source, options)
  let passed = 0
  for (let batch = walk.next(); batch !== undefined; batch = walk.next()) {
    if (isOver(slices, passed > 0)) await pause()
    for (const index of matcher.hitsIn(batch)) {
      const slot = batch.slots[index] ?? 0
      if (matcher.isMatch(slot) && !visit(slot)) return passed + index + 1
      if (isOver(slices, matcher.hasReadMuch())) await pause()
    }
    passed += batch.length
  }
  return passed
}

/** Synchronous: any await before the state is pinned would let writers change it. */
function isOver(slices: Slices, hasDoneMuch: boolean): boolean {
  return hasDoneMuch && slices.isOver()
}
