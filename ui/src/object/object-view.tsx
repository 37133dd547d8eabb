import '../styles/object.css'
import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import { readAbout, writeAbout } from '../model/about.ts'
import { type ObjectName, objectPath } from '../model/event-row.ts'
import { spanOf } from '../model/range.ts'
import { reachesHistory } from '../model/server/retention.ts'
import { localTime } from '../model/times.ts'
import { CopyMenu } from '../parts/copy-menu.tsx'
import { usePage } from '../parts/page.ts'
import { EmptyPanel, ErrorPanel } from '../parts/panels.tsx'
import { PlainText } from '../parts/plain-text.tsx'
import { QueryLink } from '../parts/query-link.tsx'
import { DataNotes } from '../parts/server/data-notes.tsx'
import { HistoryNote } from '../parts/server/history-note.tsx'
import { useServerStatus } from '../parts/server/status.ts'
import { useLoad } from '../parts/use-load.ts'
import { loadStory, type Story } from './load-story.ts'
import { ObjectForm } from './object-form.tsx'
import { type Individual, individualsOf } from './story.ts'
import { StoryList } from './story-list.tsx'

/** Shows everything that mentions one object, even one that no longer exists. */
export function ObjectView(): JSX.Element {
  const { query } = usePage()
  return (
    <div class="object-view">
      <nav class="object-back" aria-label="Back">
        <QueryLink to={{ view: 'overview' }}>← Overview</QueryLink>
        <QueryLink to={{ view: 'lanes' }}>← Lanes</QueryLink>
      </nav>
      {query.about === '' ? (
        <>
          <h1>Events of an object</h1>
          <ObjectForm />
        </>
      ) : (
        <ObjectStory key={`${query.cluster} ${query.about}`} />
      )}
    </div>
  )
}

function ObjectStory(): JSX.Element {
  const { client, query, nowMs, refresh } = usePage()
  const { cluster, namespace } = query
  const about = useMemo(() => readAbout(query.about), [query.about])
  const fromMs = useBeginning()
  const isInMemory = fromMs === undefined
  const load = useLoad<Story>(
    (signal, show, before) =>
      loadStory(client, { about, cluster, namespace, fromMs, signal, show, before }),
    { what: [client, about, cluster, namespace, isInMemory, query.history], when: [nowMs] },
  )
  const { data, isPart, error, isLoading } = load
  const isEmpty = !isLoading && !isPart && error === undefined && data?.entries.length === 0
  return (
    <>
      <ObjectHead about={about} story={data} />
      {error !== undefined && <ErrorPanel error={error} onRetry={refresh} isBusy={isLoading} />}
      <DataNotes bases={data?.bases ?? []} isBusy={isLoading} />
      {!isInMemory && (
        <HistoryNote
          fromMs={fromMs}
          works={[load]}
          reachedMs={isPart ? data?.reachedMs : undefined}
        />
      )}
      <HistoryOffer fromMs={fromMs} />
      {isLoading && data === undefined && <p role="status">Loading…</p>}
      {isEmpty && (
        <EmptyPanel title="No event mentions this object">
          Names are case-sensitive. Events are kept for a limited time: the footer says how far
          back.
        </EmptyPanel>
      )}
      {data !== undefined && <StoryBody about={about} story={data} isPart={isPart} />}
    </>
  )
}

/**
 * The time in history at which the story begins: where the range does, but not after what is in
 * memory; or where history does. Undefined if the story is in memory.
 */
function useBeginning(): number | undefined {
  const { query, nowMs } = usePage()
  const { window } = useServerStatus()
  if (query.history !== undefined) return window?.history?.oldestMs
  const { fromMs } = spanOf(query.range, nowMs)
  if (!reachesHistory(window, fromMs)) return undefined
  return Math.min(fromMs, window?.oldestMs ?? fromMs)
}

/** Offers to search all of history, which takes time. */
function HistoryOffer({ fromMs }: { readonly fromMs: number | undefined }): JSX.Element | null {
  const { change } = usePage()
  const { window } = useServerStatus()
  const oldestMs = window?.history?.oldestMs
  if (oldestMs === undefined || (fromMs !== undefined && fromMs <= oldestMs)) return null
  return (
    <p class="object-line">
      {fromMs === undefined ? 'These are the events in memory.' : `Since ${localTime(fromMs)}.`}{' '}
      <button type="button" onClick={() => change({ history: 'all' })}>
        Search all of history
      </button>
    </p>
  )
}

function ObjectHead({
  about,
  story,
}: {
  readonly about: ObjectName
  readonly story: Story | undefined
}): JSX.Element {
  const { query, nowMs, refresh } = usePage()
  return (
    <>
      <h1 class="object-name">
        {query.cluster !== '' && (
          <span class="object-cluster">
            <PlainText text={query.cluster} />
          </span>
        )}
        <PlainText text={about.name === '' ? about.uid : objectPath(about)} />
      </h1>
      <div class="object-tools">
        <details>
          <summary>Another object</summary>
          <ObjectForm />
        </details>
        <button type="button" onClick={refresh}>
          Refresh
        </button>
        <span class="muted">as of {localTime(nowMs).slice(11)}</span>
        {story !== undefined && story.entries.length > 0 && (
          <CopyMenu
            queries={story.queries}
            subject={query.about}
            rows={story.entries.map(({ row }) => row)}
            hasMore={story.reachedMs !== undefined}
          />
        )}
      </div>
    </>
  )
}

function StoryBody({
  about,
  story,
  isPart,
}: {
  readonly about: ObjectName
  readonly story: Story
  readonly isPart: boolean
}): JSX.Element {
  const { entries, reachedMs, lack } = story
  const individuals = useMemo(() => individualsOf(entries), [entries])
  return (
    <>
      {about.uid !== '' && about.name !== '' && (
        <p class="object-line">
          Only the object with uid{' '}
          <code>
            <PlainText text={about.uid} />
          </code>
          .{' '}
          <QueryLink to={{ about: writeAbout({ ...about, uid: '' }) }}>
            Show all objects of this name
          </QueryLink>
        </p>
      )}
      {lack !== '' && <p class="object-line">{lack}</p>}
      {reachedMs !== undefined && !isPart && (
        <p class="object-line">
          Showing the newest {entries.length.toLocaleString('en')} events. There are older ones,
          which the command of “Copy as kubectl” prints.
        </p>
      )}
      {individuals.length > 1 && <Individuals about={about} individuals={individuals} />}
      <StoryList entries={entries} />
    </>
  )
}

/** Objects that successively had the same name, such as the pods of a StatefulSet. */
function Individuals({
  about,
  individuals,
}: {
  readonly about: ObjectName
  readonly individuals: readonly Individual[]
}): JSX.Element {
  return (
    <section class="panel" aria-labelledby="individuals">
      <h2 id="individuals">{individuals.length} objects had this name</h2>
      <ul class="object-individuals">
        {individuals.map(({ uid, events, firstMs, lastMs }) => (
          <li key={uid}>
            <QueryLink to={{ about: writeAbout({ ...about, uid }) }}>
              only uid{' '}
              <code>
                <PlainText text={uid} />
              </code>
            </QueryLink>{' '}
            {events === 1 ? '1 event' : `${events} events`}, {localTime(firstMs)} to{' '}
            {localTime(lastMs)}
          </li>
        ))}
      </ul>
    </section>
  )
}
