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
  /** On the axis. */
  readonly x: number
}

/** The tooltip is hardly ever higher. */
const TOOLTIP_HEIGHT = 190

/** What the user points at, with a pointer or with the keyboard. */
export function usePointer(options: PointerOptions): {
  readonly pointed: Pointed | undefined
  /** The board has scrolled for it, if it had to. */
  readonly pointAt: (events: PointedEvents | undefined) => void
  readonly onScroll: () => void
} {
  const { change } = usePage()
  const [pointed, setPointed] = useState<Pointed>()
  const latest = useRef(options)
  latest.current = options
  // The scroll position that the keyboard has caused: the tooltip stays there.
  const ownTop = useRef(-1)
  const pointAt = useCallback((events: PointedEvents | undefined) => {
    ownTop.current = latest.current.scroller.current?.scrollTop ?? -1
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
      // A finger only looks: it has no other way to.
      if (lane !== undefined && !isTouch) change(objectQuery(lane))
    }
    current.addEventListener('click', onClick, { signal })
    return () => listening.abort()
  }, [])
  // What was pointed at may not be there any more.
  useEffect(() => setPointed(undefined), [options.lanes, options.marksAt])
  const onScroll = useCallback(() => {
    if (latest.current.scroller.current?.scrollTop !== ownTop.current) setPointed(undefined)
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
