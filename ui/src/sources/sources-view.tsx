import '../styles/sources.css'
import type { JSX } from 'preact'
import { questionOf } from '../model/query.ts'
import { spanOf } from '../model/range.ts'
import { usePage } from '../parts/page.ts'
import { ErrorPanel } from '../parts/panels.tsx'
import { DataNotes } from '../parts/server/data-notes.tsx'
import { HistoryNote } from '../parts/server/history-note.tsx'
import { HorizonNote } from '../parts/server/horizon-note.tsx'
import { SourcePanel } from './source-panel.tsx'
import { FIELDS, useSources } from './use-sources.ts'

/** Shows where most events come from. */
export function SourcesView(): JSX.Element {
  const { query } = usePage()
  const isByRate = query.order === 'rate' && query.namespace === ''
  return (
    <>
      <div class="sources-head">
        <h1>Top sources</h1>
        <OrderSwitch isByRate={isByRate} />
      </div>
      {/* Nothing of another question stays. */}
      <Panels key={`${isByRate} ${questionOf(query)}`} isByRate={isByRate} />
    </>
  )
}

function Panels({ isByRate }: { readonly isByRate: boolean }): JSX.Element {
  const { query, nowMs, refresh } = usePage()
  const span = spanOf(query.range, nowMs)
  const { panels, error, basis, work } = useSources(isByRate ? 'rate' : 'count')
  return (
    <>
      {error !== undefined && (
        <ErrorPanel error={error} onRetry={refresh} isBusy={work.isLoading} />
      )}
      <DataNotes bases={[basis]} isBusy={work.isLoading} />
      <HistoryNote fromMs={span.fromMs} works={[work]} />
      <HorizonNote span={span} />
      <div class="sources">
        {[...FIELDS, 'user' as const].map((field) => {
          const panel = panels[field]
          // A failure also ends the wait for unknown values, and so does the user.
          const isEnded = error !== undefined || work.isCancelled
          if (panel === undefined || (isEnded && panel.groups === undefined)) return null
          const isLoading = panel.isLoading && !isEnded
          return <SourcePanel key={field} field={field} panel={{ ...panel, isLoading }} />
        })}
      </div>
    </>
  )
}

function OrderSwitch({ isByRate }: { readonly isByRate: boolean }): JSX.Element {
  const { query, change } = usePage()
  const isPossible = query.namespace === ''
  return (
    <div class="sources-order">
      <fieldset>
        <legend class="hidden">Order</legend>
        <button type="button" aria-pressed={!isByRate} onClick={() => change({ order: 'count' })}>
          Most in this range
        </button>
        <button
          type="button"
          aria-pressed={isByRate}
          disabled={!isPossible}
          onClick={() => change({ order: 'rate' })}
        >
          Writing most now
        </button>
      </fieldset>
      <span class="sources-hint">
        {isPossible
          ? "Writes per minute, cluster-wide; filters don't apply."
          : 'Rates are available only for all namespaces together.'}
      </span>
    </div>
  )
}
