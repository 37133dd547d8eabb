import { Component, type JSX } from 'preact'
import { type EventRow, repeatsOf } from '../../model/event-row.ts'
import { Moment } from '../event-time.tsx'
import { PlainText } from '../plain-text.tsx'
import { TypeMark } from '../type-mark.tsx'
import { EventDetails } from './event-details.tsx'
import { FilterButton } from './filter-button.tsx'
import { ObjectLink } from './object-link.tsx'

export interface EventItemProps {
  readonly row: EventRow
  /** Formatted time at which it was last seen. */
  readonly seen: string
  /** Id of the list, unique on the page. */
  readonly id: string
  readonly isOpen: boolean
  /** Tab reaches only the controls of the active row. */
  readonly isActive: boolean
  readonly hasNamespace: boolean
  readonly hasCluster: boolean
  readonly isMarked: boolean
  /** Shown above the line. */
  readonly notice: JSX.Element | undefined
  readonly actions: ItemActions
}

/** Actions that a row requests from its list, identified by row key. */
export interface ItemActions {
  readonly focus: (key: string) => void
  readonly toggle: (key: string) => void
  /** Moves to another row, for the arrow keys. */
  readonly move: (step: number) => void
}

/** One event: a line, and all fields when it is open. Renders again only if it has changed. */
export class EventItem extends Component<EventItemProps> {
  override shouldComponentUpdate(next: EventItemProps): boolean {
    const names = Object.keys(next) as (keyof EventItemProps)[]
    return names.some((name) => next[name] !== this.props[name])
  }

  override render(): JSX.Element {
    return <Item {...this.props} />
  }
}

function Item(props: EventItemProps): JSX.Element {
  const { row, isOpen, isActive, actions } = props
  const id = `${props.id}-${row.key}`
  const tabIndex = isActive ? 0 : -1
  return (
    <li class={classOf(props)} onFocusCapture={() => actions.focus(row.key)}>
      {props.notice}
      <div class="event-line">
        <span class="event-seen">
          <Moment ms={row.lastMs}>{props.seen}</Moment>
        </span>
        <span class="event-count">{row.count > 1 && `×${repeatsOf(row)}`}</span>
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
          onClick={() => actions.toggle(row.key)}
          onKeyDown={(event) => {
            const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
            if (step === 0) return
            event.preventDefault()
            actions.move(step)
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
