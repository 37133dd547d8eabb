import { workloadOf } from '../../incidents/marks.ts'
import type { InLane } from '../../lib/run-queue.ts'
import { beginningOf } from '../../lib/text/shortened.ts'
import { throwIfAborted } from '../../storage/aborted-read.ts'
import type { EventScope } from '../../storage/storage.ts'
import {
  type EventSummary,
  NOTE_MAX,
  type SummaryGroup,
  type SummaryOptions,
  type TimeWindow,
} from '../../storage/summary.ts'
import type { EventTable } from '../memory/event-table.ts'
import type { EventMemory, State } from '../memory/memory.ts'
import { GroupCounts } from './group-counts.ts'
import { Groups } from './groups.ts'
import { ObjectNumbers } from './object-numbers.ts'
import { SlotList } from './slot-list.ts'
import { type TopGroup, topGroups } from './top-groups.ts'

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
  const { signal, lane, groupBy, groupsMax, rankOf, order, window, newSince } = options
  const { table } = memory
  const list = await SlotList.of(memory, state, options)
  const objects = new ObjectNumbers(table)
  const hasBegins = order === 'newest'
  const groups = await Groups.of(table, list, { groupBy, objects, hasBegins, signal, lane })
  const isShown = newSince && ((group: number) => isNew(groups, group, { window, newSince }))
  const ordered = { max: groupsMax, rankOf, order, isShown, signal, lane }
  const { top, hidden } = await topGroups(groups, ordered)
  const chosen = top.map(({ group }) => group)
  const counts = await GroupCounts.of(table, list, { groups, chosen, objects, signal, lane })
  return {
    version: state.version,
    groups: await shownGroups(table, { ...options, top, groups, counts }),
    hidden,
  }
}

/** A group at less than this part of its present rate was not there before. */
const NEW_PART = 0.1

function isNew(
  groups: Groups,
  group: number,
  { window, newSince }: Pick<SummaryOptions, 'window' | 'newSince'>,
): boolean {
  const now = groups.occurrencesOf(group)
  const rateNow = now / lengthOf(window)
  return now > 0 && groups.countBefore(group) / lengthOf(newSince) < rateNow * NEW_PART
}

function lengthOf({ sinceMs = 0, untilMs = 0 }: TimeWindow = {}): number {
  return untilMs - sinceMs
}

interface Shown extends InLane, Pick<SummaryOptions, 'groupBy' | 'newSince'> {
  readonly top: readonly TopGroup[]
  readonly groups: Groups
  readonly counts: GroupCounts
}

async function shownGroups(
  table: EventTable,
  { top, groups, counts, groupBy, newSince, signal, lane }: Shown,
): Promise<readonly SummaryGroup[]> {
  const shown: SummaryGroup[] = []
  const hasWorkload = groupBy.includes('workload')
  using slices = lane.slices({ signal })
  for (const [row, { group, values }] of top.entries()) {
    const sample = table.read(counts.samples[row] ?? 0)
    shown.push({
      values,
      ...(hasWorkload && { workloadRule: workloadOf(sample).rule }),
      occurrences: groups.occurrencesOf(group),
      ...(newSince !== undefined && { before: groups.countBefore(group) }),
      isEstimated: counts.estimated[row] === 1,
      warnings: counts.warnings[row] ?? 0,
      events: counts.events[row] ?? 0,
      objects: counts.objects[row] ?? 0,
      firstMs: counts.firstMs[row] || undefined,
      lastMs: counts.lastMs[row] || undefined,
      note: beginningOf(sample.fields.note, NOTE_MAX),
    })
    if (!slices.isOver()) continue
    await slices.next()
    throwIfAborted(signal)
  }
  return shown
}
