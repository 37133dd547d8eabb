/**
 * How the values in a query are read. Of a parameter that is there several times the first counts;
 * unknown parameters are nobody's business.
 */
import { type FieldError, unsupportedField } from '../api/field-error.ts'
import { badRequest } from '../api/status.ts'
import { DurationError, parseDuration } from '../lib/duration.ts'
import { int64Problem, parseInt64 } from '../lib/go-integer.ts'
import { goQuote } from '../lib/go-quote.ts'
import { shown } from '../lib/shown.ts'

/** Node takes a longer time for none at all. */
const timerMsMax = 2 ** 31 - 1

/** Empty when it is not there. */
export function readText(query: URLSearchParams, name: string): string {
  return query.get(name) ?? ''
}

/** Undefined when it is not there. Anything that does not say no says yes, nothing at all too. */
export function readBoolean(query: URLSearchParams, name: string): boolean | undefined {
  const text = query.get(name)
  if (text === null) return undefined
  return text !== '0' && text.toLowerCase() !== 'false'
}

/**
 * Undefined when it is not there. Integers of 64 bits are taken; those that a number does not hold
 * become the nearest that it does.
 */
export function readInteger(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name)
  if (text === null) return undefined
  const value = parseInt64(text)
  if (value === undefined) throw badRequest(int64Problem(text))
  return Math.max(-Number.MAX_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, Number(value)))
}

/** The one option that is a list: each of its values must be `All`. */
export function dryRunErrors(values: readonly string[]): readonly FieldError[] {
  if (values.every((value) => value === 'All')) return []
  return [unsupportedField('dryRun', shown(JSON.stringify(values)), ['All'])]
}

/**
 * How long the caller is willing to wait, by the parameter `timeout`; at most as long as a timer can.
 * Undefined when that is for us to say: nothing, 0 or less was sent.
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

/** What Go says of a text that is no duration. */
function durationProblem(text: string): string {
  const sent = shown(text)
  const [, unit] = /^[+-]?\d+(?:\.\d+)?([^\d.]*)$/.exec(sent) ?? []
  if (unit === undefined) return `time: invalid duration ${goQuote(sent)}`
  if (unit === '') return `time: missing unit in duration ${goQuote(sent)}`
  return `time: unknown unit ${goQuote(unit)} in duration ${goQuote(sent)}`
}
