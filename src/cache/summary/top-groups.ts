import type { InLane } from '../../lib/run-queue.ts'
import { throwIfAborted } from '../../storage/aborted-read.ts'
import type { SummaryOptions } from '../../storage/summary.ts'
import { TopSlots } from '../read/top-slots.ts'
import type { Groups } from './groups.ts'

export interface TopGroup {
  readonly group: number
  readonly values: readonly string[]
}

export interface TopOptions extends Pick<SummaryOptions, 'rankOf'>, InLane {
  readonly max: number
}

/**
 * Returns the first groups by descending rank, then by descending occurrences, then by values. Texts
 * are held only for groups that may be among the first.
 */
export async function topGroups(groups: Groups, options: TopOptions): Promise<readonly TopGroup[]> {
  const { max, signal, lane } = options
  if (max === 0) return []
  using slices = lane.slices({ signal })
  const ranks = new Float64Array(options.rankOf === undefined ? 0 : groups.size)
  const compare = (one: number, other: number) =>
    (ranks[other] ?? 0) - (ranks[one] ?? 0) ||
    groups.occurrencesOf(other) - groups.occurrencesOf(one)
  const each = async (visit: (group: number) => void) => {
    for (let group = 0; group < groups.size; group++) {
      visit(group)
      if (!slices.isOver()) continue
      await slices.next()
      throwIfAborted(signal)
    }
  }
  const top = new TopSlots(max, compare)
  await each((group) => {
    if (options.rankOf !== undefined) ranks[group] = options.rankOf(groups.valuesOf(group))
    top.offer(group)
  })
  const last = top.sorted().at(-1)
  if (last === undefined) return []
  const best: TopGroup[] = []
  // Values decide which of the groups that are tied with the last one are returned.
  const tied = new FirstByValues()
  const tiedMax = max - top.sorted().filter((group) => compare(group, last) < 0).length
  await each((group) => {
    const side = compare(group, last)
    if (side < 0) best.push({ group, values: groups.valuesOf(group) })
    else if (side === 0) tied.offer({ group, values: groups.valuesOf(group) }, tiedMax)
  })
  best.sort((one, other) => compare(one.group, other.group) || compareValues(one, other))
  return [...best, ...tied.groups]
}

/** Collects the first groups by value, in order. */
class FirstByValues {
  readonly groups: TopGroup[] = []

  offer(group: TopGroup, max: number): void {
    const last = this.groups.at(-1)
    if (this.groups.length === max && last !== undefined && compareValues(group, last) >= 0) return
    let low = 0
    let high = this.groups.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const there = this.groups[middle]
      if (there !== undefined && compareValues(there, group) < 0) low = middle + 1
      else high = middle
    }
    this.groups.splice(low, 0, group)
    if (this.groups.length > max) this.groups.pop()
  }
}

function compareValues({ values: one }: TopGroup, { values: other }: TopGroup): number {
  for (const [index, value] of one.entries()) {
    const otherValue = other[index] ?? ''
    if (value !== otherValue) return value < otherValue ? -1 : 1
  }
  return 0
}
