/** What every view needs. Provided by the shell. */
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { ApiClient } from '../api/client.ts'
import type { Caller } from '../api/session.ts'
import type { Query } from '../model/query.ts'

export interface Page {
  readonly client: ApiClient
  readonly caller: Caller
  readonly query: Query
  /** Changes the query and the URL. By default the change is a step of the browser's history. */
  readonly change: (change: Partial<Query>, options?: { readonly isMinor?: boolean }) => void
  /** The time at which ranges that end now end: moves when the page is refreshed. */
  readonly nowMs: number
  readonly refresh: () => void
  /** Tells the user, also those who do not see the page. */
  readonly announce: (message: string) => void
}

export const PageContext: ReturnType<typeof createContext<Page | undefined>> = createContext<
  Page | undefined
>(undefined)

export function usePage(): Page {
  const page = useContext(PageContext)
  if (page === undefined) throw new Error('there is no page around this part')
  return page
}
