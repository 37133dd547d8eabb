import type { InLane } from '../../lib/run-queue.ts'
import { throwIfAborted } from '../../storage/aborted-read.ts'
import type { SummaryOptions } from '../../storage/summary.ts'
import { TopSlots } from '../read/top-slots.ts'
import type { Groups } from './groups.ts'

export interface TopGroup {
  readonly group: number
  readonly values: readonly string[]
}

export interface TopOptions extends Pick<SummaryOptions, 'rankOf' | 'order'>, InLane {
  readonly max: number
  /** Default: all groups. */
  readonly isShown?: ((group: number) => boolean) | undefined
}

export interface TopGroups {
  readonly top: readonly TopGroup[]
  /** The number of other groups that could be shown. */
  readonly hidden: number
}

/**
 * Returns the first groups by descending rank, then in order, then by values. The newest are those
 * that began last, after those with Warnings. Texts are held only for groups that may be among the
 * first.
 */
export async function topGroups(groups: Groups, options: TopOptions): Promise<TopGroups> {
  const { max, signal, lane, order, isShown } = options
  using slices = lane.slices({ signal })
  const ranks = new Float64Array(options.rankOf === undefined ? 0 : groups.size)
  const compareOrder =
    order === 'newest'
      ? (one: number, other: number) =>
          Number(groups.hasWarnings(other)) - Number(groups.hasWarnings(one)) ||
          groups.beginOf(other) - groups.beginOf(one)
      : () => 0
  const compare = (one: number, other: number) =>
    (ranks[other] ?? 0) - (ranks[one] ?? 0) ||
    compareOrder(one, other) ||
    groups.occurrencesOf(other) - groups.occurrencesOf(one)
  const each = async (visit: (group: number) => void) => {
    for (let group = 0; group < groups.size; group++) {
      if (isShown?.(group) !== false) visit(group)
      if (!slices.isOver()) continue
      await slices.next()
      throwIfAborted(signal)
    }
  }
  const top = new TopSlots(max, compare)
  let shown = 0
  await each((group) => {
    shown++
    if (options.rankOf !== undefined) ranks[group] = options.rankOf(groups.valuesOf(group))
    top.offer(group)
  })
  const last = top.sorted().at(-1)
  if (last === undefined) return { top: [], hidden: shown }
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
  const found = [...best, ...tied.groups]
  return { top: found, hidden: shown - found.length }
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
