/** Texts in the order of their UTF-8 bytes, which is that of DuckDB and of keys. */
import type { ValuePattern } from '../../api/selectors/value-pattern.ts'
import type { Bounds } from '../manifest.ts'

export function compareBytes(one: string, other: string): number {
  return one === other ? 0 : Buffer.from(one).compare(Buffer.from(other))
}

const CODE_POINT_MAX = 0x10_ffff
const SURROGATES = { first: 0xd800, end: 0xe000 } as const

/** The first text after all that begin with the prefix; undefined when there is none. */
export function endOfPrefix(prefix: string): string | undefined {
  const points = [...prefix].map((character) => character.codePointAt(0) ?? 0)
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    if (last === CODE_POINT_MAX) continue
    const next = last + 1
    return String.fromCodePoint(...points, next === SURROGATES.first ? SURROGATES.end : next)
  }
  return undefined
}

/** Whether a text between the bounds may match one of the patterns. */
export function mayMatch(patterns: readonly ValuePattern[], [from, to]: Bounds<string>): boolean {
  return patterns.some(({ text, isPrefix }) => {
    if (compareBytes(text, to) > 0) return false
    if (!isPrefix) return compareBytes(from, text) <= 0
    const end = endOfPrefix(text)
    return end === undefined || compareBytes(from, end) < 0
  })
}
