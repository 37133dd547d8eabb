/**
 * The lanes: labels and marks in a container that scrolls on its own. Only visible lanes are in the
 * DOM. Marks are drawn on canvases, each shared by several lanes, which scroll with the labels:
 * scrolling draws only the lanes that become visible.
 */
import type { JSX } from 'preact'
import { useMemo, useRef } from 'preact/hooks'
import type { Span } from '../model/range.ts'
import { useHold } from '../parts/page.ts'
import { useColours } from '../parts/use-colours.ts'
import { axisTicks } from './axis-ticks.ts'
import { boardSize, useWidth } from './board-size.ts'
import { LaneAxis } from './lane-axis.tsx'
import { LaneCanvas } from './lane-canvas.tsx'
import { LaneLabel } from './lane-label.tsx'
import { LaneTooltip } from './lane-tooltip.tsx'
import type { Lane } from './lanes.ts'
import { type Mark, marksOf, type Scale, xOf } from './marks.ts'
import type { Painting } from './paint.ts'
import { useBoardKeys } from './use-board-keys.ts'
import { usePointer } from './use-pointer.ts'
import { type RowsInSight, useRowsInSight } from './use-rows-in-sight.ts'

export interface LaneBoardProps {
  readonly lanes: readonly Lane[]
  readonly span: Span
  /** Events before this time are not loaded; the start of the span if all are. */
  readonly coveredFromMs: number
  readonly onZoom: (span: Span) => void
  /** Called with the time of the event that has the keyboard focus, so that buttons zoom there. */
  readonly onPlace: (ms: number) => void
}

export function LaneBoard(props: LaneBoardProps): JSX.Element {
  const { lanes, span, coveredFromMs, onZoom, onPlace } = props
  const board = useRef<HTMLDivElement>(null)
  const scroller = useRef<HTMLDivElement>(null)
  const rail = useRef<HTMLDivElement>(null)
  const width = useWidth(rail)
  const size = useMemo(() => boardSize(width), [width])
  const scale: Scale = useMemo(
    () => ({ ...span, width: Math.max(0, size.width - size.labelWidth) }),
    [span.fromMs, span.toMs, size],
  )
  const ticks = useMemo(() => axisTicks(scale), [scale])
  const { rows, update } = useRowsInSight({
    scroller,
    rowHeight: size.rowHeight,
    count: lanes.length,
  })
  const marksAt = useMarks(lanes, scale)
  const pointer = usePointer({ board, rail, scroller, lanes, size, marksAt })
  const { pointed, pointAt } = pointer
  // A refresh would move the lanes that the user is looking at.
  useHold(pointed !== undefined)
  const keys = useBoardKeys({ scroller, lanes, size, scale, update, pointAt, onPlace })
  const uncovered = xOf(scale, coveredFromMs)
  const canvases = useCanvases({ lanes, rows, marksAt, size, ticks })
  const labels = useLabels({ lanes, rows, size, active: keys.place.lane })
  return (
    <div class="lanes-board" ref={board}>
      <LaneAxis {...{ scale, ticks, uncovered, onZoom }} left={size.labelWidth} />
      <div
        class={size.labelWidth === 0 ? 'lanes-scroll lanes-narrow' : 'lanes-scroll'}
        ref={scroller}
        onScroll={() => {
          update()
          pointer.onScroll()
        }}
      >
        <div class="lanes-rail" ref={rail} style={{ height: `${lanes.length * size.rowHeight}px` }}>
          <div
            class="lanes-uncovered"
            style={{ left: `${size.labelWidth}px`, width: `${uncovered}px` }}
          />
          <ul aria-label="Objects">{labels}</ul>
          {canvases}
        </div>
      </div>
      {pointed !== undefined && <LaneTooltip pointed={pointed} boardWidth={width} />}
    </div>
  )
}

/** Computes the marks of a lane when it first becomes visible. */
function useMarks(lanes: readonly Lane[], scale: Scale): (index: number) => readonly Mark[] {
  return useMemo(() => {
    const known = new Map<number, readonly Mark[]>()
    return (index) => {
      const marks = known.get(index) ?? marksOf(lanes[index]?.events ?? [], scale)
      known.set(index, marks)
      return marks
    }
  }, [lanes, scale])
}

/** Reuses rendered labels, since creating them again would slow scrolling down. */
function useLabels({
  lanes,
  rows,
  size,
  active,
}: Pick<Drawn, 'lanes' | 'rows' | 'size'> & { readonly active: number }): readonly JSX.Element[] {
  const known = useMemo(() => new Map<string, JSX.Element>(), [lanes, size])
  return useMemo(
    () =>
      indexesOf(rows, { count: lanes.length, active }).flatMap((index) => {
        const lane = lanes[index]
        if (lane === undefined) return []
        const isActive = index === active
        const key = `${index} ${isActive}`
        const label = known.get(key) ?? (
          <LaneLabel key={lane.key} {...{ lane, index, count: lanes.length, size, isActive }} />
        )
        known.set(key, label)
        return [label]
      }),
    [rows, known, active],
  )
}

/** The visible lanes, and the one with the focus, which must stay in the DOM. */
function indexesOf(
  { first, end }: RowsInSight,
  { count, active }: { readonly count: number; readonly active: number },
): readonly number[] {
  const last = Math.min(end, count)
  const indexes = Array.from({ length: Math.max(0, last - first) }, (_, index) => first + index)
  if (active >= first && active < last) return indexes
  return active < first ? [active, ...indexes] : [...indexes, active]
}

interface Drawn extends Pick<Painting, 'size'> {
  readonly lanes: readonly Lane[]
  readonly rows: RowsInSight
  readonly marksAt: (index: number) => readonly Mark[]
  readonly ticks: readonly { readonly x: number }[]
}

/** Number of lanes that share a canvas. */
const CHUNK = 10

/** One canvas per chunk. A chunk is redrawn only if its content has changed. */
function useCanvases({ lanes, rows, marksAt, size, ticks }: Drawn): readonly JSX.Element[] {
  const colours = useColours()
  const paintingOf = useMemo(() => {
    const known = new Map<number, Painting>()
    const gridXs = ticks.map(({ x }) => x)
    return (first: number): Painting => {
      const count = Math.min(CHUNK, lanes.length - first)
      const painting = known.get(first) ?? {
        lanes: Array.from({ length: count }, (_, index) => marksAt(first + index)),
        ...{ gridXs, size, colours },
      }
      known.set(first, painting)
      return painting
    }
  }, [lanes, marksAt, size, ticks, colours])
  const from = Math.floor(rows.first / CHUNK)
  const to = Math.ceil(Math.min(rows.end, lanes.length) / CHUNK)
  return useMemo(() => {
    const chunks = Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index)
    // A canvas that is out of sight is used for the lanes that come into sight. As many as there
    // are now would change with each scroll, and all would be drawn again.
    const pool = 2 ** Math.ceil(Math.log2(chunks.length + 1))
    return chunks.map((chunk) => (
      <LaneCanvas
        key={chunk % pool}
        top={chunk * CHUNK * size.rowHeight}
        painting={paintingOf(chunk * CHUNK)}
      />
    ))
  }, [from, to, paintingOf])
}
