/** The context of every view, provided by the shell. */
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
   * Changes the query and the URL. By default this adds a step to the browser's history and
   * refreshes the page; a minor change does neither.
   */
  readonly change: (change: Partial<Query>, options?: { readonly isMinor?: boolean }) => void
  /** The end of ranges that end now: advances when the page is refreshed. */
  readonly nowMs: number
  readonly refresh: () => void
  /** Prevents automatic refreshes until the returned function is called. */
  readonly hold: () => () => void
  /**
   * Warnings in the range, whichever type is selected; undefined if the view does not count them.
   */
  readonly warnings: number | undefined
  readonly foundWarnings: (count: number | undefined) => void
  /** Announces a message, including to screen readers. */
  readonly announce: (message: string) => void
}

export const PageContext: ReturnType<typeof createContext<Page | undefined>> = createContext<
  Page | undefined
>(undefined)

/** Prevents automatic refreshes while one would disturb the user. */
export function useHold(isHeld: boolean): void {
  const hold = useContext(PageContext)?.hold
  useEffect(() => (isHeld ? hold?.() : undefined), [isHeld, hold])
}

export function usePage(): Page {
  const page = useContext(PageContext)
  if (page === undefined) throw new Error('there is no page around this part')
  return page
}
