import { beginningOf } from '../../lib/text/shortened.ts'
import { TimeSlicer } from '../../lib/yield.ts'
import type { EventScope } from '../../storage/storage.ts'
import type { EventSummary, SummaryGroup, SummaryOptions } from '../../storage/summary.ts'
import { throwIfAborted } from '../aborted-read.ts'
import type { EventMemory, State } from '../memory/memory.ts'
import { search } from '../read/search.ts'
import { GroupCounts } from './group-counts.ts'
import { GroupIds, textOf } from './group-ids.ts'

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
  const { scope, selector, groupBy, signal, groupsMax } = options
  const counts = new GroupCounts(memory.table)
  const ids = new GroupIds(memory.table, groupBy)
  await search(memory, state, { scope, selector, signal }, (slot) => {
    counts.add(ids.of(slot), slot)
    return true
  })
  const ranked = await new Ranking(memory, counts, options).first(groupsMax)
  return {
    version: state.version,
    groups: await shownGroups(memory, counts, { ranked, signal }),
    hidden: counts.size - ranked.length,
  }
}

interface Ranked {
  readonly group: number
  readonly rank: number
  readonly occurrences: number
  values: readonly string[]
}

/** Sorts the groups. */
class Ranking {
  readonly #memory: EventMemory
  readonly #counts: GroupCounts
  readonly #options: Pick<SummaryOptions, 'groupBy' | 'rankOf' | 'signal'>

  constructor(
    memory: EventMemory,
    counts: GroupCounts,
    options: Pick<SummaryOptions, 'groupBy' | 'rankOf' | 'signal'>,
  ) {
    this.#memory = memory
    this.#counts = counts
    this.#options = options
  }

  /** The first groups. Values are needed only of these, and of groups that tie with the last one. */
  async first(groupsMax: number): Promise<readonly Ranked[]> {
    const all = await this.#all()
    all.sort(byNumbers)
    const last = all[groupsMax - 1]
    const candidates = last === undefined ? all : all.filter((one) => byNumbers(one, last) <= 0)
    using slicer = new TimeSlicer()
    for (const one of candidates) {
      one.values = this.#valuesOf(one.group)
      await this.#pause(slicer)
    }
    return candidates
      .sort((one, other) => byNumbers(one, other) || byValues(one, other))
      .slice(0, groupsMax)
  }

  async #all(): Promise<Ranked[]> {
    const { rankOf } = this.#options
    const all: Ranked[] = []
    using slicer = new TimeSlicer()
    for (let group = 0; group < this.#counts.size; group++) {
      const rank = rankOf === undefined ? 0 : rankOf(this.#valuesOf(group))
      all.push({ group, rank, occurrences: this.#counts.occurrences[group] ?? 0, values: [] })
      await this.#pause(slicer)
    }
    return all
  }

  #valuesOf(group: number): readonly string[] {
    const slot = this.#counts.samples[group] ?? 0
    return this.#options.groupBy.map((field) => textOf(this.#memory.table, slot, field))
  }

  async #pause(slicer: TimeSlicer): Promise<void> {
    if (!slicer.isOver()) return
    await slicer.yield()
    throwIfAborted(this.#options.signal)
  }
}

function byNumbers(one: Ranked, other: Ranked): number {
  return other.rank - one.rank || other.occurrences - one.occurrences
}

function byValues(one: Ranked, other: Ranked): number {
  for (const [index, value] of one.values.entries()) {
    const otherValue = other.values[index] ?? ''
    if (value !== otherValue) return value < otherValue ? -1 : 1
  }
  return 0
}

async function shownGroups(
  memory: EventMemory,
  counts: GroupCounts,
  { ranked, signal }: { readonly ranked: readonly Ranked[]; readonly signal: AbortSignal },
): Promise<readonly SummaryGroup[]> {
  const groups: SummaryGroup[] = []
  using slicer = new TimeSlicer()
  for (const { group, values, occurrences } of ranked) {
    groups.push({
      values,
      occurrences,
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
  return groups
}
