import { exactly, type ValuePattern } from '../../api/selectors/value-pattern.ts'
import type { EventKey } from '../../storage/storage.ts'
import { keyAfter, type OrderRange, orderRange } from '../memory/order-key.ts'
import type { Query } from './query.ts'

/** More ranges take longer to find than the keys between them take to pass. */
const rangesMax = 64

/**
 * The keys of the scope behind `after` that the required namespaces and names allow: ranges in
 * order, which do not overlap. Only ranges that cannot be narrowed have other keys.
 */
export function keyRanges(
  { scope, selector }: Query,
  after: EventKey | undefined,
): readonly OrderRange[] {
  const whole = orderRange(scope, after)
  const { cluster, namespace } = scope
  const { names, namespaces } = selector?.requires ?? {}
  const homes = namespace === undefined ? namespaces : exactly(namespace)
  if (cluster === undefined || homes === undefined) return [whole]
  if (namespace !== undefined && names === undefined) return [whole]
  const isNamed = names !== undefined && homes.length * names.length <= rangesMax
  const found = homes.flatMap((home) => {
    if (home.isPrefix || !isNamed) return [rangeOf(`${cluster}/`, home, '/')]
    return names.map((name) => rangeOf(`${cluster}/${home.text}/`, name, ''))
  })
  return disjoint(found)
    .map((range) => intersection(range, whole))
    .filter(({ start, end }) => end === undefined || start.compare(end) < 0)
}

/** The keys that begin with `path` and a match, which `end` follows. */
function rangeOf(path: string, { text, isPrefix }: ValuePattern, end: '' | '/'): OrderRange {
  const start = Buffer.from(`${path}${text}${isPrefix ? '' : end}`)
  return { start, end: isPrefix || end !== '' ? behindPrefix(start) : keyAfter(start) }
}

/** The first key that is after all keys with this prefix. No byte of UTF-8 is 255. */
function behindPrefix(prefix: Buffer): Buffer {
  const end = Buffer.from(prefix)
  end[end.length - 1] = (end.at(-1) ?? 0) + 1
  return end
}

/** Sorts the ranges, and joins those that overlap. */
function disjoint(ranges: readonly OrderRange[]): readonly OrderRange[] {
  const found: OrderRange[] = []
  for (const range of ranges.toSorted((one, other) => one.start.compare(other.start))) {
    const last = found.at(-1)
    if (last === undefined || isBefore(last, range.start)) found.push(range)
    else found[found.length - 1] = { start: last.start, end: later(last.end, range.end) }
  }
  return found
}

function isBefore({ end }: OrderRange, key: Buffer): boolean {
  return end !== undefined && end.compare(key) < 0
}

function intersection(one: OrderRange, other: OrderRange): OrderRange {
  return {
    start: one.start.compare(other.start) < 0 ? other.start : one.start,
    end: earlier(one.end, other.end),
  }
}

/** Undefined is after all keys. */
function later(one: Buffer | undefined, other: Buffer | undefined): Buffer | undefined {
  if (one === undefined || other === undefined) return undefined
  return one.compare(other) < 0 ? other : one
}

function earlier(one: Buffer | undefined, other: Buffer | undefined): Buffer | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return one.compare(other) < 0 ? one : other
}
