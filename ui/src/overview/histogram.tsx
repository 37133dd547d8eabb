import 'uplot/dist/uPlot.min.css'
import '../styles/histogram.css'
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type UPlot from 'uplot'
import { type Bars, spanOfBars, sumOf } from '../model/histogram/buckets.ts'
import type { Span } from '../model/range.ts'
import { longDuration, spanText } from '../model/times.ts'
import { useHold } from '../parts/page.ts'
import { useColours } from '../parts/use-colours.ts'
import { makePlot, markBars } from './histogram-plot.ts'
import { HistogramTable } from './histogram-table.tsx'

export interface HistogramProps {
  /** Undefined before the first load. */
  readonly bars: Bars | undefined
  readonly isLoading: boolean
  readonly hasFailed: boolean
  readonly onZoom: (span: Span) => void
  /** Undefined if there is nothing to go back to. */
  readonly onZoomOut: (() => void) | undefined
}

const HEIGHT_PX = 132

/**
 * Shows how often events were seen in each part of the range. Brushing it selects a shorter range.
 */
export function Histogram(props: HistogramProps): JSX.Element {
  const { bars, isLoading, hasFailed, onZoom, onZoomOut } = props
  const [pointed, setPointed] = useState<number | undefined>(undefined)
  const [hasTable, setHasTable] = useState(false)
  return (
    <section class="histogram" aria-label="Histogram" aria-busy={isLoading}>
      <div class="histogram-caption">
        <span class="histogram-readout">
          {bars === undefined ? (hasFailed ? 'No counts' : 'Loading…') : readout(bars, pointed)}
        </span>
        <span class="histogram-actions">
          {onZoomOut !== undefined && (
            <button type="button" onClick={onZoomOut}>
              Zoom out
            </button>
          )}
          <button type="button" aria-expanded={hasTable} onClick={() => setHasTable(!hasTable)}>
            Table
          </button>
        </span>
      </div>
      <Chart
        bars={bars}
        pointed={pointed}
        onPoint={setPointed}
        onZoom={onZoom}
        onZoomOut={onZoomOut}
      />
      {hasTable && bars !== undefined && <HistogramTable bars={bars} onZoom={onZoom} />}
    </section>
  )
}

/** The chart's content in words. */
function readout(bars: Bars, index: number | undefined): string {
  const { plan, normal, warnings, estimated } = bars
  if (index !== undefined && index >= 0 && index < plan.count) {
    const text = counts(warnings[index] ?? 0, normal[index] ?? 0)
    const isEstimated = estimated[index] === true
    return `${spanText(spanOfBars(plan, index, index))}: ${text}${isEstimated ? ' (estimated)' : ''}`
  }
  const total = counts(sumOf(warnings), sumOf(normal))
  return `${spanText(plan)}: ${total}; a bar is ${longDuration(plan.stepMs)}`
}

function counts(warnings: number, normal: number): string {
  const text = (count: number): string => count.toLocaleString('en')
  return `${text(warnings)} ${warnings === 1 ? 'Warning' : 'Warnings'}, ${text(normal)} Normal`
}

interface ChartProps extends Omit<HistogramProps, 'isLoading' | 'hasFailed'> {
  readonly pointed: number | undefined
  readonly onPoint: (index: number | undefined) => void
}

/** A slider for the keyboard, whose value is a bar. */
function Chart({ bars, pointed, onPoint, onZoom, onZoomOut }: ChartProps): JSX.Element {
  const [isBrushing, setIsBrushing] = useState(false)
  useHold(isBrushing)
  useEffect(() => {
    if (!isBrushing) return
    const onEnd = (): void => setIsBrushing(false)
    // A touch that becomes a scroll is cancelled.
    const ends = ['pointerup', 'pointercancel'] as const
    for (const end of ends) window.addEventListener(end, onEnd)
    return () => {
      for (const end of ends) window.removeEventListener(end, onEnd)
    }
  }, [isBrushing])
  const { root, plot } = usePlot({ bars, onPoint, onZoom, onZoomOut })
  const last = (bars?.plan.count ?? 1) - 1
  const anchor = useRef<number | undefined>(undefined)
  const at = Math.min(last, pointed ?? last)
  const onKeyDown = (event: KeyboardEvent): void => {
    if (bars === undefined || plot.current === undefined) return
    if (event.key === 'Enter') {
      onZoom(spanOfBars(bars.plan, anchor.current ?? at, at))
    } else {
      const next = moved(event.key, at, last, pointed === undefined)
      if (next === undefined) return
      anchor.current = event.shiftKey ? (anchor.current ?? at) : undefined
      markBars(plot.current, bars, anchor.current ?? next, next)
    }
    event.preventDefault()
  }
  return (
    <div
      ref={root}
      class="histogram-chart"
      role="slider"
      tabIndex={0}
      aria-label="Time in the histogram. Arrow keys move, with shift they select, Enter zooms in."
      aria-valuemin={0}
      aria-valuemax={last}
      aria-valuenow={at}
      aria-valuetext={bars === undefined ? 'Loading' : readout(bars, at)}
      onKeyDown={onKeyDown}
      onPointerDown={() => setIsBrushing(true)}
      onBlur={() => {
        anchor.current = undefined
      }}
    />
  )
}

/** Returns the bar that a key moves to. The first key press only shows the current position. */
function moved(key: string, at: number, last: number, isFirst: boolean): number | undefined {
  switch (key) {
    case 'ArrowLeft':
      return isFirst ? at : Math.max(0, at - 1)
    case 'ArrowRight':
      return isFirst ? at : Math.min(last, at + 1)
    case 'Home':
      return 0
    case 'End':
      return last
    default:
      return undefined
  }
}

/** Renders a plot of the bars into an element, at the element's width. */
function usePlot({ bars, onPoint, onZoom, onZoomOut }: Omit<ChartProps, 'pointed'>): {
  readonly root: { current: HTMLDivElement | null }
  readonly plot: { readonly current: UPlot | undefined }
} {
  const root = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot | undefined>(undefined)
  const colours = useColours()
  const handlers = useRef({ onZoom, onZoomOut })
  handlers.current = { onZoom, onZoomOut }
  useEffect(() => {
    const element = root.current
    if (element === null || bars === undefined) return
    const made = makePlot(
      {
        bars,
        colours,
        width: element.clientWidth,
        height: HEIGHT_PX,
        onPoint,
        onBrush: (from, to) => handlers.current.onZoom(spanOfBars(bars.plan, from, to)),
        onZoomOut: () => handlers.current.onZoomOut?.(),
      },
      element,
    )
    plot.current = made
    const observer = new ResizeObserver(() =>
      made.setSize({ width: element.clientWidth, height: HEIGHT_PX }),
    )
    observer.observe(element)
    return () => {
      observer.disconnect()
      made.destroy()
      plot.current = undefined
      onPoint(undefined)
    }
  }, [bars, colours])
  return { root, plot }
}
