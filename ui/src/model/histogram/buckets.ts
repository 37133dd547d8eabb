/** How a span is cut into bars: of whole seconds, minutes, hours or days. */
import type { Span } from '../range.ts'

const secondMs = 1_000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

const STEPS_MS: readonly number[] = [
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * secondMs),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * minuteMs),
  ...[1, 2, 3, 6, 12].map((hours) => hours * hourMs),
  dayMs,
]

/** One more than 120, for a span that does not begin with a step. */
export const BARS_MAX = 121
/** Where there is less room. */
export const NARROW_BARS_MAX = 61

/** Equal parts of a span, which contains the one that they were made for. */
export interface BucketPlan extends Span {
  readonly stepMs: number
  readonly count: number
}

export interface PlanOptions {
  /** How far local time is ahead of UTC, so that days begin at midnight. */
  readonly zoneMs: number
  /** The number of bars is between a third and all of this, for spans of a minute or more. */
  readonly barsMax?: number
}

export function planBuckets(
  { fromMs, toMs }: Span,
  { zoneMs, barsMax = BARS_MAX }: PlanOptions,
): BucketPlan {
  const wholeDays = Math.ceil((toMs - fromMs) / (barsMax - 1) / dayMs)
  const steps = [...STEPS_MS, Math.max(1, wholeDays) * dayMs]
  const plans = steps.map((stepMs) => aligned({ fromMs, toMs }, stepMs, zoneMs))
  const plan = plans.find(({ count }) => count <= barsMax) ?? plans.at(-1)
  if (plan === undefined) throw new RangeError('there are no steps')
  return plan
}

function aligned({ fromMs, toMs }: Span, stepMs: number, zoneMs: number): BucketPlan {
  const firstMs = Math.floor((fromMs + zoneMs) / stepMs) * stepMs - zoneMs
  const count = Math.max(1, Math.ceil((toMs - firstMs) / stepMs))
  return { fromMs: firstMs, toMs: firstMs + count * stepMs, stepMs, count }
}

/** How far local time is ahead of UTC. */
export function zoneAt(ms: number): number {
  return -new Date(ms).getTimezoneOffset() * minuteMs
}

/** Occurrences in each part of a span, by type. Whatever is no Warning counts as Normal. */
export interface Bars {
  readonly plan: BucketPlan
  readonly normal: readonly number[]
  readonly warnings: readonly number[]
}

/** `type`: only these are shown; empty for all. */
export function barsOf(
  plan: BucketPlan,
  buckets: readonly { readonly counts: ReadonlyMap<string, number> }[],
  type: string,
): Bars {
  const shown = (name: string, count: number): number => (type === '' || type === name ? count : 0)
  const warnings: number[] = []
  const normal: number[] = []
  for (let index = 0; index < plan.count; index++) {
    const counts = buckets[index]?.counts ?? new Map<string, number>()
    warnings.push(shown('Warning', counts.get('Warning') ?? 0))
    let others = 0
    for (const [name, count] of counts) if (name !== 'Warning') others += shown(name, count)
    normal.push(others)
  }
  return { plan, normal, warnings }
}

export function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0)
}

/** The span of one or more bars. */
export function spanOfBars({ fromMs, stepMs, count }: BucketPlan, from: number, to: number): Span {
  const first = Math.max(0, Math.min(from, to))
  const last = Math.min(count - 1, Math.max(from, to))
  return { fromMs: fromMs + first * stepMs, toMs: fromMs + (last + 1) * stepMs }
}
