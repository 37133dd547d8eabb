import type { JSX } from 'preact'
import { type EventRow, repeatsOf } from '../model/event-row.ts'
import { counted } from '../model/numbers.ts'
import { localTime, utcTime } from '../model/times.ts'
import { PlainText } from '../parts/plain-text.tsx'
import { TypeMark } from '../parts/type-mark.tsx'

/** The events of the mark under the pointer, and the mark's position on the board. */
export interface Pointed {
  readonly lane: number
  readonly events: readonly EventRow[]
  readonly x: number
  readonly y: number
  /** Whether the tooltip is above the lane because there is no space below it. */
  readonly isAbove: boolean
}

/** Characters of a note that are shown; the object view has the whole note. */
const NOTE_SHOWN = 300

/** Matches lanes.css. */
const WIDTH = 400

export function LaneTooltip({
  pointed,
  boardWidth,
}: {
  readonly pointed: Pointed
  readonly boardWidth: number
}): JSX.Element | null {
  const { events, x, y, isAbove } = pointed
  const row = events.at(-1)
  if (row === undefined) return null
  const left = Math.max(0, Math.min(x + 10, boardWidth - WIDTH))
  const { count, firstMs, lastMs, note } = row
  return (
    <div
      class={isAbove ? 'lane-tooltip lane-tooltip-above' : 'lane-tooltip'}
      role="tooltip"
      style={{ left: `${left}px`, top: `${y}px` }}
    >
      {events.length > 1 && <p>{counted(events.length, 'event')} here, the newest of them:</p>}
      <p>
        <TypeMark type={row.type} />{' '}
        <strong>
          <PlainText text={row.reason} />
        </strong>
        {count > 1 && ` ×${repeatsOf({ count, firstMs, lastMs })}`}
      </p>
      <dl>
        {count > 1 && <Moment name="First seen" ms={firstMs} />}
        <Moment name={count > 1 ? 'Last seen' : 'Seen'} ms={lastMs} />
      </dl>
      <p class="lane-tooltip-note">
        <PlainText text={note.length > NOTE_SHOWN ? `${note.slice(0, NOTE_SHOWN)}…` : note} />
      </p>
    </div>
  )
}

function Moment({ name, ms }: { readonly name: string; readonly ms: number }): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {localTime(ms)} <span class="lane-tooltip-utc">{utcTime(ms)}</span>
      </dd>
    </div>
  )
}
