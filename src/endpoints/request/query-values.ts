/**
 * Reads the values of a query. If a parameter is sent several times, the first one counts. Unknown
 * parameters are ignored.
 */
import { badRequest } from '../../api/status.ts'
import { type FieldError, unsupportedField } from '../../api/validation/field-error.ts'
import { DurationError, parseDuration } from '../../lib/go/duration.ts'
import { int64Problem, parseInt64 } from '../../lib/go/go-integer.ts'
import { goQuote } from '../../lib/go/go-quote.ts'
import { truncate } from '../../lib/text/truncate.ts'

/** Node's maximum timer delay. A longer timer fires at once. */
const timerMsMax = 2 ** 31 - 1

/** Returns '' if it was not sent. */
export function readText(query: URLSearchParams, name: string): string {
  return query.get(name) ?? ''
}

/**
 * Returns undefined if it was not sent. Accepts 64-bit integers; one that a number cannot represent
 * becomes the nearest safe integer.
 */
export function readInteger(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name)
  if (text === null) return undefined
  const value = parseInt64(text)
  if (value === undefined) throw badRequest(int64Problem(text))
  return Math.max(-Number.MAX_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, Number(value)))
}

/** `dryRun` is the only option that is a list: each of its values must be `All`. */
export function dryRunErrors(values: readonly string[]): readonly FieldError[] {
  if (values.every((value) => value === 'All')) return []
  return [unsupportedField('dryRun', truncate(JSON.stringify(values)), ['All'])]
}

/**
 * Reads the client's own timeout, capped at the maximum timer delay. Returns undefined if it is
 * missing or not positive: then the timeout of the server applies.
 */
export function readTimeoutMs(query: URLSearchParams): number | undefined {
  const text = readText(query, 'timeout')
  if (text === '') return undefined
  try {
    const ms = parseDuration(text)
    return ms > 0 ? Math.min(ms, timerMsMax) : undefined
  } catch (error) {
    if (!(error instanceof DurationError)) throw error
    throw badRequest(
      `invalid timeout specified in the request URL - ${durationProblem(text)}`,
      error,
    )
  }
}

/** Go's error for a text that is not a duration. */
function durationProblem(text: string): string {
  const sent = truncate(text)
  const [, unit] = /^[+-]?\d+(?:\.\d+)?([^\d.]*)$/.exec(sent) ?? []
  if (unit === undefined) return `time: invalid duration ${goQuote(sent)}`
  if (unit === '') return `time: missing unit in duration ${goQuote(sent)}`
  return `time: unknown unit ${goQuote(unit)} in duration ${goQuote(sent)}`
}
