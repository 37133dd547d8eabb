import type { JSX } from 'preact'
import { listClusters } from '../../api/clusters.ts'
import { visible } from '../../model/visible.ts'
import { usePage } from '../../parts/page.ts'
import { useLoad } from '../../parts/use-load.ts'
import { useMayReadAll } from '../../parts/use-may-read-all.ts'

/**
 * Selects the cluster. Renders nothing if there is only one, or if the user may not list clusters.
 */
export function ClusterSelect(): JSX.Element | null {
  const { client, query, change } = usePage()
  const { data = [] } = useLoad((signal) => listClusters(client, signal).catch(() => []), {
    what: [client],
  })
  const mayReadAll = useMayReadAll()
  const names = data.map(({ name }) => name)
  if (names.length < 2 && query.cluster === '') return null
  const others = ['', '*', ...names].includes(query.cluster) ? [] : [query.cluster]
  return (
    <span class={query.cluster === '' ? 'filter' : 'filter filter-active'}>
      <select
        aria-label="Cluster"
        value={query.cluster}
        onChange={(event) => change({ cluster: event.currentTarget.value })}
      >
        <option value="">Default cluster</option>
        {(mayReadAll || query.cluster === '*') && <option value="*">All clusters</option>}
        {[...names, ...others].map((name) => (
          <option key={name} value={name}>
            {visible(name)}
          </option>
        ))}
      </select>
    </span>
  )
}
