import { beginningOf } from '../../lib/text/shortened.ts'
import { TimeSlicer } from '../../lib/yield.ts'
import type { EventScope } from '../../storage/storage.ts'
import {
  type EventSummary,
  OTHER_GROUP,
  type SummaryGroup,
  type SummaryOptions,
} from '../../storage/summary.ts'
import { throwIfAborted } from '../aborted-read.ts'
import type { EventMemory, State } from '../memory/memory.ts'
import { search } from '../read/search.ts'
import { TopSlots } from '../read/top-slots.ts'
import { GroupCounts } from './group-counts.ts'
import { groupNumbers, textOf } from './group-ids.ts'

/** Characters. Notes of `core/v1` are as long as an event may be. */
const NOTE_MAX = 1_024

/**
 * Counts the events of a state by group. The state must be pinned. Events are read only where their
 * texts are shown, or decide the order.
 */
export async function summarize(
  memory: EventMemory,
  state: State,
  options: SummaryOptions & { readonly scope: EventScope },
): Promise<EventSummary> {
  const { scope, selector, signal, groupsMax } = options
  const counts = new GroupCounts(memory.table)
  const ids = groupNumbers(memory.table, options)
  await search(memory, state, { scope, selector, signal }, (slot) => {
    counts.add(ids.of(slot), slot)
    return true
  })
  const ranking = new Ranking(memory, { counts, other: ids.other }, options)
  const groups = await ranking.first(groupsMax)
  return {
    version: state.version,
    groups: await shownGroups(memory, counts, { groups, ranking, signal }),
    hidden: counts.size - groups.length,
  }
}

/** Puts the groups into their order. Values are read only where numbers do not decide. */
class Ranking {
  readonly #memory: EventMemory
  readonly #counts: GroupCounts
  readonly #other: number | undefined
  readonly #options: Pick<SummaryOptions, 'groupBy' | 'rankOf' | 'signal'>
  readonly #ranks: number[] = []
  readonly #values: (readonly string[])[] = []

  constructor(
    memory: EventMemory,
    { counts, other }: { readonly counts: GroupCounts; readonly other: number | undefined },
    options: Pick<SummaryOptions, 'groupBy' | 'rankOf' | 'signal'>,
  ) {
    this.#memory = memory
    this.#counts = counts
    this.#other = other
    this.#options = options
  }

  /** The first groups, in order. */
  async first(groupsMax: number): Promise<readonly number[]> {
    const { rankOf, signal } = this.#options
    const top = new TopSlots(groupsMax, (one, other) => this.#compare(one, other))
    using slicer = new TimeSlicer()
    for (let group = 0; group < this.#counts.size; group++) {
      this.#ranks.push(rankOf?.(this.valuesOf(group)) ?? 0)
      top.offer(group)
      if (!slicer.isOver()) continue
      await slicer.yield()
      throwIfAborted(signal)
    }
    return top.sorted()
  }

  valuesOf(group: number): readonly string[] {
    let values = this.#values[group]
    if (values === undefined) {
      values = group === this.#other ? [OTHER_GROUP] : this.#readValues(group)
      this.#values[group] = values
    }
    return values
  }

  #readValues(group: number): readonly string[] {
    const slot = this.#counts.samples[group] ?? 0
    return this.#options.groupBy.map((field) => textOf(this.#memory.table, slot, field))
  }

  #compare(one: number, other: number): number {
    const { occurrences } = this.#counts
    return (
      (this.#ranks[other] ?? 0) - (this.#ranks[one] ?? 0) ||
      (occurrences[other] ?? 0) - (occurrences[one] ?? 0) ||
      compareValues(this.valuesOf(one), this.valuesOf(other))
    )
  }
}

function compareValues(one: readonly string[], other: readonly string[]): number {
  for (const [index, value] of one.entries()) {
    const otherValue = other[index] ?? ''
    if (value !== otherValue) return value < otherValue ? -1 : 1
  }
  return 0
}

interface Shown {
  readonly groups: readonly number[]
  readonly ranking: Ranking
  readonly signal: AbortSignal
}

async function shownGroups(
  memory: EventMemory,
  counts: GroupCounts,
  { groups, ranking, signal }: Shown,
): Promise<readonly SummaryGroup[]> {
  const shown: SummaryGroup[] = []
  using slicer = new TimeSlicer()
  for (const group of groups) {
    shown.push({
      values: ranking.valuesOf(group),
      occurrences: counts.occurrences[group] ?? 0,
      warnings: counts.warnings[group] ?? 0,
      events: counts.events[group] ?? 0,
      objects: counts.objects[group] ?? 0,
      firstMs: counts.firstMs[group] || undefined,
      lastMs: counts.lastMs[group] || undefined,
      note: beginningOf(memory.table.read(counts.samples[group] ?? 0).fields.note, NOTE_MAX),
    })
    if (!slicer.isOver()) continue
    await slicer.yield()
    throwIfAborted(signal)
  }
  return shown
}
