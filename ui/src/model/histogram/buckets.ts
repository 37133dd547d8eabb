/** Divides a span into bars of whole seconds, minutes, hours or days. */
import type { Span } from '../range.ts'
import { dayMs, hourMs, STEPS_OF_DAY_MS, timeOfWall, zoneAt } from '../times.ts'

const STEPS_MS: readonly number[] = [...STEPS_OF_DAY_MS, dayMs]

/** 120, plus one for a span that does not begin at a multiple of the step. */
export const BARS_MAX = 121
/** Maximum on narrow screens. */
export const NARROW_BARS_MAX = 61

/** The bars of a span that contains the requested one. */
export interface BucketPlan extends Span {
  /** Length of a bar; shorter or longer where a clock change falls into it. */
  readonly stepMs: number
  /** Number of bars. */
  readonly count: number
  /** Start time of each bar. */
  readonly starts: readonly number[]
  /** Number of equal parts that the server counts in, from which bars are made. */
  readonly parts: number
}

export interface PlanOptions {
  /** How far local time is ahead of UTC at a time, so that days begin at midnight. */
  readonly zone?: (ms: number) => number
  /** For spans of a minute or more, the number of bars is between a third of this and this. */
  readonly barsMax?: number
}

export function planBuckets(
  { fromMs, toMs }: Span,
  { zone = zoneAt, barsMax = BARS_MAX }: PlanOptions = {},
): BucketPlan {
  const wholeDays = Math.ceil((toMs - fromMs) / (barsMax - 1) / dayMs)
  const steps = [...STEPS_MS, Math.max(1, wholeDays) * dayMs]
  const firstOf = (step: number): number => {
    const zoneMs = zone(fromMs)
    // The server moves the bounds of long parts to whole hours in UTC.
    const aheadMs = step > hourMs ? Math.floor(zoneMs / hourMs) * hourMs : zoneMs
    return Math.floor((fromMs + aheadMs) / step) * step - aheadMs
  }
  const countOf = (step: number): number => Math.max(1, Math.ceil((toMs - firstOf(step)) / step))
  const stepMs = steps.find((step) => countOf(step) <= barsMax) ?? steps.at(-1) ?? dayMs
  const plan = equalParts(firstOf(stepMs), stepMs, countOf(stepMs))
  const isChanged = zone(plan.fromMs) !== zone(plan.toMs)
  return isChanged && plan.stepMs > hourMs ? localParts({ fromMs, toMs }, plan, zone) : plan
}

function equalParts(fromMs: number, stepMs: number, count: number): BucketPlan {
  const starts = Array.from({ length: count }, (_, index) => fromMs + index * stepMs)
  return { fromMs, toMs: fromMs + count * stepMs, stepMs, count, starts, parts: count }
}

/** The server's maximum number of parts. */
const PARTS_MAX = 500

/**
 * Bars that begin at the same local times before and after a clock change. If they need too many
 * parts, bars are of equal length and labelled with their start.
 */
function localParts(
  { fromMs, toMs }: Span,
  equal: BucketPlan,
  zone: (ms: number) => number,
): BucketPlan {
  const { stepMs } = equal
  const bounds: number[] = []
  const firstWall = Math.floor((fromMs + zone(fromMs)) / stepMs) * stepMs
  for (let wall = firstWall; (bounds.at(-1) ?? fromMs - 1) < toMs; wall += stepMs) {
    bounds.push(timeOfWall(wall, zone))
  }
  const starts = bounds.slice(0, -1)
  const [from = fromMs] = starts
  const end = bounds.at(-1) ?? toMs
  const partMs = bounds.reduce((common, ms) => commonDivisor(common, ms - from), stepMs)
  const parts = (end - from) / partMs
  if (parts > PARTS_MAX) return equal
  return { fromMs: from, toMs: end, stepMs, count: starts.length, starts, parts }
}

function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b)
}

/** Occurrences per bar, by type. Every type other than Warning counts as Normal. */
export interface Bars {
  readonly plan: BucketPlan
  readonly normal: readonly number[]
  readonly warnings: readonly number[]
  /** Whether some occurrences of a bar are known only to lie between two times. */
  readonly estimated: readonly boolean[]
}

export interface CountedBucket {
  readonly counts: ReadonlyMap<string, number>
  readonly estimated?: ReadonlySet<string>
}

/** `type` selects one type; empty for all. */
export function barsOf(plan: BucketPlan, buckets: readonly CountedBucket[], type: string): Bars {
  const shown = (name: string, count: number): number => (type === '' || type === name ? count : 0)
  const warnings = plan.starts.map(() => 0)
  const normal = plan.starts.map(() => 0)
  const estimatedBars = plan.starts.map(() => false)
  const partMs = (plan.toMs - plan.fromMs) / plan.parts
  for (const [index, { counts, estimated }] of buckets.entries()) {
    const bar = barAt(plan, plan.fromMs + index * partMs)
    for (const [name, count] of counts) {
      const bars = name === 'Warning' ? warnings : normal
      bars[bar] = (bars[bar] ?? 0) + shown(name, count)
      if (estimated?.has(name) === true && shown(name, count) > 0) estimatedBars[bar] = true
    }
  }
  return { plan, normal, warnings, estimated: estimatedBars }
}

/** Returns the bar that contains this time. */
export function barAt({ starts }: BucketPlan, ms: number): number {
  return starts.findLastIndex((startMs) => startMs <= ms)
}

export function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0)
}

/** The span of one or more bars. */
export function spanOfBars(plan: BucketPlan, from: number, to: number): Span {
  const { starts, count, toMs } = plan
  const first = Math.max(0, Math.min(from, to))
  const last = Math.min(count - 1, Math.max(from, to))
  return { fromMs: starts[first] ?? plan.fromMs, toMs: starts[last + 1] ?? toMs }
}
