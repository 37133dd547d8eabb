import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import type { EventRow } from '../model/event-row.ts'
import { usePage } from '../parts/page.ts'
import type { BoardSize } from './board-size.ts'
import { objectQuery } from './lane-label.tsx'
import type { Pointed } from './lane-tooltip.tsx'
import type { Lane } from './lanes.ts'
import { type Mark, markAt } from './marks.ts'

type ElementRef = { readonly current: HTMLElement | null }

export interface PointerOptions {
  readonly board: ElementRef
  readonly rail: ElementRef
  readonly scroller: ElementRef
  readonly lanes: readonly Lane[]
  readonly size: BoardSize
  readonly marksAt: (index: number) => readonly Mark[]
}

export interface PointedEvents {
  readonly lane: number
  readonly events: readonly EventRow[]
  /** Position on the axis. */
  readonly x: number
}

/** An estimate: most are shorter. */
const TOOLTIP_HEIGHT = 190

/** Tracks the mark that is hovered, tapped or reached by keyboard. A click on it opens its object. */
export function usePointer(options: PointerOptions): {
  readonly pointed: Pointed | undefined
  /** The lane must already be in view. */
  readonly pointAt: (events: PointedEvents | undefined) => void
  readonly onScroll: () => void
} {
  const { change } = usePage()
  const [pointed, setPointed] = useState<Pointed>()
  const latest = useRef(options)
  latest.current = options
  // Where the scroller was when the tooltip was placed: a scroll event there is the keyboard's own.
  const placedAtTop = useRef(-1)
  const pointAt = useCallback((events: PointedEvents | undefined) => {
    placedAtTop.current = latest.current.scroller.current?.scrollTop ?? -1
    setPointed((before) => (isSame(before, events) ? before : placed(latest.current, events)))
  }, [])
  useEffect(() => {
    const { current } = latest.current.scroller
    if (current === null) return undefined
    const listening = new AbortController()
    const { signal } = listening
    const onPoint = (event: PointerEvent): void => pointAt(eventsAt(latest.current, event))
    current.addEventListener('pointermove', onPoint, { signal })
    current.addEventListener('pointerdown', onPoint, { signal })
    const onLeave = ({ pointerType }: PointerEvent): void => {
      if (pointerType !== 'touch') pointAt(undefined)
    }
    current.addEventListener('pointerleave', onLeave, { signal })
    const onClick = (event: MouseEvent): void => {
      const found = eventsAt(latest.current, event)
      const lane = latest.current.lanes[found?.lane ?? -1]
      const isTouch = event instanceof PointerEvent && event.pointerType === 'touch'
      // Touch cannot hover, so a tap only shows the tooltip.
      if (lane !== undefined && !isTouch) change(objectQuery(lane))
    }
    current.addEventListener('click', onClick, { signal })
    return () => listening.abort()
  }, [])
  // The mark may no longer exist.
  useEffect(() => setPointed(undefined), [options.lanes, options.marksAt])
  const onScroll = useCallback(() => {
    if (latest.current.scroller.current?.scrollTop !== placedAtTop.current) setPointed(undefined)
  }, [])
  return { pointed, pointAt, onScroll }
}

function isSame(before: Pointed | undefined, events: PointedEvents | undefined): boolean {
  if (before === undefined || events === undefined) return before === events
  return before.events === events.events && before.lane === events.lane
}

function eventsAt(
  { rail, lanes, size, marksAt }: PointerOptions,
  { clientX, clientY }: MouseEvent,
): PointedEvents | undefined {
  const { current } = rail
  if (current === null) return undefined
  const { left, top } = current.getBoundingClientRect()
  const lane = Math.floor((clientY - top) / size.rowHeight)
  const isLabel = size.labelWidth === 0 && (clientY - top) % size.rowHeight < size.plotTop
  const x = clientX - left - size.labelWidth
  if (x < 0 || lane < 0 || lane >= lanes.length || isLabel) return undefined
  const mark = markAt(marksAt(lane), x)
  return mark && { lane, events: mark.events, x: mark.right }
}

function placed(
  { board, rail, size }: PointerOptions,
  pointed: PointedEvents | undefined,
): Pointed | undefined {
  if (pointed === undefined || board.current === null || rail.current === null) return undefined
  const railTop = rail.current.getBoundingClientRect().top
  const { top: boardTop } = board.current.getBoundingClientRect()
  const rowTop = railTop + pointed.lane * size.rowHeight
  const isAbove = rowTop + size.rowHeight + TOOLTIP_HEIGHT > window.innerHeight
  return {
    ...pointed,
    x: size.labelWidth + pointed.x,
    y: rowTop - boardTop + (isAbove ? 0 : size.rowHeight),
    isAbove,
  }
}
