/** Who and what most events come from. */
import { percentOf } from './numbers.ts'
import type { Query } from './query.ts'

export type SourceField = 'controller' | 'namespace' | 'reason' | 'object' | 'user'

/** What the server calls all values that have no group of their own. */
export const OTHERS = '_other'

/** The values for which rates are known: those that are written, in all namespaces. */
export function hasRate(field: SourceField, { namespace }: Pick<Query, 'namespace'>): boolean {
  return field !== 'object' && namespace === ''
}

/** The name of a group in histograms by that field. Objects of all clusters begin with theirs. */
export function seriesName(field: SourceField, values: Readonly<Record<string, string>>): string {
  const { cluster } = values
  const value = values[field] ?? ''
  return field === 'object' && cluster !== undefined ? `${cluster}/${value}` : value
}

/** Where a click on a value leads to; undefined for a value that cannot be selected. */
export function leadsTo(
  field: SourceField,
  values: Readonly<Record<string, string>>,
): Partial<Query> | undefined {
  const value = values[field] ?? ''
  // The server has shortened a long value.
  if (value === '' || value === OTHERS || value.includes('… ')) return undefined
  switch (field) {
    case 'controller':
      return { view: 'overview', controller: value }
    case 'namespace':
      return { view: 'overview', namespace: value }
    case 'reason':
      return { view: 'overview', reason: value }
    case 'object': {
      const { cluster } = values
      return { view: 'object', about: value, ...(cluster === undefined ? {} : { cluster }) }
    }
    case 'user':
      return undefined
  }
}

/** Values as they are shown. */
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
  readonly counts: ReadonlyMap<string, number>
}

export interface SparkData {
  readonly values: readonly number[]
  /** The bucket in which it was seen most. */
  readonly peak: { readonly fromMs: number; readonly count: number }
}

/**
 * How often each name was seen over time. Names that were seen are in the map; if others are missing
 * it may be that the server counted them together.
 */
export function sparklines(buckets: readonly TimedCounts[]): ReadonlyMap<string, SparkData> {
  const names = new Set(buckets.flatMap(({ counts }) => [...counts.keys()]))
  return new Map(
    [...names].map((name) => {
      const values = buckets.map(({ counts }) => counts.get(name) ?? 0)
      const count = Math.max(...values)
      return [
        name,
        { values, peak: { fromMs: buckets[values.indexOf(count)]?.fromMs ?? 0, count } },
      ]
    }),
  )
}
