import type { Filters } from './query.ts'
import type { Span } from './range.ts'

/** The field label of each filter, except cluster and namespace, which are in the path. */
const LABELS = [
  ['kind', 'involvedObject.kind'],
  ['object', 'involvedObject.name'],
  ['workload', 'workload'],
  ['node', 'node'],
  ['reason', 'reason'],
  ['pattern', 'pattern'],
  ['type', 'type'],
  ['controller', 'controller'],
  ['text', 'text'],
] as const satisfies readonly (readonly [keyof Filters, string])[]

/**
 * Returns a field selector for the filters and the span, if there is one. Empty if it selects
 * everything.
 */
export function fieldSelector(filters: Filters, span?: Partial<Span>): string {
  const terms = LABELS.filter(([name]) => filters[name] !== '').map(
    ([name, label]) => `${label}=${(name === 'text' ? escaped : patternOf)(filters[name])}`,
  )
  if (span?.fromMs !== undefined) terms.push(`since=${new Date(span.fromMs).toISOString()}`)
  if (span?.toMs !== undefined) terms.push(`until=${new Date(span.toMs).toISOString()}`)
  return terms.join(',')
}

/** Escapes the characters that have a meaning in a field selector. */
export function escaped(value: string): string {
  return value.replaceAll(/[\\,=|*]/g, '\\$&')
}

/** The value of a filter in which `A|B` means either, and `web-*` everything that begins so. */
function patternOf(filter: string): string {
  return filter.replaceAll(/\\[\\|*]|[\\,=]/g, (found) => (found.length > 1 ? found : `\\${found}`))
}

/** The filter for exactly this value. */
export function exactFilter(value: string): string {
  return /[|*]|\\\\/.test(value) ? value.replaceAll(/[\\|*]/g, '\\$&') : value
}
