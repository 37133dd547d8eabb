/** The frame around every view: navigation, filters, the view, and the server's status. */
import type { JSX } from 'preact'
import { useCallback, useEffect, useMemo, useState } from 'preact/hooks'
import { ClustersView } from '../clusters/clusters-view.tsx'
import { LanesView } from '../lanes/lanes-view.tsx'
import type { View } from '../model/query.ts'
import { ObjectView } from '../object/object-view.tsx'
import { OverviewView } from '../overview/overview-view.tsx'
import { type Page, PageContext } from '../parts/page.ts'
import { ShortcutsContext } from '../parts/shortcuts.ts'
import { SourcesView } from '../sources/sources-view.tsx'
import { StatusFooter } from '../status/status-footer.tsx'
import { StatusProvider } from '../status/status-provider.tsx'
import { TailView } from '../tail/tail-view.tsx'
import { FilterBar } from './filters/filter-bar.tsx'
import { Header } from './header.tsx'
import { HelpDialog } from './help-dialog.tsx'
import { useArrival } from './use-arrival.ts'
import { useQuery } from './use-query.ts'
import { useRefresh } from './use-refresh.ts'
import type { Session } from './use-session.ts'
import { useShortcuts } from './use-shortcuts.ts'

export type ShellProps = Omit<Extract<Session, { state: 'signed-in' }>, 'state'> & {
  readonly signOut: () => void
  readonly moved: () => void
}

const VIEW_PARTS: Readonly<Record<View, () => JSX.Element>> = {
  overview: OverviewView,
  lanes: LanesView,
  object: ObjectView,
  tail: TailView,
  sources: SourcesView,
  clusters: ClustersView,
}

/** Views to which filters do not apply: they show all events of an object, or none. */
const UNFILTERED: readonly View[] = ['object', 'clusters']

/** The other views refresh themselves or have no range; the user refreshes an object. */
const REFRESHED: readonly View[] = ['overview', 'lanes', 'sources']

export function Shell({ client, caller, hasToken, signOut, moved }: ShellProps): JSX.Element {
  const { page, announcement } = usePageState({ client, caller })
  const shortcuts = useShortcuts()
  const [isHelpShown, setIsHelpShown] = useState(false)
  const { view, cluster } = page.query
  useEffect(moved, [cluster])
  const ViewPart = VIEW_PARTS[view]
  const main = useArrival(page.query)
  return (
    <PageContext.Provider value={page}>
      <ShortcutsContext.Provider value={shortcuts}>
        <a class="skip" href="#view">
          Skip to the events
        </a>
        <Header onSignOut={hasToken ? signOut : undefined} onHelp={() => setIsHelpShown(true)} />
        <StatusProvider>
          {!UNFILTERED.includes(view) && <FilterBar />}
          <main id="view" ref={main} tabIndex={-1}>
            <ViewPart />
          </main>
          <StatusFooter />
        </StatusProvider>
        {isHelpShown && <HelpDialog shortcuts={shortcuts} onClose={() => setIsHelpShown(false)} />}
        <div class="announcement" role="status" aria-live="polite">
          {announcement}
        </div>
      </ShortcutsContext.Provider>
    </PageContext.Provider>
  )
}

function usePageState({ client, caller }: Pick<Page, 'client' | 'caller'>): {
  readonly page: Page
  readonly announcement: string
} {
  const [nowMs, setNowMs] = useState(Date.now)
  const refresh = useCallback(() => setNowMs(Date.now()), [])
  const { query, change } = useQuery(refresh)
  const isLive = 'last' in query.range && REFRESHED.includes(query.view)
  const hold = useRefresh({ nowMs, isLive, refresh })
  const [warnings, foundWarnings] = useState<number | undefined>(undefined)
  const [announcement, setAnnouncement] = useState('')
  // Screen readers do not announce a text that has not changed.
  const announce = useCallback((message: string) => {
    setAnnouncement((before) => (before === message ? `${message}\u00a0` : message))
  }, [])
  const page = useMemo(
    () => ({
      ...{ client, caller, query, change, nowMs, refresh, hold },
      ...{ warnings, foundWarnings, announce },
    }),
    [client, caller, query, nowMs, warnings],
  )
  return { page, announcement }
}
