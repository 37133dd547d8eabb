/**
 * Computes where the events of a lane are drawn. Positions are pixels from the left end of the
 * axis.
 */
import type { EventRow } from '../model/event-row.ts'
import type { Span } from '../model/range.ts'

/** The time axis: a span mapped to a width in pixels. */
export interface Scale extends Span {
  readonly width: number
}

/** A tick or a bar. Events that would overlap share it. */
export interface Mark {
  readonly left: number
  readonly right: number
  /** A bar is a series, from its first to its last occurrence. */
  readonly isBar: boolean
  readonly isWarning: boolean
  /** Whether the series began before the axis. */
  readonly isCut: boolean
  /** Total number of occurrences. */
  readonly count: number
  /** Sorted by when they were last seen. */
  readonly events: readonly EventRow[]
}

/** Shorter series are drawn as a tick. */
const BAR_MIN = 5

/** Ticks within a column of this many pixels are merged. */
export const TICK_COLUMN = 3

export function xOf({ fromMs, toMs, width }: Scale, ms: number): number {
  const share = (ms - fromMs) / Math.max(1, toMs - fromMs)
  return Math.min(1, Math.max(0, share)) * width
}

export function timeAt({ fromMs, toMs, width }: Scale, x: number): number {
  const share = Math.min(1, Math.max(0, x / Math.max(1, width)))
  return Math.round(fromMs + share * (toMs - fromMs))
}

/** Returns marks in drawing order: bars before ticks, Normal before Warning. */
export function marksOf(events: readonly EventRow[], scale: Scale): readonly Mark[] {
  const marks = new Map<string, Mark & { readonly events: EventRow[]; count: number }>()
  for (const row of events) {
    const place = placeOf(row, scale)
    const key = `${place.left} ${place.right} ${row.isWarning}`
    const mark = marks.get(key)
    if (mark === undefined) {
      marks.set(key, { ...place, isWarning: row.isWarning, count: row.count, events: [row] })
    } else {
      mark.events.push(row)
      mark.count += row.count
    }
  }
  const layer = ({ isBar, isWarning }: Mark): number => (isBar ? 0 : 2) + (isWarning ? 1 : 0)
  return [...marks.values()].sort((a, b) => layer(a) - layer(b) || a.right - b.right)
}

type Place = Pick<Mark, 'left' | 'right' | 'isBar' | 'isCut'>

function placeOf({ firstMs, lastMs, count }: EventRow, scale: Scale): Place {
  const left = Math.round(xOf(scale, firstMs))
  const right = Math.round(xOf(scale, lastMs))
  if (count > 1 && right - left >= BAR_MIN) {
    return { left, right, isBar: true, isCut: firstMs < scale.fromMs }
  }
  const x = Math.floor(right / TICK_COLUMN) * TICK_COLUMN + 1
  return { left: x, right: x, isBar: false, isCut: false }
}

/** Pointer tolerance in pixels. */
const REACH = 5

/** Returns the mark at `x`: the nearest tick, or otherwise the topmost bar. */
export function markAt(marks: readonly Mark[], x: number): Mark | undefined {
  let best: Mark | undefined
  let bestDistance = REACH + 1
  for (const mark of marks) {
    const distance = mark.isBar ? barDistance(mark, x) : Math.abs(x - mark.left)
    // Later marks are drawn above earlier ones.
    if (distance <= bestDistance && distance <= REACH) {
      best = mark
      bestDistance = distance
    }
  }
  return best
}

/** A tick on a bar wins over the bar unless it is out of reach. */
function barDistance({ left, right }: Mark, x: number): number {
  return x >= left - 1 && x <= right + 1 ? REACH : REACH + 1
}
