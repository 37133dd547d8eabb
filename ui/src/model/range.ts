/** The displayed time range. */
import { dayMs, hourMs, localTime, minuteMs, secondMs } from './times.ts'

/** A range that ends now, or one between two times in milliseconds since the epoch. */
export type TimeRange =
  | { readonly last: Preset }
  | { readonly fromMs: number; readonly toMs: number }

export type Preset = (typeof PRESETS)[number]

/** Offered by every server, and those that only history can fill. */
export const PRESETS = ['15m', '1h', '6h', '24h', '7d', '30d', '90d'] as const

const PRESET_MS: Readonly<Record<Preset, number>> = {
  '15m': 15 * minuteMs,
  '1h': hourMs,
  '6h': 6 * hourMs,
  '24h': dayMs,
  '7d': 7 * dayMs,
  '30d': 30 * dayMs,
  '90d': 90 * dayMs,
}

const DEFAULT_PRESET: Preset = '1h'

/** A range that is fixed in time. */
export interface Span {
  readonly fromMs: number
  readonly toMs: number
}

export function spanOf(range: TimeRange, nowMs: number): Span {
  return 'last' in range ? { fromMs: nowMs - PRESET_MS[range.last], toMs: nowMs } : range
}

/** Whether only history can fill the range. */
export function isLong(preset: Preset): boolean {
  return PRESET_MS[preset] > PRESET_MS['7d']
}

/** The longest range that begins at this time or later. */
export function presetSince(oldestMs: number, nowMs: number): TimeRange {
  return { last: PRESETS.findLast((preset) => nowMs - PRESET_MS[preset] >= oldestMs) ?? PRESETS[0] }
}

/**
 * The span of a list. A range that ends now has no end: events reported while the page loads belong
 * to it.
 */
export function listedSpan(range: TimeRange, nowMs: number): Partial<Span> {
  const { fromMs, toMs } = spanOf(range, nowMs)
  return 'last' in range ? { fromMs } : { fromMs, toMs }
}

/** Shorter spans have nothing to show. */
const SPAN_MS_MIN = secondMs
/** More than a year, which history has by default. */
const SPAN_MS_MAX = 400 * dayMs
/** Tolerance for the clocks of event sources. */
const FUTURE_MS_MAX = dayMs

/** Returns the nearest span that can be shown; of a span that is too long, its end. */
export function boundedSpan(span: Span, nowMs: number): Span {
  const toMs = Math.round(Math.min(nowMs + FUTURE_MS_MAX, Math.max(SPAN_MS_MIN, span.toMs)))
  const lengthMs = toMs - Math.max(0, Math.round(span.fromMs))
  return { fromMs: toMs - Math.min(SPAN_MS_MAX, Math.max(SPAN_MS_MIN, lengthMs)), toMs }
}

export function readRange(parameters: URLSearchParams): TimeRange {
  const fromMs = Date.parse(parameters.get('from') ?? '')
  const toMs = Date.parse(parameters.get('to') ?? '')
  if (fromMs < toMs) return boundedSpan({ fromMs, toMs }, Date.now())
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

/** Formats for a `datetime-local` input: `2026-11-16T03:12:24` in the browser's time zone. */
export function inputTime(ms: number): string {
  return localTime(ms).replace(' ', 'T')
}

/** NaN if the text is not a time. */
export function readInputTime(text: string): number {
  return new Date(text).getTime()
}

export interface ZoomOptions {
  /** Values above 1 widen the span. */
  readonly factor: number
  /** Stays in the middle, unless the span would end in the future. */
  readonly centreMs?: number | undefined
  readonly nowMs: number
}

/** Returns a longer or shorter span. */
export function zoomed(
  { fromMs, toMs }: Span,
  { factor, centreMs = (fromMs + toMs) / 2, nowMs }: ZoomOptions,
): Span {
  const lengthMs = (toMs - fromMs) * factor
  const endMs = Math.min(Math.max(nowMs, toMs), centreMs + lengthMs / 2)
  return { fromMs: Math.round(endMs - lengthMs), toMs: Math.round(endMs) }
}
