import '../styles/clusters.css'
import type { ComponentChildren, JSX } from 'preact'
import { type ClusterRow, listClusters } from '../api/clusters.ts'
import { countText } from '../model/numbers.ts'
import { mirrorText } from '../model/server/mirror.ts'
import { localTime } from '../model/times.ts'
import { EventTime } from '../parts/event-time.tsx'
import { usePage } from '../parts/page.ts'
import { EmptyPanel, ErrorPanel } from '../parts/panels.tsx'
import { PlainText } from '../parts/plain-text.tsx'
import { QueryLink } from '../parts/query-link.tsx'
import { StateIcon } from '../parts/server/state-icon.tsx'
import { useMayReadAll } from '../parts/use-may-read-all.ts'
import { usePoll } from '../parts/use-poll.ts'

const POLL_MS = 15_000

/** Lists the clusters whose events are stored here, and how far behind their mirrors are. */
export function ClustersView(): JSX.Element {
  const { client } = usePage()
  const { data, error, atMs, again } = usePoll(
    { load: (signal) => listClusters(client, signal), everyMs: () => POLL_MS },
    [client],
  )
  return (
    <>
      <div class="clusters-head">
        <h1>Clusters</h1>
        {atMs !== undefined && (
          <span class="clusters-time">
            {error === undefined ? '' : 'No answer since then: '}as of {localTime(atMs).slice(11)}
          </span>
        )}
      </div>
      {error !== undefined && <ErrorPanel error={error} onRetry={again} isManual />}
      {error?.code === 403 && <MissingPermission />}
      {data === undefined && error === undefined && <p>Loading clusters…</p>}
      {data !== undefined && error?.code !== 403 && <Clusters rows={data} nowMs={atMs ?? 0} />}
    </>
  )
}

function MissingPermission(): JSX.Element {
  return (
    <p>
      Clusters are listed to those who may <code>list</code> the resource{' '}
      <code>clusters.tidings.dev</code>: the role <code>view</code>, bound for the whole cluster and
      not for single namespaces, has it. The other views show you what you may read, with or without
      it.
    </p>
  )
}

interface ClustersProps {
  readonly rows: readonly ClusterRow[]
  readonly nowMs: number
}

function Clusters({ rows, nowMs }: ClustersProps): JSX.Element {
  const mayReadAll = useMayReadAll()
  return (
    <>
      {rows.length === 0 && (
        <EmptyPanel title="There is no cluster that you may read">
          A cluster is listed to those who may list the events of all its namespaces.
        </EmptyPanel>
      )}
      {rows.length > 0 && (
        <table class="clusters">
          <thead>
            <tr>
              <th scope="col">Cluster</th>
              <th scope="col" class="clusters-number">
                Events
              </th>
              <th scope="col">Oldest</th>
              <th scope="col">Last event</th>
              <th scope="col">Mirror</th>
            </tr>
          </thead>
          <tbody>
            {mayReadAll && rows.length > 1 && <AllClusters rows={rows} nowMs={nowMs} />}
            {rows.map((row) => (
              <Cluster key={row.name} row={row} nowMs={nowMs} />
            ))}
          </tbody>
        </table>
      )}
      {rows.length === 1 && <OneCluster />}
    </>
  )
}

function OneCluster(): JSX.Element {
  return (
    <EmptyPanel title="You see one cluster here">
      It is the only one that this server has, or that you may read. A server can hold the events of
      many: those of other clusters are mirrored from their API servers, or written to paths that
      begin with <code>/clusters/NAME</code>. Then they are compared here, and every view can show
      one of them or all. To add one, name it in the file of the server's flag{' '}
      <code>--clusters-file</code>, or let its programs write to its path.
    </EmptyPanel>
  )
}

function AllClusters({ rows, nowMs }: ClustersProps): JSX.Element {
  const { query } = usePage()
  const times = (name: 'oldestMs' | 'newestMs'): readonly number[] =>
    rows.flatMap((row) => row[name] ?? [])
  const total = rows.reduce((sum, { events }) => sum + events, 0)
  return (
    <tr>
      <th scope="row">
        <QueryLink to={{ view: 'overview', cluster: '*' }} isCurrent={query.cluster === '*'}>
          all clusters
        </QueryLink>
      </th>
      <Cell label="Events" class="clusters-number">
        {countText(total)}
      </Cell>
      <TimeCell label="Oldest" ms={least(times('oldestMs'))} nowMs={nowMs} />
      <TimeCell label="Last event" ms={most(times('newestMs'))} nowMs={nowMs} />
      <Cell label="Mirror">–</Cell>
    </tr>
  )
}

function Cluster({
  row,
  nowMs,
}: {
  readonly row: ClusterRow
  readonly nowMs: number
}): JSX.Element {
  const { query } = usePage()
  const { name, events, oldestMs, newestMs } = row
  return (
    <tr>
      <th scope="row">
        <QueryLink
          to={{ view: 'overview', cluster: name }}
          isCurrent={query.cluster === name}
          title={`Show the events of ${name}`}
        >
          <PlainText text={name} />
        </QueryLink>
      </th>
      <Cell label="Events" class="clusters-number">
        {countText(events)}
      </Cell>
      <TimeCell label="Oldest" ms={oldestMs} nowMs={nowMs} />
      <TimeCell label="Last event" ms={newestMs} nowMs={nowMs} />
      <Cell label="Mirror">
        <Mirror row={row} />
      </Cell>
    </tr>
  )
}

function Mirror({ row: { mirror } }: { readonly row: ClusterRow }): JSX.Element {
  const { icon, title, detail } = mirrorText(mirror)
  return (
    <span class={icon === 'bad' ? 'mirror mirror-stalled' : 'mirror'}>
      {icon !== undefined && <StateIcon icon={icon} />}
      <strong>{title}</strong> {detail}
      {mirror !== undefined && mirror.message !== '' && (
        <span class="mirror-message">
          <PlainText text={mirror.message} />
        </span>
      )}
    </span>
  )
}

interface CellProps {
  /** The column's heading, repeated on small screens. */
  readonly label: string
  readonly class?: string
  readonly children: ComponentChildren
}

function Cell({ label, children, ...others }: CellProps): JSX.Element {
  return (
    <td data-label={label} {...others}>
      {children}
    </td>
  )
}

function TimeCell({
  label,
  ms,
  nowMs,
}: {
  readonly label: string
  readonly ms: number | undefined
  readonly nowMs: number
}): JSX.Element {
  return (
    <Cell label={label}>
      {ms === undefined ? '–' : <EventTime ms={ms} nowMs={nowMs} isInSentence />}
    </Cell>
  )
}

function least(times: readonly number[]): number | undefined {
  return times.length === 0 ? undefined : Math.min(...times)
}

function most(times: readonly number[]): number | undefined {
  return times.length === 0 ? undefined : Math.max(...times)
}
