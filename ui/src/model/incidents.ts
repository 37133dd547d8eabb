/** What happens to one workload for one reason, with notes of the same wording. */
import type { Filters } from './query.ts'
import { exactFilter } from './selector.ts'
import { isSelectable } from './sources.ts'

/** The fields of an incident. The server adds the namespace and the cluster where there are several. */
export const INCIDENT_FIELDS = 'workload,reason,pattern'

/** The filters that select an incident. A value that no filter can select is left out. */
export function incidentFilters(values: Readonly<Record<string, string>>): Partial<Filters> {
  const { cluster = '', namespace = '', workload = '', reason = '', pattern = '' } = values
  const found: Partial<Filters> = {
    // These are parts of the path, where `*` and `|` have no meaning.
    cluster,
    namespace,
    // Names of other systems may contain a slash, which the server does not accept.
    workload: WORKLOAD.test(workload) ? exactFilter(workload) : '',
    reason: exactFilter(reason),
    pattern,
  }
  return Object.fromEntries(Object.entries(found).filter(([, value]) => isSelectable(value)))
}

const WORKLOAD = /^[^/]+\/[^/]+$/
