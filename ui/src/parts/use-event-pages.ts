import { useEffect, useState } from 'preact/hooks'
import { type ApiError, asApiError } from '../api/api-error.ts'
import { isAborted } from '../api/client.ts'
import type { EventPage } from '../api/events.ts'
import type { EventRow } from '../model/event-row.ts'

export interface LoadedPages {
  readonly rows: readonly EventRow[]
  readonly isLoading: boolean
  /** There are events behind these, which are not loaded. */
  readonly hasMore: boolean
  /** Why a page could not be loaded. The rows of the pages before it stay. */
  readonly error: ApiError | undefined
}

export interface PagesOptions {
  readonly load: (after: string, signal: AbortSignal) => Promise<EventPage>
  /** No page is loaded when there are so many rows. */
  readonly rowsMax: number
}

const NOTHING: LoadedPages = { rows: [], isLoading: true, hasMore: false, error: undefined }

/**
 * Loads page after page when `inputs` change, and shows what is there. The old rows stay until
 * there are new ones, so that nothing flickers.
 */
export function useEventPages(
  { load, rowsMax }: PagesOptions,
  inputs: readonly unknown[],
): LoadedPages {
  const [state, setState] = useState(NOTHING)
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    const loadAll = async (): Promise<void> => {
      let rows: readonly EventRow[] = []
      let after = ''
      do {
        const page = await load(after, signal)
        if (signal.aborted) return
        rows = [...rows, ...page.rows]
        after = page.next
        const hasMore = after !== ''
        setState({ rows, isLoading: hasMore && rows.length < rowsMax, hasMore, error: undefined })
      } while (after !== '' && rows.length < rowsMax)
    }
    setState((before) => ({ ...before, isLoading: true, error: undefined }))
    loadAll().catch((error: unknown) => {
      if (signal.aborted || isAborted(error)) return
      setState((before) => ({ ...before, isLoading: false, error: asApiError(error) }))
    })
    return () => controller.abort()
  }, inputs)
  return state
}
