/** Ranks where events come from. */
import { percentOf } from './numbers.ts'
import type { Query } from './query.ts'
import { exactFilter } from './selector.ts'

export type SourceField = 'controller' | 'namespace' | 'reason' | 'object' | 'user'

/** The server's name for all values without their own group. */
export const OTHERS = '_other'

/** The server knows rates only for fields of writes, and only across all namespaces. */
export function hasRate(field: SourceField, { namespace }: Pick<Query, 'namespace'>): boolean {
  return field !== 'object' && namespace === ''
}

/**
 * The group's name in histograms by that field. With all clusters, objects are prefixed with
 * theirs.
 */
export function seriesName(field: SourceField, values: Readonly<Record<string, string>>): string {
  const { cluster } = values
  const value = values[field] ?? ''
  return field === 'object' && cluster !== undefined ? `${cluster}/${value}` : value
}

/** Where a click on a value leads; undefined if the value cannot be selected. */
export function leadsTo(
  field: SourceField,
  values: Readonly<Record<string, string>>,
): Partial<Query> | undefined {
  const value = values[field] ?? ''
  if (!isSelectable(value)) return undefined
  switch (field) {
    case 'controller':
      return { view: 'overview', controller: exactFilter(value) }
    case 'namespace':
      return { view: 'overview', namespace: value }
    case 'reason':
      return { view: 'overview', reason: exactFilter(value) }
    case 'object': {
      const { cluster } = values
      return { view: 'object', about: value, ...(cluster === undefined ? {} : { cluster }) }
    }
    case 'user':
      return undefined
  }
}

/** Whether a filter can select the value: the server has not shortened it. */
export function isSelectable(value: string): boolean {
  return value !== '' && value !== OTHERS && !value.includes('… ')
}

/** Formats a value. */
export function valueText(value: string): string {
  if (value === '') return '(none)'
  return value === OTHERS ? 'all others' : value
}

/** `31 % Warnings`, `no Warnings`, `Warnings only` */
export function warningsText(warnings: number, occurrences: number): string {
  const percent = percentOf(warnings, occurrences)
  if (percent === 0) return 'no Warnings'
  return percent === 100 ? 'Warnings only' : `${percent} % Warnings`
}

interface TimedCounts {
  readonly fromMs: number
  readonly toMs: number
  readonly counts: ReadonlyMap<string, number>
}

export interface SparkData {
  /** Occurrences in each bucket, as if all buckets were equally long. */
  readonly values: readonly number[]
  /** The bucket with the most occurrences. */
  readonly peak: { readonly fromMs: number; readonly count: number }
}

/**
 * Occurrences over time for each name. A missing name may have been counted with others by the
 * server.
 */
export function sparklines(buckets: readonly TimedCounts[]): ReadonlyMap<string, SparkData> {
  const meanMs = ((buckets.at(-1)?.toMs ?? 0) - (buckets[0]?.fromMs ?? 0)) / buckets.length
  const names = new Set(buckets.flatMap(({ counts }) => [...counts.keys()]))
  return new Map(
    [...names].map((name) => {
      const found = buckets.map(({ counts }) => counts.get(name) ?? 0)
      const values = buckets.map(({ fromMs, toMs }, index) =>
        toMs > fromMs ? ((found[index] ?? 0) * meanMs) / (toMs - fromMs) : 0,
      )
      const count = Math.max(...found)
      const peak = { fromMs: buckets[found.indexOf(count)]?.fromMs ?? 0, count }
      return [name, { values, peak }]
    }),
  )
}
