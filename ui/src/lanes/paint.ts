/**
 * Draws the marks of lanes. A Normal tick is a short grey line, a Warning a longer amber one with a
 * head: they differ by shape as well as by colour.
 */
import type { Colours } from '../parts/use-colours.ts'
import type { BoardSize } from './board-size.ts'
import type { Mark } from './marks.ts'

export interface Painting {
  /** Marks per lane, from top to bottom. */
  readonly lanes: readonly (readonly Mark[])[]
  /** Positions of the grid lines. */
  readonly gridXs: readonly number[]
  readonly size: BoardSize
  readonly colours: Colours
}

/** Minimum width of a bar that shows its count. */
const COUNT_BAR_MIN = 34

export function paint(context: CanvasRenderingContext2D, painting: Painting): void {
  const { lanes, gridXs, size, colours } = painting
  const height = lanes.length * size.rowHeight
  context.clearRect(0, 0, size.width, height)
  context.fillStyle = colours.line
  for (const x of gridXs) paintLine(context, x, painting)
  context.font = '11px system-ui, sans-serif'
  context.textBaseline = 'middle'
  for (const [index, marks] of lanes.entries()) {
    const middle = index * size.rowHeight + size.plotTop + size.plotHeight / 2
    const row = { middle, colours }
    for (const mark of marks) {
      if (mark.isBar) paintBar(context, mark, row)
      else paintTick(context, mark, row)
    }
    paintCounts(context, marks, row)
  }
}

/** Draws through the marks, but not through labels above them. */
function paintLine(
  context: CanvasRenderingContext2D,
  x: number,
  { lanes, size: { rowHeight, labelWidth, plotTop } }: Painting,
): void {
  const top = labelWidth === 0 ? plotTop : 0
  for (const index of lanes.keys()) context.fillRect(x, index * rowHeight + top, 1, rowHeight - top)
}

interface Row {
  readonly middle: number
  readonly colours: Colours
}

function paintBar(context: CanvasRenderingContext2D, mark: Mark, { middle, colours }: Row): void {
  const { left, right, isWarning, isCut } = mark
  const half = isWarning ? 6 : 4
  context.fillStyle = isWarning ? colours.warning : colours.normal
  context.globalAlpha = 0.3
  context.fillRect(left, middle - half, right - left, 2 * half)
  context.globalAlpha = 1
  // A known end is drawn as a line.
  if (!isCut) context.fillRect(left, middle - half, 1, 2 * half)
  paintTick(context, { ...mark, left: right }, { middle, colours })
}

/** Counts must not overlap: where bars begin at the same time, only the topmost shows its count. */
function paintCounts(
  context: CanvasRenderingContext2D,
  marks: readonly Mark[],
  { middle, colours }: Row,
): void {
  context.fillStyle = colours.text
  const taken: number[] = []
  for (const { isBar, left, right, count } of marks.toReversed()) {
    const isFree = taken.every((other) => Math.abs(other - left) >= COUNT_BAR_MIN)
    if (!isBar || right - left < COUNT_BAR_MIN || !isFree) continue
    taken.push(left)
    context.fillText(`×${count}`, left + 4, middle, COUNT_BAR_MIN - 6)
  }
}

function paintTick(
  context: CanvasRenderingContext2D,
  { left, isWarning, events }: Mark,
  { middle, colours }: Row,
): void {
  // A tick of several events is wider, but narrower than a column.
  const width = events.length > 1 ? 3 : 2
  context.fillStyle = isWarning ? colours.warning : colours.normal
  if (!isWarning) {
    context.fillRect(left - 1, middle - 5, width, 10)
    return
  }
  context.fillRect(left - 1, middle - 9, width, 18)
  context.beginPath()
  context.moveTo(left - 4, middle - 10)
  context.lineTo(left + 4, middle - 10)
  context.lineTo(left, middle - 3)
  context.fill()
}
