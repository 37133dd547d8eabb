import type { Filters } from './query.ts'
import type { Span } from './range.ts'

/** The field label of each filter but the cluster and the namespace, which are in the path. */
const LABELS = [
  ['kind', 'involvedObject.kind'],
  ['object', 'involvedObject.name'],
  ['reason', 'reason'],
  ['type', 'type'],
  ['controller', 'controller'],
  ['text', 'text'],
] as const satisfies readonly (readonly [keyof Filters, string])[]

/** A field selector for the filters and, if there is one, the span. Empty: selects everything. */
export function fieldSelector(filters: Filters, span?: Partial<Span>): string {
  const terms = LABELS.filter(([name]) => filters[name] !== '').map(
    ([name, label]) => `${label}=${escaped(filters[name])}`,
  )
  if (span?.fromMs !== undefined) terms.push(`since=${new Date(span.fromMs).toISOString()}`)
  if (span?.toMs !== undefined) terms.push(`until=${new Date(span.toMs).toISOString()}`)
  return terms.join(',')
}

/** In a field selector, a backslash takes the meaning from these. */
export function escaped(value: string): string {
  return value.replaceAll(/[\\,=]/g, '\\$&')
}
