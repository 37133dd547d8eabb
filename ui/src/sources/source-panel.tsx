import type { JSX } from 'preact'
import type { SourceGroup } from '../api/summaries.ts'
import { counted, countText, percentOf } from '../model/numbers.ts'
import {
  leadsTo,
  type SourceField,
  type SparkData,
  seriesName,
  valueText,
  warningsText,
} from '../model/sources.ts'
import { shortTime } from '../model/times.ts'
import { isolated } from '../model/visible.ts'
import { EventTime } from '../parts/event-time.tsx'
import { usePage } from '../parts/page.ts'
import { EmptyPanel, ErrorPanel } from '../parts/panels.tsx'
import { PlainText } from '../parts/plain-text.tsx'
import { QueryLink } from '../parts/query-link.tsx'
import { Sparkline } from '../parts/sparkline.tsx'
import type { Panel } from './use-sources.ts'

const TITLES: Readonly<Record<SourceField, string>> = {
  controller: 'Controllers',
  namespace: 'Namespaces',
  reason: 'Reasons',
  object: 'Objects',
  user: 'Users who write events',
}

export interface SourcePanelProps {
  readonly field: SourceField
  readonly panel: Panel
}

export function SourcePanel({ field, panel }: SourcePanelProps): JSX.Element {
  const { refresh } = usePage()
  const { groups, error, isLoading, sparks } = panel
  return (
    <section class="sources-panel" aria-busy={isLoading} aria-labelledby={`sources-${field}`}>
      <h2 id={`sources-${field}`}>{TITLES[field]}</h2>
      {error !== undefined && <ErrorPanel error={error} onRetry={refresh} />}
      {error === undefined && groups === undefined && <p class="sources-wait">Counting…</p>}
      {error === undefined && groups?.length === 0 && <EmptyPanel title={emptyText(field)} />}
      {error === undefined && groups !== undefined && groups.length > 0 && (
        <ol>
          {groups.map((group) => (
            <SourceRow
              key={JSON.stringify(group.values)}
              field={field}
              group={group}
              spark={sparks?.get(seriesName(field, group.values))}
            />
          ))}
        </ol>
      )}
    </section>
  )
}

function emptyText(field: SourceField): string {
  return field === 'user' ? 'No events are being written' : 'No events in this range'
}

interface SourceRowProps {
  readonly field: SourceField
  readonly group: SourceGroup
  readonly spark: SparkData | undefined
}

function SourceRow({ field, group, spark }: SourceRowProps): JSX.Element {
  const { nowMs } = usePage()
  const { occurrences, events, objects, lastMs, note } = group
  if (field === 'user') {
    return (
      <li class="source">
        <Name field={field} group={group} />
        <Rate group={group} />
      </li>
    )
  }
  return (
    <li class="source">
      <Name field={field} group={group} />
      {spark !== undefined && <Spark spark={spark} />}
      <span class="source-count">
        {countText(occurrences)}
        <span class="hidden"> occurrences</span>
      </span>
      <span class="source-figures">
        <WarningShare group={group} />
        <span>{counted(events, 'event')}</span>
        {field !== 'object' && <span>{counted(objects, 'object')}</span>}
        {lastMs !== undefined && (
          <span>
            last <EventTime ms={lastMs} nowMs={nowMs} />
          </span>
        )}
        <Rate group={group} />
        {note !== '' && (
          <details>
            <summary>last note</summary>
            <p class="source-note">
              <PlainText text={note} />
            </p>
          </details>
        )}
      </span>
    </li>
  )
}

function Name({ field, group }: Pick<SourceRowProps, 'field' | 'group'>): JSX.Element {
  const value = group.values[field] ?? ''
  const to = leadsTo(field, group.values)
  const { cluster } = group.values
  return (
    <span class="source-name" title={isolated(value)}>
      {to === undefined ? (
        <PlainText text={valueText(value)} />
      ) : (
        <QueryLink to={to}>
          <PlainText text={value} />
        </QueryLink>
      )}
      {cluster !== undefined && (
        <span class="source-cluster">
          {' '}
          in <PlainText text={cluster} />
        </span>
      )}
    </span>
  )
}

function Rate({ group }: Pick<SourceRowProps, 'group'>): JSX.Element | null {
  const { ratePerMinute } = group
  if (ratePerMinute === undefined) return null
  return <span class="source-rate">{countText(ratePerMinute)}/min now</span>
}

function WarningShare({ group }: Pick<SourceRowProps, 'group'>): JSX.Element {
  const { warnings, occurrences } = group
  return (
    <span class="source-share">
      <svg viewBox="0 0 100 10" width="60" height="8" preserveAspectRatio="none" aria-hidden="true">
        <rect width="100" height="10" class="source-share-all" />
        <rect width={percentOf(warnings, occurrences)} height="10" class="source-share-warnings" />
      </svg>{' '}
      {warningsText(warnings, occurrences)}
    </span>
  )
}

function Spark({ spark }: { readonly spark: SparkData }): JSX.Element {
  const { nowMs } = usePage()
  const { values, peak } = spark
  const label = `Most at ${shortTime(peak.fromMs, nowMs)}: ${countText(peak.count)}`
  return <Sparkline values={values} label={label} />
}
