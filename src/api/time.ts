import { goQuote } from '../lib/go/go-quote.ts'

/** Thrown for an invalid time, with the message of Go's time.Parse. */
export class TimeSyntaxError extends Error {
  override readonly name = 'TimeSyntaxError'
}

/** The time that means "not set" in any time field. */
const ZERO_SECOND = '0001-01-01T00:00:00'
/** The zero time as text, for the few fields where a zero time differs from an unset one. */
export const ZERO_TIME: string = `${ZERO_SECOND}Z`

/** An invalid time is truncated to this length in errors, since it may be as long as a body. */
const QUOTED_LENGTH_MAX = 128

/**
 * Converts any RFC 3339 time to canonical form: UTC, with six fractional digits for `microTime` and
 * none for `time`. Truncates further digits. Returns undefined for the zero time. Throws a
 * TimeSyntaxError.
 */
export function canonicalTime(text: string, kind: 'time' | 'microTime'): string | undefined {
  const canonical = isCanonicalTime(text, kind) ? text : new TimeText(text).canonical(kind)
  if (!canonical.startsWith(ZERO_SECOND)) return canonical
  return kind === 'time' || canonical.endsWith('.000000Z') ? undefined : canonical
}

/** A time as in protobuf. */
export interface Instant {
  /** Whole seconds since 1970. */
  readonly seconds: number
  readonly nanos: number
}

/** Converts a canonical time. */
export function instantOfTime(text: string): Instant {
  const seconds = Date.parse(`${text.slice(0, DATE_LENGTH)}Z`) / 1000
  return { seconds, nanos: text[DATE_LENGTH] === '.' ? Number(text.slice(20, 26)) * 1000 : 0 }
}

/** Returns undefined for the zero time. Throws a TimeSyntaxError beyond the year 9999. */
export function timeOfInstant(
  { seconds, nanos }: Instant,
  kind: 'time' | 'microTime',
): string | undefined {
  const date = new Date(seconds * 1000)
  const year = date.getUTCFullYear()
  if (!(year >= 0 && year <= 9999) || nanos < 0 || nanos > 999_999_999) {
    throw new TimeSyntaxError(`time of ${seconds} seconds and ${nanos} nanoseconds is out of range`)
  }
  const second = date.toISOString().slice(0, DATE_LENGTH)
  const micros = String(Math.floor(nanos / 1000)).padStart(6, '0')
  return canonicalTime(kind === 'time' ? `${second}Z` : `${second}.${micros}Z`, kind)
}

/** A cheap check, since most times are canonical when they arrive. */
export function isCanonicalTime(text: string, kind: 'time' | 'microTime'): boolean {
  const shape = kind === 'time' ? 'dddd-dd-ddTdd:dd:ddZ' : 'dddd-dd-ddTdd:dd:dd.ddddddZ'
  if (text.length !== shape.length) return false
  for (let at = 0; at < shape.length; at++) {
    const wanted = shape.charCodeAt(at)
    const code = text.charCodeAt(at)
    if (wanted === 0x64 ? !isDigit(code) : code !== wanted) return false
  }
  return outOfRange(fieldsOf(text)) === undefined
}

interface Fields {
  readonly year: number
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly second: number
}

function fieldsOf(text: string): Fields {
  return {
    year: twoDigits(text, 0) * 100 + twoDigits(text, 2),
    month: twoDigits(text, 5),
    day: twoDigits(text, 8),
    hour: twoDigits(text, 11),
    minute: twoDigits(text, 14),
    second: twoDigits(text, 17),
  }
}

function outOfRange(fields: Fields): string | undefined {
  if (fields.month < 1 || fields.month > 12) return 'month'
  if (fields.day < 1 || fields.day > daysIn(fields.year, fields.month)) return 'day'
  if (fields.hour > 23) return 'hour'
  if (fields.minute > 59) return 'minute'
  return fields.second > 59 ? 'second' : undefined
}

function daysIn(year: number, month: number): number {
  if (month !== 2) return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
}

