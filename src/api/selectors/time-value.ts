import { DurationError, parseLongDuration } from '../../lib/go/duration.ts'
import { truncate } from '../../lib/text/truncate.ts'
import { badRequest } from '../status.ts'

const RFC_3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)$/

/**
 * Reads an RFC 3339 time, or a duration before now, as milliseconds since 1970. Throws a 400 that
 * names `label`.
 */
export function parseTimeValue(label: string, text: string, nowMs: number): number {
  if (/^\d{4}-/.test(text)) {
    const ms = RFC_3339.test(text) ? Date.parse(text.toUpperCase()) : Number.NaN
    if (!Number.isNaN(ms)) return ms
    throw badRequest(
      `${label}: ${quoted(text)} is not an RFC 3339 time such as 2026-01-31T09:30:00Z`,
    )
  }
  const ms = duration(label, text)
  if (ms < 0) throw badRequest(`${label}: ${quoted(text)} is negative; it counts back from now`)
  return Math.floor(nowMs - ms)
}

function duration(label: string, text: string): number {
  try {
    return parseLongDuration(text)
  } catch (error) {
    if (!(error instanceof DurationError)) throw error
    throw badRequest(
      `${label}: ${quoted(text)} is neither a duration such as 20m, 1h30m or 2d, nor an RFC 3339 time such as 2026-01-31T09:30:00Z`,
      error,
    )
  }
}

function quoted(text: string): string {
  return JSON.stringify(truncate(text))
}
