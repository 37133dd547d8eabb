import type { SelectableField } from '../../api/selectors/field-selector.ts'
import type { Requires } from '../../storage/requires.ts'
import type { GroupField } from '../../storage/summary.ts'

/** What all states of an event have in common. */
const STEADY_FIELDS: ReadonlySet<SelectableField> = new Set<SelectableField>([
  'metadata.name',
  'metadata.namespace',
  'type',
  'reason',
  'action',
  'controller',
  'reportingController',
  'reportingInstance',
  'source',
  'regarding.kind',
  'regarding.namespace',
  'regarding.name',
  'regarding.uid',
  'regarding.apiVersion',
])

/** Whether all rows of an event match, or none, and all that do are in the same group. */
export function isSteady(groupBy: readonly GroupField[], requires: Requires = {}): boolean {
  const { texts, mentions, workloads, nodes, notePatterns, fields = [] } = requires
  return (
    !groupBy.includes('pattern') &&
    !groupBy.includes('workload') &&
    [texts, mentions, workloads, nodes, notePatterns].every((one) => one === undefined) &&
    fields.every(({ field }) => STEADY_FIELDS.has(field))
  )
}