/** The parts up to the seconds, each with its name in Go's layout. */
const PARTS = [
  ['dddd', '2006'],
  ['-', '-'],
  ['dd', '01'],
  ['-', '-'],
  ['dd', '02'],
  ['T', 'T'],
  ['dd', '15'],
  [':', ':'],
  ['dd', '04'],
  [':', ':'],
  ['dd', '05'],
] as const

const DATE_LENGTH = 19

class TimeText {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  canonical(kind: 'time' | 'microTime'): string {
    const text = this.#text
    let at = 0
    for (const [pattern, name] of PARTS) at = this.#part(at, pattern, name)
    const fractionEnd = this.#fractionEnd(at)
    const offset = this.#offsetMinutes(fractionEnd)
    const wrong = outOfRange(fieldsOf(text))
    if (wrong !== undefined) throw this.#outOfRange(wrong)

    const second = this.#inUtc(offset)
    if (kind === 'time') return `${second}Z`
    const digits = text.slice(at + 1, Math.min(fractionEnd, at + 7)).padEnd(6, '0')
    return `${second}.${digits}Z`
  }

  #part(from: number, pattern: string, name: string): number {
    for (let index = 0; index < pattern.length; index++) {
      const code = this.#text.charCodeAt(from + index)
      const wanted = pattern.charCodeAt(index)
      const fits = wanted === 0x64 ? isDigit(code) : code === wanted || isLowerT(code, wanted)
      if (!fits) throw this.#cannotParse(from, name)
    }
    return from + pattern.length
  }

  #fractionEnd(from: number): number {
    const mark = this.#text[from]
    if (mark !== '.' && mark !== ',') return from
    let at = from + 1
    while (isDigit(this.#text.charCodeAt(at))) at++
    if (at === from + 1) throw this.#cannotParse(from, 'Z07:00')
    return at
  }

  #offsetMinutes(from: number): number {
    const offset = this.#text.slice(from, from + 7)
    if (offset === 'Z' || offset === 'z') return 0
    if (!/^[+-]\d\d:\d\d$/.test(offset)) throw this.#cannotParse(from, 'Z07:00')
    const hours = twoDigits(offset, 1)
    const minutes = twoDigits(offset, 4)
    if (hours > 23) throw this.#outOfRange('time zone offset hour')
    if (minutes > 59) throw this.#outOfRange('time zone offset minute')
    return (offset[0] === '-' ? -1 : 1) * (hours * 60 + minutes)
  }

  #inUtc(offsetMinutes: number): string {
    const local = `${this.#text.slice(0, 10)}T${this.#text.slice(11, DATE_LENGTH)}`
    if (offsetMinutes === 0) return local
    const utc = new Date(Date.parse(`${local}Z`) - offsetMinutes * 60_000)
    const year = utc.getUTCFullYear()
    if (year < 0 || year > 9999) throw this.#outOfRange('year')
    return utc.toISOString().slice(0, DATE_LENGTH)
  }

  #cannotParse(from: number, name: string): TimeSyntaxError {
    const whole = quoted(this.#text)
    const rest = quoted(this.#text.slice(from))
    return new TimeSyntaxError(
      `parsing time ${whole} as "2006-01-02T15:04:05Z07:00": cannot parse ${rest} as "${name}"`,
    )
  }

  #outOfRange(what: string): TimeSyntaxError {
    return new TimeSyntaxError(`parsing time ${quoted(this.#text)}: ${what} out of range`)
  }
}

function quoted(text: string): string {
  return goQuote(text.length <= QUOTED_LENGTH_MAX ? text : `${text.slice(0, QUOTED_LENGTH_MAX)}...`)
}

function isLowerT(code: number, wanted: number): boolean {
  return wanted === 0x54 && code === 0x74
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

function twoDigits(text: string, at: number): number {
  return (text.charCodeAt(at) - 0x30) * 10 + text.charCodeAt(at + 1) - 0x30
}
