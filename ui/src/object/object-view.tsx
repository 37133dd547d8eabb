import '../styles/object.css'
import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import { readAbout, writeAbout } from '../model/about.ts'
import { type ObjectName, objectPath } from '../model/event-row.ts'
import { localTime } from '../model/times.ts'
import { CopyMenu } from '../parts/copy-menu.tsx'
import { usePage } from '../parts/page.ts'
import { EmptyPanel, ErrorPanel } from '../parts/panels.tsx'
import { PlainText } from '../parts/plain-text.tsx'
import { QueryLink } from '../parts/query-link.tsx'
import { DataNotes } from '../parts/server/data-notes.tsx'
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
  const { data, error, isLoading } = useLoad(
    (signal) => loadStory(client, { about, cluster, namespace, signal }),
    { what: [client, about, cluster, namespace], when: [nowMs] },
  )
  const isEmpty = !isLoading && error === undefined && data?.entries.length === 0
  return (
    <>
      <ObjectHead about={about} story={data} />
      {error !== undefined && <ErrorPanel error={error} onRetry={refresh} isBusy={isLoading} />}
      <DataNotes bases={data?.bases ?? []} isBusy={isLoading} />
      {isLoading && data === undefined && <p role="status">Loading…</p>}
      {isEmpty && (
        <EmptyPanel title="No event mentions this object">
          Names are case-sensitive. Events are kept for a limited time: the footer says how far
          back.
        </EmptyPanel>
      )}
      {data !== undefined && <StoryBody about={about} story={data} />}
    </>
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
            hasMore={story.hasMore}
          />
        )}
      </div>
    </>
  )
}

function StoryBody({
  about,
  story,
}: {
  readonly about: ObjectName
  readonly story: Story
}): JSX.Element {
  const { entries, hasMore, lack } = story
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
      {hasMore && (
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
