import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { type Query, readQuery, writeQuery } from '../model/query.ts'
import { boundedSpan } from '../model/range.ts'
import type { Page } from '../parts/page.ts'

/**
 * The query in the URL, and a function that changes both. `onMove` is called when the query selects
 * different events.
 */
export function useQuery(onMove: () => void): {
  readonly query: Query
  readonly change: Page['change']
} {
  const [query, setQuery] = useState(() => readQuery(location.search))
  /** Includes changes that are not rendered yet. */
  const latest = useRef({ query, search: location.search })
  const show = (after: Query): void => {
    latest.current = { query: after, search: location.search }
    setQuery(after)
  }
  useEffect(() => {
    const onPopState = (): void => {
      // Otherwise only the fragment has changed.
      if (location.search === latest.current.search) return
      show(readQuery(location.search))
      onMove()
    }
    window.addEventListener('popstate', onPopState)
    return () => window.removeEventListener('popstate', onPopState)
  }, [])
  const change: Page['change'] = useCallback((changed, { isMinor = false } = {}) => {
    const merged = { ...latest.current.query, ...changed }
    const { range } = merged
    const after = {
      ...merged,
      range: 'last' in range ? range : boundedSpan(range, Date.now()),
      // One object is searched for, not every one that is visited later.
      history: merged.view === 'object' ? merged.history : undefined,
    }
    const search = writeQuery(after)
    const url = `${location.pathname}${search}`
    if (isMinor) history.replaceState(null, '', url)
    else if (search !== location.search) history.pushState(null, '', url)
    show(after)
    // A different query should show the current state.
    if (!isMinor) onMove()
  }, [])
  return { query, change }
}
