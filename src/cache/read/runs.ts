import type { EventScope, ListPart, RunsOptions, RunsPage } from '../../storage/storage.ts'
import type { EventMemory } from '../memory/memory.ts'
import { orderRange, viewOf } from '../memory/order-key.ts'
import type { SlotRun } from '../memory/tree-view.ts'

/**
 * Reads a page by runs from a kept state of `memory`. Only runs of a kept state are immutable, and
 * so usable as cache keys: those of the present may still be changed in place.
 */
export function readRuns(
  memory: EventMemory,
  scope: EventScope,
  { at, after, limit, recall }: RunsOptions,
): RunsPage | undefined {
  const view = memory.keptAt(at)?.byKey
  if (view === undefined) return undefined
  const { table } = memory
  const rank = (key: Buffer): number => {
    const bytes = viewOf(key)
    return view.rank((slot) => table.compareKey(slot, bytes))
  }
  const range = orderRange(scope, after)
  const from = rank(range.start)
  const to = range.end === undefined ? view.size : rank(range.end)
  const parts: ListPart[] = []
  let index = from
  let last: number | undefined
  while (index < to && index - from < limit) {
    const { run, offset } = view.runAt(index)
    const { length } = run.slots
    const end = Math.min(length, offset + to - index)
    const known = end - offset === length ? recall(run) : undefined
    if (known === undefined) parts.push(partOf(memory, run, { offset, end }))
    else parts.push({ known, count: length })
    last = run.slots[end - 1]
    index += end - offset
  }
  return {
    parts,
    last: last === undefined ? undefined : table.read(last).key,
    more: index < to,
  }
}

function partOf(
  { table }: EventMemory,
  run: SlotRun,
  { offset, end }: { readonly offset: number; readonly end: number },
): ListPart {
  const isWhole = end - offset === run.slots.length
  const slots = isWhole ? run.slots : run.slots.slice(offset, end)
  const events = slots.map((slot) => table.read(slot))
  return { run: isWhole ? run : undefined, events, count: events.length }
}
