/** What every view needs. Provided by the shell. */
import { createContext } from 'preact'
import { useContext, useEffect } from 'preact/hooks'
import type { ApiClient } from '../api/client.ts'
import type { Caller } from '../api/session.ts'
import type { Query } from '../model/query.ts'

export interface Page {
  readonly client: ApiClient
  readonly caller: Caller
  readonly query: Query
  /**
   * Changes the query and the URL. By default the change is a step of the browser's history, and
   * refreshes the page; a minor one does neither.
   */
  readonly change: (change: Partial<Query>, options?: { readonly isMinor?: boolean }) => void
  /** The time at which ranges that end now end: moves when the page is refreshed. */
  readonly nowMs: number
  readonly refresh: () => void
  /** Prevents automatic refreshes until the returned function is called. */
  readonly hold: () => () => void
  /** Warnings in the range, whatever type is chosen; undefined when the view does not count them. */
  readonly warnings: number | undefined
  readonly foundWarnings: (count: number | undefined) => void
  /** Tells the user, also those who do not see the page. */
  readonly announce: (message: string) => void
}

export const PageContext: ReturnType<typeof createContext<Page | undefined>> = createContext<
  Page | undefined
>(undefined)

/** Prevents automatic refreshes as long as the user would be disturbed by one. */
export function useHold(isHeld: boolean): void {
  const hold = useContext(PageContext)?.hold
  useEffect(() => (isHeld ? hold?.() : undefined), [isHeld, hold])
}

export function usePage(): Page {
  const page = useContext(PageContext)
  if (page === undefined) throw new Error('there is no page around this part')
  return page
}
