/** Formats times and durations. */

export const secondMs = 1_000
export const minuteMs: number = 60 * secondMs
export const hourMs: number = 60 * minuteMs
export const dayMs: number = 24 * hourMs
const yearMs = 365 * dayMs

/** Formats a duration as in kubectl's LAST SEEN column: `8s`, `2m30s`, `47m`, `3h5m`, `2d`. */
export function humanDuration(ms: number): string {
  if (ms < 0) return '0s'
  if (ms < 2 * minuteMs) return `${Math.floor(ms / secondMs)}s`
  if (ms < 10 * minuteMs) return pair(ms, [minuteMs, 'm'], [secondMs, 's'])
  if (ms < 3 * hourMs) return `${Math.floor(ms / minuteMs)}m`
  if (ms < 8 * hourMs) return pair(ms, [hourMs, 'h'], [minuteMs, 'm'])
  if (ms < 2 * dayMs) return `${Math.floor(ms / hourMs)}h`
  if (ms < 8 * dayMs) return pair(ms, [dayMs, 'd'], [hourMs, 'h'])
  if (ms < 2 * yearMs) return `${Math.floor(ms / dayMs)}d`
  if (ms < 8 * yearMs) return pair(ms, [yearMs, 'y'], [dayMs, 'd'])
  return `${Math.floor(ms / yearMs)}y`
}

/** Formats how long ago a time is; `in 3h` if a wrong clock has put it into the future. */
export function age(ms: number, nowMs: number): string {
  return ms - nowMs < secondMs ? humanDuration(nowMs - ms) : `in ${humanDuration(ms - nowMs)}`
}

type Unit = readonly [ms: number, name: string]

/** Two units, without the second one if it is zero. */
function pair(ms: number, [largeMs, large]: Unit, [smallMs, small]: Unit): string {
  const rest = Math.floor((ms % largeMs) / smallMs)
  return `${Math.floor(ms / largeMs)}${large}${rest === 0 ? '' : `${rest}${small}`}`
}

const LONG_UNITS: readonly Unit[] = [
  [dayMs, 'd'],
  [hourMs, 'h'],
  [minuteMs, 'min'],
  [secondMs, 's'],
]

/** Formats a duration for a sentence, rounded down: `3 h 12 min`, `2 d`, `45 s`. */
export function longDuration(ms: number): string {
  const at = LONG_UNITS.findIndex(([unitMs]) => ms >= unitMs)
  if (at === -1) return '0 s'
  const texts = LONG_UNITS.slice(at, at + 2).map(([unitMs, name], index) => {
    const value = Math.floor((index === 0 ? ms : ms % (LONG_UNITS[at]?.[0] ?? 1)) / unitMs)
    return value === 0 ? '' : `${value} ${name}`
  })
  return texts.filter((text) => text !== '').join(' ')
}

/** Parses a time from a response. Undefined if it is missing or invalid. */
export function timeOf(text: string | null | undefined): number | undefined {
  const ms = Date.parse(text ?? '')
  return Number.isNaN(ms) ? undefined : ms
}

/** `2026-11-16 03:12:24` in the browser's time zone. */
export function localTime(ms: number): string {
  const date = new Date(ms)
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join('-')
  return `${day} ${[date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':')}`
}

/** `03:12:24` in the browser's time zone, with the day if that is not the day of `nowMs`. */
export function clockTime(ms: number, nowMs: number): string {
  const time = localTime(ms)
  const [day, clock = ''] = time.split(' ')
  return localTime(nowMs).startsWith(`${day} `) ? clock : time
}

/** `2026-11-16T03:12:24Z` */
export function utcTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}

/** `03:12` in the browser's time zone, with the day in front unless it is today. */
export function shortTime(ms: number, nowMs: number): string {
  const [day = '', time = ''] = localTime(ms).split(' ')
  const minutes = time.slice(0, 5)
  return day === localTime(nowMs).split(' ')[0] ? minutes : `${day} ${minutes}`
}

/** How far the browser's time zone is ahead of UTC at that time. */
export function zoneAt(ms: number): number {
  return -new Date(ms).getTimezoneOffset() * minuteMs
}

/** The time at which clocks show this. The offset is taken at the returned time. */
export function timeOfWall(wallMs: number, zone: (ms: number) => number): number {
  return wallMs - zone(wallMs - zone(wallMs))
}

/** Divisors of a day, as steps of a time axis. */
export const STEPS_OF_DAY_MS: readonly number[] = [
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * secondMs),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * minuteMs),
  ...[1, 2, 3, 6, 12].map((hours) => hours * hourMs),
]

/**
 * `2026-11-16 03:10 to 03:15` in the browser's time zone; with seconds where they are not 0, and
 * with UTC offsets if the clock changed in between.
 */
export function spanText({
  fromMs,
  toMs,
}: {
  readonly fromMs: number
  readonly toMs: number
}): string {
  const hasSeconds = fromMs % minuteMs !== 0 || toMs % minuteMs !== 0
  const hasOffsets = zoneAt(fromMs) !== zoneAt(toMs)
  const [from, to] = [fromMs, toMs].map(
    (ms) => localTime(ms).slice(0, hasSeconds ? 19 : 16) + (hasOffsets ? offsetText(ms) : ''),
  )
  const isSameDay = from?.slice(0, 10) === to?.slice(0, 10)
  return `${from} to ${isSameDay ? to?.slice(11) : to}`
}

/** ` +02:00` */
function offsetText(ms: number): string {
  const minutes = Math.abs(zoneAt(ms)) / minuteMs
  const text = [Math.floor(minutes / 60), minutes % 60].map(two).join(':')
  return ` ${zoneAt(ms) < 0 ? '-' : '+'}${text}`
}

/** Formats a label for an axis of this length: `03:10`, `03:10:15`, or the day at midnight. */
export function axisTime(ms: number, rangeMs: number): string {
  const [day = '', time = ''] = localTime(ms).split(' ')
  if (rangeMs > dayMs && time === '00:00:00') return day.slice(5)
  return rangeMs < 10 * minuteMs ? time : time.slice(0, 5)
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}
