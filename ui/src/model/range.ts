/** The time range that is shown. */
import { localTime } from './times.ts'

/** Until now, or between two times. Times are milliseconds since 1970. */
export type TimeRange =
  | { readonly last: Preset }
  | { readonly fromMs: number; readonly toMs: number }

export type Preset = (typeof PRESETS)[number]

export const PRESETS = ['15m', '1h', '6h', '24h', '7d'] as const

const minuteMs = 60_000
const hourMs = 60 * minuteMs

const PRESET_MS: Readonly<Record<Preset, number>> = {
  '15m': 15 * minuteMs,
  '1h': hourMs,
  '6h': 6 * hourMs,
  '24h': 24 * hourMs,
  '7d': 7 * 24 * hourMs,
}

export const DEFAULT_PRESET: Preset = '1h'

/** A range that is fixed in time. */
export interface Span {
  readonly fromMs: number
  readonly toMs: number
}

export function spanOf(range: TimeRange, nowMs: number): Span {
  return 'last' in range ? { fromMs: nowMs - PRESET_MS[range.last], toMs: nowMs } : range
}

export function readRange(parameters: URLSearchParams): TimeRange {
  const fromMs = Date.parse(parameters.get('from') ?? '')
  const toMs = Date.parse(parameters.get('to') ?? '')
  if (fromMs < toMs) return { fromMs, toMs }
  const last = PRESETS.find((preset) => preset === parameters.get('range')) ?? DEFAULT_PRESET
  return { last }
}

export function writeRange(range: TimeRange, parameters: URLSearchParams): void {
  if ('last' in range) {
    if (range.last !== DEFAULT_PRESET) parameters.set('range', range.last)
    return
  }
  parameters.set('from', new Date(range.fromMs).toISOString())
  parameters.set('to', new Date(range.toMs).toISOString())
}

/** For an input of type `datetime-local`: `2026-11-16T03:12:24` in the time zone of the browser. */
export function inputTime(ms: number): string {
  return localTime(ms).replace(' ', 'T')
}

/** NaN for what is no time. */
export function readInputTime(text: string): number {
  return new Date(text).getTime()
}

/** A range around another one, three times as long; it does not end after now. */
export function widerRange(range: TimeRange, nowMs: number): TimeRange {
  const { fromMs, toMs } = spanOf(range, nowMs)
  const lengthMs = toMs - fromMs
  const endMs = Math.max(toMs, Math.min(nowMs, toMs + lengthMs))
  return { fromMs: endMs - 3 * lengthMs, toMs: endMs }
}
