import type { JSX } from 'preact'
import { usePage } from '../parts/page.ts'

/** The filters and the time range, the same for all views of events. */
export function FilterBar(): JSX.Element {
  const { query, change, refresh } = usePage()
  return (
    <search class="filters">
      <input
        aria-label="Namespace"
        placeholder="Namespace"
        value={query.namespace}
        onChange={(event) => change({ namespace: event.currentTarget.value.trim() })}
      />
      <button type="button" onClick={refresh}>
        Refresh
      </button>
    </search>
  )
}
