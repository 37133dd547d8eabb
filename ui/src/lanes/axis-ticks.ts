/** The labels of an axis of time, in the time zone of the browser. */
import { localTime } from '../model/times.ts'
import { type Scale, xOf } from './marks.ts'

export interface AxisTick {
  readonly x: number
  readonly text: string
}

const secondMs = 1_000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

const STEPS: readonly number[] = [
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * secondMs),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * minuteMs),
  ...[1, 2, 3, 6, 12].map((hours) => hours * hourMs),
  ...[1, 2, 7, 14, 28].map((days) => days * dayMs),
]

/** No label is nearer to the next one. */
const GAP = 80

export function axisTicks(scale: Scale): readonly AxisTick[] {
  const { fromMs, toMs, width } = scale
  if (width <= 0 || toMs <= fromMs) return []
  const stepMs = STEPS.find((ms) => (ms / (toMs - fromMs)) * width >= GAP) ?? STEPS.at(-1) ?? dayMs
  // Midnight is where the user is.
  const offsetMs = -new Date(fromMs).getTimezoneOffset() * minuteMs
  const firstMs = Math.ceil((fromMs + offsetMs) / stepMs) * stepMs - offsetMs
  const count = Math.max(0, Math.floor((toMs - firstMs) / stepMs) + 1)
  return Array.from({ length: count }, (_, index) => {
    const ms = firstMs + index * stepMs
    return { x: Math.round(xOf(scale, ms)), text: tickText(ms, stepMs) }
  })
}

/** `03:12`, `03:12:30`, or `11-16` for the beginning of a day. */
function tickText(ms: number, stepMs: number): string {
  const [day = '', time = ''] = localTime(ms).split(' ')
  if (stepMs >= dayMs || time === '00:00:00') return day.slice(5)
  return stepMs < minuteMs ? time : time.slice(0, 5)
}
