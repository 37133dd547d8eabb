import type { InLane } from '../../lib/run-queue.ts'
import { beginningOf } from '../../lib/text/shortened.ts'
import { throwIfAborted } from '../../storage/aborted-read.ts'
import type { EventScope } from '../../storage/storage.ts'
import type { EventSummary, SummaryGroup, SummaryOptions } from '../../storage/summary.ts'
import type { EventTable } from '../memory/event-table.ts'
import type { EventMemory, State } from '../memory/memory.ts'
import { GroupCounts } from './group-counts.ts'
import { Groups } from './groups.ts'
import { ObjectNumbers } from './object-numbers.ts'
import { SlotList } from './slot-list.ts'
import { type TopGroup, topGroups } from './top-groups.ts'

/** In characters. A note of `core/v1` can be as long as an event. */
const NOTE_MAX = 1_024

/**
 * Counts the events of a state by group. The state must be pinned. First only the occurrences of all
 * groups are counted, which decide which groups are shown; then the rest, of these alone. Events are
 * read only where their texts are shown, or decide the order.
 */
export async function summarize(
  memory: EventMemory,
  state: State,
  options: SummaryOptions & InLane & { readonly scope: EventScope },
): Promise<EventSummary> {
  const { scope, selector, signal, lane, groupBy, groupsMax, rankOf } = options
  const { table } = memory
  const list = await SlotList.of(memory, state, { scope, selector, signal, lane })
  const objects = new ObjectNumbers(table)
  const groups = await Groups.of(table, list, { groupBy, objects, signal, lane })
  const top = await topGroups(groups, { max: groupsMax, rankOf, signal, lane })
  const chosen = top.map(({ group }) => group)
  const counts = await GroupCounts.of(table, list, { groups, chosen, objects, signal, lane })
  return {
    version: state.version,
    groups: await shownGroups(table, { top, groups, counts, signal, lane }),
    hidden: groups.size - top.length,
  }
}

interface Shown extends InLane {
  readonly top: readonly TopGroup[]
  readonly groups: Groups
  readonly counts: GroupCounts
}

async function shownGroups(
  table: EventTable,
  { top, groups, counts, signal, lane }: Shown,
): Promise<readonly SummaryGroup[]> {
  const shown: SummaryGroup[] = []
  using slices = lane.slices({ signal })
  for (const [row, { group, values }] of top.entries()) {
    shown.push({
      values,
      occurrences: groups.occurrencesOf(group),
      warnings: counts.warnings[row] ?? 0,
      events: counts.events[row] ?? 0,
      objects: counts.objects[row] ?? 0,
      firstMs: counts.firstMs[row] || undefined,
      lastMs: counts.lastMs[row] || undefined,
      note: beginningOf(table.read(counts.samples[row] ?? 0).fields.note, NOTE_MAX),
    })
    if (!slices.isOver()) continue
    await slices.next()
    throwIfAborted(signal)
  }
  return shown
}
