import { goQuote } from './go-quote.ts'
import { shown } from './shown.ts'

/** A number when it is exact as one. The two kinds compare with each other as numbers do. */
export type Int64 = number | bigint

const exactDigits = 15
const int64Digits = 19
const int64Max = 2n ** 63n - 1n
const int64Min = -(2n ** 63n)

/** Reads an integer as Go does: a sign or none, decimal digits, 64 bits. Undefined when it is none. */
export function parseInt64(text: string): Int64 | undefined {
  if (!/^[+-]?[0-9]+$/.test(text)) return undefined
  if (text.length <= exactDigits) return Number(text)
  const digits = text.replace(/^[+-]?0*/, '')
  if (digits.length > int64Digits) return undefined
  const value = BigInt(`${text.startsWith('-') ? '-' : ''}${digits || '0'}`)
  return value >= int64Min && value <= int64Max ? value : undefined
}

/** What Go says of a text that `parseInt64` could not read. */
export function int64Problem(text: string): string {
  const problem = /^[+-]?[0-9]+$/.test(text) ? 'value out of range' : 'invalid syntax'
  return `strconv.ParseInt: parsing ${goQuote(shown(text))}: ${problem}`
}
