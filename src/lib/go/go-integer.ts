import { truncate } from '../text/truncate.ts'
import { goQuote } from './go-quote.ts'

/** A number where a double is exact, otherwise a bigint. `<` and `>` work between the two. */
export type Int64 = number | bigint

const exactDigits = 15
const int64Digits = 19
const int64Max = 2n ** 63n - 1n
const int64Min = -(2n ** 63n)

/** Parses an integer as Go does: optional sign, decimal digits, 64 bits. Undefined if invalid. */
export function parseInt64(text: string): Int64 | undefined {
  if (!/^[+-]?[0-9]+$/.test(text)) return undefined
  if (text.length <= exactDigits) return Number(text)
  const digits = text.replace(/^[+-]?0*/, '')
  if (digits.length > int64Digits) return undefined
  const value = BigInt(`${text.startsWith('-') ? '-' : ''}${digits || '0'}`)
  return value >= int64Min && value <= int64Max ? value : undefined
}

/** Go's error message for a text that `parseInt64` rejects. */
export function int64Problem(text: string): string {
  const problem = /^[+-]?[0-9]+$/.test(text) ? 'value out of range' : 'invalid syntax'
  return `strconv.ParseInt: parsing ${goQuote(truncate(text))}: ${problem}`
}
