import type { Basis } from '../api/answer.ts'
import { type SourceGroup, summary } from '../api/summaries.ts'
import { INCIDENT_FIELDS } from '../model/incidents.ts'
import { questionOf } from '../model/query.ts'
import { listedSpan } from '../model/range.ts'
import { usePage } from '../parts/page.ts'
import { type Loaded, useLoad } from '../parts/use-load.ts'

/** More would hide the events below them. */
const INCIDENTS_MAX = 10

export interface Incidents {
  /** Those with Warnings first, then those that began last. */
  readonly groups: readonly SourceGroup[]
  readonly hasMore: boolean
  readonly basis: Basis
}

export function useIncidents(): Loaded<Incidents> {
  const { client, query, nowMs } = usePage()
  return useLoad(
    async (signal) => {
      const { groups, basis } = await summary(client, {
        ...{ filters: query, span: listedSpan(query.range, nowMs), signal },
        ...{ groupBy: INCIDENT_FIELDS, order: 'newest', limit: INCIDENTS_MAX + 1 },
      })
      const hasMore = groups.length > INCIDENTS_MAX
      return { groups: groups.slice(0, INCIDENTS_MAX), hasMore, basis }
    },
    { what: [client, questionOf(query)], when: [nowMs] },
  )
}
