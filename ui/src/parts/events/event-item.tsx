import type { JSX } from 'preact'
import { type EventRow, repeatsOf } from '../../model/event-row.ts'
import { EventTime } from '../event-time.tsx'
import { PlainText } from '../plain-text.tsx'
import { TypeMark } from '../type-mark.tsx'
import { EventDetails } from './event-details.tsx'
import { FilterButton } from './filter-button.tsx'
import { ObjectLink } from './object-link.tsx'

export interface EventItemProps {
  readonly row: EventRow
  readonly nowMs: number
  /** Unique on the page. */
  readonly id: string
  readonly isOpen: boolean
  /** Of all rows, only the controls of this one are reached by the tabulator key. */
  readonly isActive: boolean
  readonly hasNamespace: boolean
  readonly hasCluster: boolean
  readonly onFocus: () => void
  readonly onToggle: () => void
  /** Moves to another row, by the arrow keys. */
  readonly onMove: (step: number) => void
  readonly isMarked: boolean
  /** Above the line. */
  readonly notice: JSX.Element | undefined
}

/** One event: a line, and all the rest when it is open. */
export function EventItem(props: EventItemProps): JSX.Element {
  const { row, nowMs, id, isOpen, isActive, onFocus, onToggle } = props
  const tabIndex = isActive ? 0 : -1
  return (
    <li class={classOf(props)} onFocusCapture={onFocus}>
      {props.notice}
      <div class="event-line">
        <span class="event-seen">
          <EventTime ms={row.lastMs} nowMs={nowMs} />
        </span>
        <span class="event-count">{row.count > 1 && `x${repeatsOf(row)}`}</span>
        <TypeMark type={row.type} />
        <span class="event-reason">
          {row.reason !== '' && (
            <FilterButton filter="reason" value={row.reason} tabIndex={tabIndex} />
          )}
        </span>
        {props.hasCluster && (
          <span class="event-place">
            <FilterButton filter="cluster" value={row.cluster} tabIndex={tabIndex} />
          </span>
        )}
        {props.hasNamespace && (
          <span class="event-place">
            <FilterButton filter="namespace" value={row.namespace} tabIndex={tabIndex} />
          </span>
        )}
        <span class="event-object">
          <ObjectLink object={row.regarding} cluster={row.cluster} tabIndex={tabIndex} />
        </span>
        <button
          type="button"
          class="event-note"
          tabIndex={tabIndex}
          aria-expanded={isOpen}
          aria-controls={isOpen ? id : undefined}
          onClick={onToggle}
          onKeyDown={(event) => {
            const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
            if (step === 0) return
            event.preventDefault()
            props.onMove(step)
          }}
        >
          <PlainText text={row.note.trim() === '' ? '(no note)' : row.note} />
        </button>
      </div>
      {isOpen && <EventDetails row={row} id={id} />}
    </li>
  )
}

function classOf({ row, isMarked }: EventItemProps): string {
  return `event${row.isWarning ? ' event-warning' : ''}${isMarked ? ' event-marked' : ''}`
}
