/** A text that is not a duration; the message says what to write instead. */
export class DurationError extends Error {
  override readonly name = 'DurationError'
}

const unitNs = new Map<string, bigint>([
  ['ns', 1n],
  ['us', 1_000n],
  ['µs', 1_000n], // U+00B5, the micro sign
  ['μs', 1_000n], // U+03BC, the Greek letter
  ['ms', 1_000_000n],
  ['s', 1_000_000_000n],
  ['m', 60_000_000_000n],
  ['h', 3_600_000_000_000n],
])

/** Go has no units above an hour, since a calendar day may have 23 or 25 hours. These have 24. */
const longUnitNs = new Map<string, bigint>([
  ...unitNs,
  ['d', 24n * 3_600_000_000_000n],
  ['w', 7n * 24n * 3_600_000_000_000n],
])

const dayMs = 86_400_000

// Go counts nanoseconds in a signed 64-bit number: about 292 years.
const nsMax = 2n ** 63n - 1n

// Longer than any duration that Go prints; bounds the cost of the arithmetic below.
const textLengthMax = 64

/**
 * Parses a Go duration (`1h30m`, `1.5h`, `300ms`, `-2us`, `0`) and returns it in milliseconds, with
 * fractions. Exact to the nanosecond below 13 days.
 */
export function parseDuration(text: string): number {
  return parseUnits(text, unitNs)
}

/** Like `parseDuration`, but also accepts days of 24 hours and weeks: `7d`, `1w`, `1d12h`. */
export function parseLongDuration(text: string): number {
  return parseUnits(text, longUnitNs)
}

function parseUnits(text: string, units: ReadonlyMap<string, bigint>): number {
  if (text.length > textLengthMax) throw new DurationError(advice('this', 'is not a duration'))
  const sign = /^[+-]/.exec(text)?.[0] ?? ''
  const rest = text.slice(sign.length)
  if (rest === '0') return 0
  if (!/^(?:(?:\d+\.?\d*|\.\d+)[^\d.]+)+$/.test(rest)) throw malformed(text, rest)

  let ns = 0n
  for (const [, whole = '', fraction = '', unit = ''] of rest.matchAll(/(\d*)\.?(\d*)([^\d.]+)/g)) {
    const size = units.get(unit)
    if (size === undefined) throw unknownUnit(text, unit, units)
    ns += BigInt(whole) * size + (BigInt(fraction) * size) / 10n ** BigInt(fraction.length)
  }
  if (ns > nsMax)
    throw new DurationError(`${JSON.stringify(text)} is too long: write 2562047h or less`)
  const ms = Number(ns) / 1e6
  return sign === '-' && ns !== 0n ? -ms : ms
}

/** Prints milliseconds as Go prints a duration: `1h0m0s`, `1m30.5s`, `500ms`, `2µs`, `0s`. */
export function formatDuration(ms: number): string {
  const total = BigInt(Math.round(ms * 1e6))
  if (total === 0n) return '0s'
  const sign = total < 0n ? '-' : ''
  const ns = total < 0n ? -total : total

  if (ns < 1_000n) return `${sign}${ns}ns`
  if (ns < 1_000_000n) return `${sign}${decimal(ns, 3)}µs`
  if (ns < 1_000_000_000n) return `${sign}${decimal(ns, 6)}ms`

  const minuteNs = 60_000_000_000n
  const seconds = `${decimal(ns % minuteNs, 9)}s`
  const minutes = ns / minuteNs
  if (minutes === 0n) return sign + seconds
  if (minutes < 60n) return `${sign}${minutes}m${seconds}`
  return `${sign}${minutes / 60n}h${minutes % 60n}m${seconds}`
}

/** The shortest form for `parseLongDuration`: `7d`, `1d12h`, `6h`, `1h30m`, `1m30.5s`, `0s`. */
export function formatLongDuration(ms: number): string {
  const days = Math.trunc(ms / dayMs)
  const rest = ms - days * dayMs
  // Units that are zero are omitted, except in `0s`.
  const clock = formatDuration(Math.abs(rest)).replace(/(?<=[hm])0[ms](?:0s)?$/, '')
  if (days === 0) return rest < 0 ? `-${clock}` : clock
  return rest === 0 ? `${days}d` : `${days}d${clock.replace(/^0h/, '')}`
}

/** `value` with the decimal point moved `places` to the left and without trailing zeros. */
function decimal(value: bigint, places: number): string {
  const digits = value.toString().padStart(places + 1, '0')
  const fraction = digits.slice(-places).replace(/0+$/, '')
  return digits.slice(0, -places) + (fraction === '' ? '' : `.${fraction}`)
}

function malformed(text: string, rest: string): DurationError {
  const quoted = JSON.stringify(text)
  if (/^\d+(\.\d+)?$/.test(rest)) {
    return new DurationError(`${quoted} has no unit: write ${text}s, ${text}m or ${text}ms`)
  }
  return new DurationError(advice(quoted, 'is not a duration'))
}

function unknownUnit(
  text: string,
  unit: string,
  units: ReadonlyMap<string, bigint>,
): DurationError {
  if (unit === 'd') {
    return new DurationError(`${JSON.stringify(text)} counts in days: write hours, such as 24h`)
  }
  return new DurationError(
    `${JSON.stringify(text)} has an unknown unit ${JSON.stringify(unit)}: ` +
      `write ${units.has('d') ? 'w, d, ' : ''}h, m, s, ms, us or ns, such as 1m30s`,
  )
}

function advice(subject: string, wrong: string): string {
  return `${subject} ${wrong}: write a number and a unit, such as 300ms, 1m30s or 2h`
}
