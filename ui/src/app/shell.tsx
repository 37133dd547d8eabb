/** The frame around every view: navigation, filters, the view, the status of the server. */
import type { JSX } from 'preact'
import { useCallback, useMemo, useState } from 'preact/hooks'
import { ClustersView } from '../clusters/clusters-view.tsx'
import { LanesView } from '../lanes/lanes-view.tsx'
import type { View } from '../model/query.ts'
import { ObjectView } from '../object/object-view.tsx'
import { OverviewView } from '../overview/overview-view.tsx'
import { type Page, PageContext } from '../parts/page.ts'
import { SourcesView } from '../sources/sources-view.tsx'
import { StatusFooter } from '../status/status-footer.tsx'
import { TailView } from '../tail/tail-view.tsx'
import { FilterBar } from './filter-bar.tsx'
import { Header } from './header.tsx'
import { useQuery } from './use-query.ts'
import type { Session } from './use-session.ts'

export type ShellProps = Omit<Extract<Session, { state: 'signed-in' }>, 'state'> & {
  readonly signOut: () => void
}

const VIEW_PARTS: Readonly<Record<View, () => JSX.Element>> = {
  overview: OverviewView,
  lanes: LanesView,
  object: ObjectView,
  tail: TailView,
  sources: SourcesView,
  clusters: ClustersView,
}

/** These show all events of an object, or no events: filters do not apply. */
const UNFILTERED: readonly View[] = ['object', 'clusters']

export function Shell({ client, caller, hasToken, signOut }: ShellProps): JSX.Element {
  const { query, change } = useQuery()
  const [nowMs, setNowMs] = useState(Date.now)
  const [announcement, announce] = useState('')
  const refresh = useCallback(() => setNowMs(Date.now()), [])
  const page: Page = useMemo(
    () => ({ client, caller, query, change, nowMs, refresh, announce }),
    [client, caller, query, change, nowMs, refresh],
  )
  const ViewPart = VIEW_PARTS[query.view]
  return (
    <PageContext.Provider value={page}>
      <a class="skip" href="#view">
        Skip to the events
      </a>
      <Header onSignOut={hasToken ? signOut : undefined} />
      {!UNFILTERED.includes(query.view) && <FilterBar />}
      <main id="view" tabIndex={-1}>
        <ViewPart />
      </main>
      <StatusFooter />
      <div class="announcement" role="status" aria-live="polite">
        {announcement}
      </div>
    </PageContext.Provider>
  )
}
