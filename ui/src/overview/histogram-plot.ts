/** Draws bars with uPlot: Warnings above Normals. */
import UPlot from 'uplot'
import { type Bars, barAt, spanOfBars } from '../model/histogram/buckets.ts'
import type { Span } from '../model/range.ts'
import { axisTime } from '../model/times.ts'
import type { Colours } from '../parts/use-colours.ts'

export interface PlotOptions {
  readonly bars: Bars
  readonly colours: Colours
  readonly width: number
  readonly height: number
  /** Called with the bar under the pointer, or undefined. */
  readonly onPoint: (index: number | undefined) => void
  readonly onBrush: (from: number, to: number) => void
  readonly onZoomOut: () => void
}

/** Shorter pointer movements are clicks. */
const BRUSH_PX_MIN = 5
const FONT = '12px system-ui, "DejaVu Sans", sans-serif'

export function makePlot(options: PlotOptions, root: HTMLElement): UPlot {
  const { plan, normal, warnings } = options.bars
  const totals = normal.map((count, index) => count + (warnings[index] ?? 0))
  return new UPlot(plotOptions(options), [[...plan.starts], totals, [...normal]], root)
}

function plotOptions(options: PlotOptions): UPlot.Options {
  const { bars, colours, width, height } = options
  const { plan } = bars
  const barPaths = UPlot.paths.bars?.({ size: [1, Number.POSITIVE_INFINITY], align: 1, gap: 1 })
  const series = (fill: string): UPlot.Series => ({
    fill,
    width: 0,
    points: { show: false },
    ...(barPaths === undefined ? {} : { paths: barPaths }),
  })
  const barUnder = (plot: UPlot, left: number): number => barAt(plan, plot.posToVal(left, 'x'))
  return {
    width,
    height,
    ms: 1,
    padding: [8, 20, 0, 0],
    legend: { show: false },
    scales: {
      x: { range: (): UPlot.Range.MinMax => [plan.fromMs, plan.toMs] },
      y: { range: (_plot, _min, max): UPlot.Range.MinMax => [0, Math.max(1, max) * 1.05] },
    },
    axes: axesOf(colours, plan),
    // Totals are drawn first and Normals over them, so the visible rest are the Warnings.
    series: [{}, series(colours.warning), series(colours.normal)],
    cursor: {
      y: false,
      points: { show: false },
      drag: { x: true, y: false, setScale: false, dist: BRUSH_PX_MIN },
      bind: {
        dblclick: () => () => {
          options.onZoomOut()
          return null
        },
      },
    },
    hooks: {
      draw: [(plot) => hatchEstimated(plot, bars, colours.surface)],
      setCursor: [
        (plot) => {
          const { left = -1 } = plot.cursor
          options.onPoint(left < 0 ? undefined : barUnder(plot, left))
        },
      ],
      setSelect: [
        (plot) => {
          const { left, width: brushed } = plot.select
          if (brushed < BRUSH_PX_MIN) return
          options.onBrush(barUnder(plot, left), barUnder(plot, left + brushed - 1))
        },
      ],
    },
  }
}

/** The distance of the lines of a hatching, in CSS pixels. */
const HATCH_PX = 5

/** Hatches the bars whose height is estimated. */
function hatchEstimated(
  plot: UPlot,
  { plan, normal, warnings, estimated }: Bars,
  colour: string,
): void {
  const { ctx } = plot
  const scale = window.devicePixelRatio
  const floor = plot.valToPos(0, 'y', true)
  for (const [index, isEstimated] of estimated.entries()) {
    if (!isEstimated) continue
    const { fromMs, toMs } = spanOfBars(plan, index, index)
    const left = plot.valToPos(fromMs, 'x', true)
    const right = plot.valToPos(toMs, 'x', true)
    const top = plot.valToPos((normal[index] ?? 0) + (warnings[index] ?? 0), 'y', true)
    const height = floor - top
    ctx.save()
    ctx.beginPath()
    ctx.rect(left, top, right - left, height)
    ctx.clip()
    ctx.strokeStyle = colour
    ctx.lineWidth = scale
    ctx.beginPath()
    for (let x = left - height; x < right; x += HATCH_PX * scale) {
      ctx.moveTo(x, floor)
      ctx.lineTo(x + height, top)
    }
    ctx.stroke()
    ctx.restore()
  }
}

function axesOf(colours: Colours, span: Span): UPlot.Axis[] {
  const common = { stroke: colours.muted, font: FONT }
  const line = { stroke: colours.line, width: 1 }
  return [
    {
      ...common,
      size: 28,
      space: 80,
      grid: { show: false },
      ticks: { ...line, size: 4 },
      values: (_plot, splits) => splits.map((ms) => axisTime(ms, span.toMs - span.fromMs)),
    },
    {
      ...common,
      size: 48,
      space: 32,
      grid: line,
      ticks: { show: false },
      incrs: [1, 2, 5]
        .flatMap((digit) => Array.from({ length: 13 }, (_, at) => digit * 10 ** at))
        .sort((a, b) => a - b),
      values: (_plot, splits) => splits.map(shortCount),
    },
  ]
}

/** `950`, `1.2k`, `3M` */
function shortCount(count: number): string {
  return count.toLocaleString('en', { notation: 'compact' })
}

/** Highlights bars for the keyboard like the pointer does. */
export function markBars(plot: UPlot, { plan }: Bars, from: number, to: number): void {
  const edges = ({ fromMs, toMs }: Span): readonly [number, number] => [
    plot.valToPos(fromMs, 'x'),
    plot.valToPos(toMs, 'x'),
  ]
  const [left, right] = edges(spanOfBars(plan, to, to))
  plot.setCursor({ left: (left + right) / 2, top: 0 })
  const [start, end] = edges(spanOfBars(plan, from, to))
  const width = from === to ? 0 : end - start
  plot.setSelect({ left: start, width, top: 0, height: plot.over.clientHeight }, false)
}
