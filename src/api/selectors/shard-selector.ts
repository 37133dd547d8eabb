/**
 * The syntax of `shardSelector` (KEP-5866), by which N clients divide a collection: each names the
 * ranges of hashes that are its own.
 *
 *     shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000') || shardRange(…)
 *
 * The first bound is inclusive, the second one exclusive. The hash is FNV-1a with 64 bits. Of the
 * expression language of Kubernetes (CEL), only ranges, `||` and parentheses are understood.
 */
import { goQuote } from '../../lib/go/go-quote.ts'
import { truncate } from '../../lib/text/truncate.ts'
import { badRequest, type StatusError } from '../status.ts'
import { checkSelectorBytes, REQUIREMENTS_MAX } from './label-selector.ts'

export interface ShardSelector {
  readonly field: ShardField
  /** The selector in its normal form, which responses repeat. */
  readonly text: string
  /** Whether the hash of a value of the field, in UTF-8, is in one of the ranges. */
  matches(value: Uint8Array): boolean
}

export type ShardField = 'object.metadata.uid' | 'object.metadata.namespace'

const shardFields: readonly string[] = ['object.metadata.uid', 'object.metadata.namespace']

/** An unsigned integer of 64 bits, or 2^64, as two numbers: its upper and its lower 32 bits. */
interface Wide {
  readonly high: number
  readonly low: number
}

interface ShardRange {
  readonly field: ShardField
  readonly text: string
  readonly start: Wide
  readonly end: Wide
}

const rangePattern =
  /([\s(]*)shardRange\s*\(\s*([\w.]+)\s*,\s*(?:'([^'\\]*)'|"([^"\\]*)")\s*,\s*(?:'([^'\\]*)'|"([^"\\]*)")\s*\)([\s)]*)(\|\||$)/y

/** Returns undefined for an empty text. Throws a 400 that says what is wrong. */
export function parseShardSelector(text: string): ShardSelector | undefined {
  if (text === '') return undefined
  checkSelectorBytes(text, 'shard')
  const ranges = parseRanges(text)
  const [{ field }] = ranges
  const other = ranges.find((range) => range.field !== field)
  if (other !== undefined) {
    const [quoted, quotedOther] = [goQuote(field), goQuote(other.field)]
    throw invalidShards(
      `all shard ranges must use the same field, got ${quoted} and ${quotedOther}`,
    )
  }
  const isInRange = rangeTest(ranges)
  return {
    field,
    text: ranges.map((range) => range.text).join(' || '),
    matches: (value) => isInRange(fnv1a(value)),
  }
}

/** Holds only numbers: a watch holds its selector for hours. */
function rangeTest(ranges: readonly ShardRange[]): (hash: Wide) => boolean {
  const bounds = Float64Array.from(
    ranges.flatMap(({ start, end }) => [start.high, start.low, end.high, end.low]),
  )
  const isBelow = ({ high, low }: Wide, at: number): boolean =>
    isLess(high, low, bounds[at] ?? 0, bounds[at + 1] ?? 0)
  return (hash) => {
    for (let at = 0; at < bounds.length; at += 4) {
      if (!isBelow(hash, at) && isBelow(hash, at + 2)) return true
    }
    return false
  }
}

function parseRanges(text: string): [ShardRange, ...ShardRange[]] {
  const pattern = new RegExp(rangePattern)
  const ranges: ShardRange[] = []
  let depth = 0
  for (;;) {
    const at = pattern.lastIndex
    const match = pattern.exec(text)
    if (match === null) throw invalidShards(syntaxProblem(text.slice(at)))
    const [, before = '', field = '', start, start2 = '', end, end2 = '', after = '', next] = match
    if (ranges.push(rangeOf(field, start ?? start2, end ?? end2)) > REQUIREMENTS_MAX) {
      throw invalidShards(`a shard selector has at most ${REQUIREMENTS_MAX} ranges`)
    }
    depth += countOf(before, '(') - countOf(after, ')')
    const [first, ...rest] = ranges
    const isEnd = next === ''
    if (depth < 0 || (isEnd && depth > 0)) throw invalidShards('its parentheses do not match')
    if (isEnd && first !== undefined) return [first, ...rest]
  }
}

function rangeOf(field: string, startText: string, endText: string): ShardRange {
  if (!isShardField(field)) {
    const supported = shardFields.join(', ')
    throw invalidShards(
      `unsupported field path ${goQuote(truncate(field))}; supported: ${supported}`,
    )
  }
  const start = boundOf('hexStart', startText)
  const end = boundOf('hexEnd', endText)
  if (!isLess(start.high, start.low, end.high, end.low)) {
    throw invalidShards(`shard range start ${startText} must be less than end ${endText}`)
  }
  return { field, start, end, text: `shardRange(${field}, '${startText}', '${endText}')` }
}

function isShardField(field: string): field is ShardField {
  return shardFields.includes(field)
}

function boundOf(name: string, text: string): Wide {
  if (!/^0x(?:[0-9a-f]{16}|10{16})$/.test(text)) {
    const [, digits] = /^0x([0-9a-f]{1,15})$/.exec(text) ?? []
    const meant =
      digits === undefined ? '' : ` (did you mean ${goQuote(`0x${digits.padStart(16, '0')}`)}?)`
    throw invalidShards(
      `${name} must be a 0x-prefixed 16-digit hex value in lower case, or 0x1${'0'.repeat(16)}, ` +
        `got ${goQuote(truncate(text))}${meant}`,
    )
  }
  return {
    high: Number.parseInt(text.slice(2, -8), 16),
    low: Number.parseInt(text.slice(-8), 16),
  }
}

function isLess(high: number, low: number, otherHigh: number, otherLow: number): boolean {
  return high === otherHigh ? low < otherLow : high < otherHigh
}

/**
 * FNV-1a. Its prime is 2^40 + 435, so that a product needs no integers above
 * 2^53, and no BigInt, which takes twenty times as long.
 */
function fnv1a(value: Uint8Array): Wide {
  let high = 0xcbf29ce4
  let low = 0x84222325
  for (let at = 0; at < value.length; at++) {
    low = (low ^ (value[at] ?? 0)) >>> 0
    const product = low * 435
    high = (high * 435 + Math.floor(product / 2 ** 32) + ((low << 8) >>> 0)) % 2 ** 32
    low = product >>> 0
  }
  return { high, low }
}

function countOf(text: string, letter: string): number {
  return text.split(letter).length - 1
}

function syntaxProblem(rest: string): string {
  const found = rest.trim() === '' ? 'nothing' : goQuote(truncate(rest))
  return `expected shardRange(object.metadata.uid, '0x<16 hex digits>', '0x<16 hex digits>'), found ${found}`
}

function invalidShards(problem: string): StatusError {
  return badRequest(`invalid shard selector: ${problem}`)
}
