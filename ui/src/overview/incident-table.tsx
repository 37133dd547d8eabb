import '../styles/incidents.css'
import type { JSX } from 'preact'
import type { SourceGroup } from '../api/summaries.ts'
import { incidentFilters } from '../model/incidents.ts'
import { countText } from '../model/numbers.ts'
import { isolated } from '../model/visible.ts'
import { EventTime } from '../parts/event-time.tsx'
import { useNow } from '../parts/events/use-now.ts'
import { usePage } from '../parts/page.ts'
import { PlainText } from '../parts/plain-text.tsx'
import { QueryLink } from '../parts/query-link.tsx'
import { TypeMark } from '../parts/type-mark.tsx'
import type { Loaded } from '../parts/use-load.ts'
import type { Incidents } from './use-incidents.ts'

/** Shows what is going on. Renders nothing if that is nothing, or unknown. */
export function IncidentTable({
  incidents,
}: {
  readonly incidents: Loaded<Incidents>
}): JSX.Element | null {
  const { data, error, isLoading, isCancelled } = incidents
  const isUnknown = error !== undefined || isCancelled
  if (data === undefined ? isUnknown : data.groups.length === 0) return null
  return (
    <section class="incidents" aria-busy={isLoading}>
      <h2 id="incidents">Incidents</h2>
      {data === undefined ? <p class="muted">Counting…</p> : <Table groups={data.groups} />}
      {data?.hasMore === true && (
        <p class="muted">
          These are the first {data.groups.length}, Warnings and the newest first. Choose a shorter
          range, or filter, to see others.
        </p>
      )}
    </section>
  )
}

/** Class and heading of each column; the same word names the values on narrow screens. */
const COLUMNS = {
  type: 'Type',
  cluster: 'Cluster',
  namespace: 'Namespace',
  workload: 'Workload',
  reason: 'Reason',
  occurrences: 'Occurrences',
  objects: 'Objects',
  first: 'First',
  last: 'Last',
  note: 'Last note',
} as const

type Column = keyof typeof COLUMNS

function Table({ groups }: { readonly groups: readonly SourceGroup[] }): JSX.Element {
  const { query } = usePage()
  const nowMs = useNow()
  const columns = (Object.keys(COLUMNS) as readonly Column[]).filter(
    (column) =>
      (column !== 'cluster' || query.cluster === '*') &&
      (column !== 'namespace' || query.namespace === ''),
  )
  return (
    <table aria-labelledby="incidents">
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column} scope="col" class={`incident-${column}`}>
              {COLUMNS[column]}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {groups.map((group) => (
          <tr key={JSON.stringify(group.values)} class={isWarning(group) ? 'incident-warning' : ''}>
            {columns.map((column) => (
              <Cell key={column} column={column} group={group} nowMs={nowMs} />
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

interface CellProps {
  readonly column: Column
  readonly group: SourceGroup
  readonly nowMs: number
}

function Cell({ column, group, nowMs }: CellProps): JSX.Element {
  const { values, note } = group
  const shared = { class: `incident-${column}`, 'data-label': COLUMNS[column] }
  switch (column) {
    case 'workload':
      return (
        <th scope="row" {...shared}>
          <QueryLink
            to={incidentFilters(values)}
            title={`Show only this incident of ${isolated(values[column] ?? '')}`}
          >
            <PlainText text={values[column] ?? ''} />
          </QueryLink>
        </th>
      )
    case 'type':
      return (
        <td {...shared}>
          <TypeMark type={isWarning(group) ? 'Warning' : 'Normal'} />
        </td>
      )
    case 'occurrences':
      return (
        <td {...shared} title={group.isEstimated ? ESTIMATED : undefined}>
          {group.isEstimated && '≈ '}
          {countText(group.occurrences)}
        </td>
      )
    case 'objects':
      return <td {...shared}>{countText(group.objects)}</td>
    case 'first':
    case 'last': {
      const ms = column === 'first' ? group.firstMs : group.lastMs
      return <td {...shared}>{ms !== undefined && <EventTime ms={ms} nowMs={nowMs} />}</td>
    }
    default: {
      const text = column === 'note' ? note : (values[column] ?? '')
      return (
        <td {...shared} title={isolated(text)}>
          <PlainText text={text} />
        </td>
      )
    }
  }
}

const ESTIMATED = 'Estimated: some may have been outside of the range, or others within it'

function isWarning({ warnings }: SourceGroup): boolean {
  return warnings > 0
}
