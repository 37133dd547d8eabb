/**
 * The values that a term of a field selector names: `BackOff|Failed` is either of two values, and
 * `checkout-*` is every value that begins so. `\|` and `\*` stand for the characters themselves.
 */
import { ownText } from '../../lib/text/own-text.ts'
import { truncate } from '../../lib/text/truncate.ts'
import { badRequest } from '../status.ts'

export interface ValuePattern {
  readonly text: string
  /** Every value that begins with the text. */
  readonly isPrefix: boolean
}

/** A watch retains them, and each may be compared with each event. */
export const PATTERNS_MAX = 32

/** The pattern of a single value. */
export function exactly(text: string): readonly ValuePattern[] {
  return [{ text, isPrefix: false }]
}

export function isMatch({ text, isPrefix }: ValuePattern, value: string): boolean {
  return isPrefix ? value.startsWith(text) : value === text
}

export function isAnyMatch(patterns: readonly ValuePattern[], value: string): boolean {
  for (const pattern of patterns) if (isMatch(pattern, value)) return true
  return false
}

/** Whether a value can match both. */
export function overlap(one: ValuePattern, other: ValuePattern): boolean {
  return isMatch(one, other.text) || isMatch(other, one.text)
}

/** The only value that matches, if there is just one. */
export function soleValue(patterns: readonly ValuePattern[]): string | undefined {
  const [first] = patterns
  return patterns.length === 1 && first?.isPrefix === false ? first.text : undefined
}

/** All values that match; undefined if there is a prefix among the patterns. */
export function exactValues(patterns: readonly ValuePattern[]): readonly string[] | undefined {
  return patterns.some(({ isPrefix }) => isPrefix) ? undefined : patterns.map(({ text }) => text)
}

/** The patterns as they are written in a selector. */
export function patternsText(patterns: readonly ValuePattern[]): string {
  return patterns
    .map(({ text, isPrefix }) => `${text.replaceAll(/[\\,=|*]/g, '\\$&')}${isPrefix ? '*' : ''}`)
    .join('|')
}

/** Parses a value whose escape sequences are valid. Throws a 400 that contains `label`. */
export function parsePatterns(label: string, escaped: string): readonly ValuePattern[] {
  if (!/[\\|*]/.test(escaped)) return exactly(ownText(escaped))
  const found = new Map<string, ValuePattern>()
  for (const { text, starAt } of trimmed(alternativesIn(escaped))) {
    const isPrefix = starAt === text.length - 1
    if (starAt !== undefined && !isPrefix) throw misplacedStar(label, text, starAt)
    if (isPrefix && starAt === 0) {
      throw badRequest(`${label}: write at least one character before *`)
    }
    const own = ownText(isPrefix ? text.slice(0, -1) : text)
    found.set(`${own}${isPrefix ? '*' : ' '}`, { text: own, isPrefix })
  }
  if (found.size > PATTERNS_MAX) {
    throw badRequest(`${label}: at most ${PATTERNS_MAX} values can be joined by |`)
  }
  return [...found.values()]
}

/**
 * Parses texts that are searched for, of which no prefixes are needed. Throws a 400 that contains
 * `label`.
 */
export function parseTexts(label: string, escaped: string): readonly ValuePattern[] {
  if (!/[\\|*]/.test(escaped)) return exactly(ownText(escaped))
  return alternativesIn(escaped).map(({ text, starAt }) => {
    if (starAt === undefined) return { text: ownText(text), isPrefix: false }
    throw badRequest(
      `${label}: ${JSON.stringify(truncate(text))}: leave out *, since a text is found anywhere; write \\* for an asterisk`,
    )
  })
}

function misplacedStar(label: string, text: string, starAt: number): Error {
  const hint = starAt === 0 ? '' : `, as in ${truncate(label)}=${truncate(text.slice(0, starAt))}*`
  return badRequest(
    `${label}: ${JSON.stringify(truncate(text))}: write * only at the end${hint}, or \\* for an asterisk`,
  )
}

/** No value begins or ends with a space, but people write them around `|`. */
function trimmed(alternatives: readonly Alternative[]): readonly Alternative[] {
  if (alternatives.length < 2) return alternatives
  return alternatives.map(({ text, starAt }) => {
    const before = text.length - text.trimStart().length
    return { text: text.trim(), starAt: starAt === undefined ? undefined : starAt - before }
  })
}

interface Alternative {
  readonly text: string
  /** The first asterisk that is not escaped. */
  readonly starAt: number | undefined
}

function alternativesIn(escaped: string): readonly Alternative[] {
  const found: Alternative[] = []
  let text = ''
  let starAt: number | undefined
  for (let index = 0; index <= escaped.length; index++) {
    const character = escaped[index]
    if (character === undefined || character === '|') {
      found.push({ text, starAt })
      text = ''
      starAt = undefined
    } else if (character === '\\') {
      index++
      text += escaped[index] ?? ''
    } else {
      if (character === '*') starAt ??= text.length
      text += character
    }
  }
  return found
}
