/** Labels of a time axis, in the browser's time zone. */
import { dayMs, localTime, minuteMs, STEPS_OF_DAY_MS, timeOfWall, zoneAt } from '../model/times.ts'
import { type Scale, xOf } from './marks.ts'

export interface AxisTick {
  readonly x: number
  readonly text: string
}

const STEPS: readonly number[] = [
  ...STEPS_OF_DAY_MS,
  ...[1, 2, 7, 14, 28].map((days) => days * dayMs),
]

/** Minimum distance between labels, in pixels. */
const GAP = 80

/** `zone` returns how far local time is ahead of UTC. */
export function axisTicks(
  scale: Scale,
  zone: (ms: number) => number = zoneAt,
): readonly AxisTick[] {
  const { fromMs, toMs, width } = scale
  if (width <= 0 || toMs <= fromMs) return []
  const stepMs = STEPS.find((ms) => (ms / (toMs - fromMs)) * width >= GAP) ?? STEPS.at(-1) ?? dayMs
  const ticks: AxisTick[] = []
  // Midnight is in local time, before and after a clock change.
  let wallMs = Math.ceil((fromMs + zone(fromMs)) / stepMs) * stepMs
  for (let ms = timeOfWall(wallMs, zone); ms <= toMs; ms = timeOfWall(wallMs, zone)) {
    const tick = { x: Math.round(xOf(scale, ms)), text: tickText(ms, stepMs) }
    if (ms >= fromMs && tick.x !== ticks.at(-1)?.x) ticks.push(tick)
    wallMs += stepMs
  }
  return ticks
}

/** `03:12`, `03:12:30`, or `11-16` at the start of a day. */
function tickText(ms: number, stepMs: number): string {
  const [day = '', time = ''] = localTime(ms).split(' ')
  if (stepMs >= dayMs || time === '00:00:00') return day.slice(5)
  return stepMs < minuteMs ? time : time.slice(0, 5)
}
