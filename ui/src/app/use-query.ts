import { useCallback, useEffect, useState } from 'preact/hooks'
import { type Query, readQuery, writeQuery } from '../model/query.ts'
import type { Page } from '../parts/page.ts'

/** The query in the URL, and a function that changes both. */
export function useQuery(): { readonly query: Query; readonly change: Page['change'] } {
  const [query, setQuery] = useState(() => readQuery(location.search))
  useEffect(() => {
    const onPopState = (): void => setQuery(readQuery(location.search))
    window.addEventListener('popstate', onPopState)
    return () => window.removeEventListener('popstate', onPopState)
  }, [])
  const change: Page['change'] = useCallback((changed, { isMinor = false } = {}) => {
    setQuery((before) => {
      const after = { ...before, ...changed }
      const url = `${location.pathname}${writeQuery(after)}`
      if (isMinor) history.replaceState(null, '', url)
      else if (url !== `${location.pathname}${location.search}`) history.pushState(null, '', url)
      return after
    })
  }, [])
  return { query, change }
}
