import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { isolated } from '../model/visible.ts'
import { usePage } from '../parts/page.ts'
import type { BoardSize } from './board-size.ts'
import { eventSummary, type Lane } from './lanes.ts'
import { type Scale, xOf } from './marks.ts'
import { nextPlace, type Place } from './place.ts'
import type { PointedEvents } from './use-pointer.ts'

export interface BoardKeysOptions {
  readonly scroller: { readonly current: HTMLElement | null }
  readonly lanes: readonly Lane[]
  readonly size: BoardSize
  readonly scale: Scale
  /** Recomputes which lanes are visible. */
  readonly update: () => void
  readonly pointAt: (events: PointedEvents | undefined) => void
  readonly onPlace: (ms: number) => void
}

/** Characters of a note that are read out; the object view has the whole note. */
const NOTE_SPOKEN = 200

/** Moves between lanes and their events by keyboard. The lane's label has the focus. */
export function useBoardKeys(options: BoardKeysOptions): { readonly place: Place } {
  const { announce } = usePage()
  const { lanes, scroller } = options
  const [chosen, choose] = useState<ChosenPlace>({ lane: '', event: '' })
  const place = placeOf(chosen, lanes)
  const setPlace = (next: Place): void => choose(chosenAt(next, latest.current.lanes))
  const latest = useRef({ ...options, place })
  latest.current = { ...options, place }
  useEffect(() => {
    const { current } = scroller
    if (current === null) return undefined
    const listening = new AbortController()
    const { signal } = listening
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return
      const { place: before, lanes: known, pointAt } = latest.current
      if (event.key === 'Escape') pointAt(undefined)
      const next = nextPlace(before, event.key, known)
      if (next === undefined) return
      event.preventDefault()
      setPlace(next)
      bringIntoSight(latest.current, next.lane)
      showEvent(latest.current, next, announce)
    }
    current.addEventListener('keydown', onKey, { signal })
    const onFocus = ({ target }: FocusEvent): void => {
      const lane = laneOf(target)
      if (lane !== undefined && lane !== latest.current.place.lane) setPlace({ lane, event: -1 })
    }
    current.addEventListener('focusin', onFocus, { signal })
    return () => listening.abort()
  }, [])
  useLayoutEffect(() => {
    const { current } = scroller
    if (current?.contains(document.activeElement) !== true) return
    const label = current.querySelector<HTMLElement>(`[data-lane="${place.lane}"] a`)
    label?.focus({ preventScroll: true })
  }, [place.lane])
  return { place }
}

/** Stored as keys, since a refresh may move lanes and events. */
interface ChosenPlace {
  readonly lane: string
  /** Empty for the lane itself. */
  readonly event: string
}

function placeOf({ lane, event }: ChosenPlace, lanes: readonly Lane[]): Place {
  const index = lanes.findIndex(({ key }) => key === lane)
  if (index === -1) return { lane: 0, event: -1 }
  return { lane: index, event: lanes[index]?.events.findIndex(({ key }) => key === event) ?? -1 }
}

function chosenAt({ lane, event }: Place, lanes: readonly Lane[]): ChosenPlace {
  const chosen = lanes[lane]
  return { lane: chosen?.key ?? '', event: chosen?.events[event]?.key ?? '' }
}

function bringIntoSight({ scroller, size, update }: BoardKeysOptions, lane: number): void {
  const { current } = scroller
  if (current === null) return
  const top = lane * size.rowHeight
  const lowest = top + size.rowHeight - current.clientHeight
  current.scrollTop = Math.max(lowest, Math.min(top, current.scrollTop))
  update()
}

function showEvent(
  { lanes, scale, pointAt, onPlace }: BoardKeysOptions,
  { lane, event }: Place,
  announce: (message: string) => void,
): void {
  const { events = [] } = lanes[lane] ?? {}
  const row = events[event]
  if (row === undefined) {
    pointAt(undefined)
    return
  }
  pointAt({ lane, events: [row], x: xOf(scale, row.lastMs) })
  onPlace(row.lastMs)
  const position = `event ${event + 1} of ${events.length}`
  announce(`${eventSummary(row)}, ${position}: ${isolated(row.note.slice(0, NOTE_SPOKEN))}`)
}

function laneOf(target: EventTarget | null): number | undefined {
  if (!(target instanceof HTMLElement)) return undefined
  const text = target.closest<HTMLElement>('[data-lane]')?.dataset['lane']
  return text === undefined ? undefined : Number(text)
}
