import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { type Query, readQuery, writeQuery } from '../model/query.ts'
import { boundedSpan } from '../model/range.ts'
import type { Page } from '../parts/page.ts'

/** The query in the URL, and a function that changes both. `onMove`: other events are asked for. */
export function useQuery(onMove: () => void): {
  readonly query: Query
  readonly change: Page['change']
} {
  const [query, setQuery] = useState(() => readQuery(location.search))
  /** Also of changes that are not rendered yet. */
  const latest = useRef({ query, search: location.search })
  const show = (after: Query): void => {
    latest.current = { query: after, search: location.search }
    setQuery(after)
  }
  useEffect(() => {
    const onPopState = (): void => {
      // Else only the fragment has changed.
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
    const after = { ...merged, range: 'last' in range ? range : boundedSpan(range, Date.now()) }
    const search = writeQuery(after)
    const url = `${location.pathname}${search}`
    if (isMinor) history.replaceState(null, '', url)
    else if (search !== location.search) history.pushState(null, '', url)
    show(after)
    // Whoever looks at something else wants to see how it is now.
    if (!isMinor) onMove()
  }, [])
  return { query, change }
}
