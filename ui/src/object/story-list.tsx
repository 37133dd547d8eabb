import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { type EventRow, repeatsOf } from '../model/event-row.ts'
import { clockTime, localTime, longDuration, secondMs } from '../model/times.ts'
import { Moment } from '../parts/event-time.tsx'
import { ObjectLink } from '../parts/events/object-link.tsx'
import { PlainText } from '../parts/plain-text.tsx'
import { TypeMark } from '../parts/type-mark.tsx'
import type { StoryEntry } from './story.ts'

/** What happened to an object, in the order in which it began. */
export function StoryList({ entries }: { readonly entries: readonly StoryEntry[] }): JSX.Element {
  return (
    <ol class="story" aria-label="Events, by when they began">
      {entries.map((entry) => (
        <Entry key={entry.row.key} entry={entry} />
      ))}
    </ol>
  )
}

function Entry({ entry }: { readonly entry: StoryEntry }): JSX.Element {
  const { row, isNewDay, gapMs, otherUid } = entry
  return (
    <li class={row.isWarning ? 'story-entry story-warning' : 'story-entry'}>
      {otherUid !== '' && (
        <p class="story-other">
          Another object of the same name, uid{' '}
          <code>
            <PlainText text={otherUid} />
          </code>
        </p>
      )}
      {gapMs > 0 && <p class="story-gap">nothing for {longDuration(gapMs)}</p>}
      {isNewDay && <p class="story-day">{dayText(row.firstMs)}</p>}
      <div class="story-event">
        <Times row={row} />
        <div class="story-body">
          <p class="story-head">
            <TypeMark type={row.type} />{' '}
            <strong>
              <PlainText text={row.reason} />
            </strong>
            {row.count > 1 && <span>×{repeatsOf(row)}</span>}
            <Other entry={entry} />
            {row.controller !== '' && (
              <span class="story-from">
                <PlainText text={row.controller} />
              </span>
            )}
          </p>
          <Note text={row.note} />
        </div>
      </div>
    </li>
  )
}

/** When the event was first seen, and when last if that is at least a second later. */
function Times({ row: { firstMs, lastMs } }: { readonly row: EventRow }): JSX.Element {
  return (
    <p class="story-times">
      <Moment ms={firstMs}>{localTime(firstMs).slice(-8)}</Moment>
      {lastMs - firstMs >= secondMs && (
        <>
          {' '}
          to <Moment ms={lastMs}>{clockTime(lastMs, firstMs)}</Moment>
        </>
      )}
    </p>
  )
}

/** The event's other object, if there is one. */
function Other({ entry: { mention, row } }: { readonly entry: StoryEntry }): JSX.Element | null {
  const { role, other } = mention
  if (other === undefined) return null
  return (
    <span class="story-with">
      {role === 'related' ? 'about ' : 'with '}
      <ObjectLink object={other} cluster={row.cluster} isFull />
    </span>
  )
}

/** Longer notes are truncated at first. A note that fits in a few lines is never truncated. */
const NOTE_LONG = 1_200
const NOTE_SHOWN = 800

function Note({ text }: { readonly text: string }): JSX.Element {
  const [isOpen, setIsOpen] = useState(false)
  const isLong = text.length > NOTE_LONG
  return (
    <p class="story-note">
      <PlainText text={isLong && !isOpen ? `${text.slice(0, NOTE_SHOWN)}…` : text} />
      {isLong && (
        <button type="button" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
          {isOpen ? 'less' : 'more'}
        </button>
      )}
    </p>
  )
}

function dayText(ms: number): string {
  return new Date(ms).toLocaleDateString(undefined, {
    weekday: 'long',
    day: 'numeric',
    month: 'long',
    year: 'numeric',
  })
}
