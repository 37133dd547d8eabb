import type { EventScope, ListStretch, RunsOptions, RunsPage } from '../../storage/storage.ts'
import type { EventMemory } from '../memory/memory.ts'
import { orderRange } from '../memory/order-key.ts'
import { rangeByKey } from './sources.ts'

/**
 * Divides a list into the runs of a snapshot of `memory`. Only these are immutable, and so usable as
 * cache keys: runs of the present may still be changed in place.
 */
export function runsOf(
  memory: EventMemory,
  scope: EventScope,
  { at, after, limit }: RunsOptions,
): RunsPage | undefined {
  const state = memory.snapshotAt(at)
  if (state === undefined) return undefined
  const { view, from, to } = rangeByKey(memory, state, orderRange(scope, after))
  const stretches: ListStretch[] = []
  let index = from
  while (index < to && index - from < limit) {
    const { run, offset } = view.runAt(index)
    const { length } = run.slots
    const end = Math.min(length, offset + to - index)
    const count = end - offset
    const last = memory.table.read(run.slots[end - 1] ?? 0)
    stretches.push({ run: count === length ? run : undefined, count, last })
    index += count
  }
  return { stretches, more: index < to }
}
