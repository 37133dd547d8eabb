import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Span } from '../model/range.ts'
import type { AxisTick } from './axis-ticks.ts'
import { type Scale, timeAt } from './marks.ts'

export interface LaneAxisProps {
  readonly scale: Scale
  readonly ticks: readonly AxisTick[]
  readonly left: number
  /** Length of the part at the left end that is not loaded. */
  readonly uncovered: number
  readonly onZoom: (span: Span) => void
}

/** Shorter brushes are ignored as accidental. */
const BRUSH_MIN = 5

/** A label that would cross the end of the axis is omitted. */
const LABEL_WIDTH = 40

/** The time axis. Brushing it zooms; the buttons above it do the same for the keyboard. */
export function LaneAxis({ scale, ticks, left, uncovered, onZoom }: LaneAxisProps): JSX.Element {
  const axis = useRef<HTMLDivElement>(null)
  const brush = useBrush(axis, { scale, onZoom })
  return (
    <div
      ref={axis}
      class="lanes-axis"
      style={{ marginLeft: `${left}px`, width: `${scale.width}px` }}
      title="Draw along the axis to zoom"
    >
      <div class="lanes-uncovered" style={{ width: `${uncovered}px` }} />
      {ticks.map(({ x, text }) => (
        <span key={x} class="lanes-tick" style={{ left: `${x}px` }}>
          {x > scale.width - LABEL_WIDTH ? '' : text}
        </span>
      ))}
      {brush !== undefined && (
        <div
          class="lanes-brush"
          style={{ left: `${brush.left}px`, width: `${brush.right - brush.left}px` }}
        />
      )}
    </div>
  )
}

interface Brush {
  readonly left: number
  readonly right: number
}

function useBrush(
  axis: { readonly current: HTMLElement | null },
  options: { readonly scale: Scale; readonly onZoom: (span: Span) => void },
): Brush | undefined {
  const [brush, setBrush] = useState<Brush>()
  const latest = useRef(options)
  latest.current = options
  useEffect(() => {
    const { current } = axis
    if (current === null) return undefined
    const listening = new AbortController()
    follow(current, { latest, setBrush, signal: listening.signal })
    return () => listening.abort()
  }, [axis])
  return brush
}

interface Following {
  readonly latest: {
    readonly current: { readonly scale: Scale; readonly onZoom: (span: Span) => void }
  }
  readonly setBrush: (brush: Brush | undefined) => void
  readonly signal: AbortSignal
}

function follow(element: HTMLElement, { latest, setBrush, signal }: Following): void {
  let startX: number | undefined
  const brushTo = (event: PointerEvent): Brush => {
    const { width } = latest.current.scale
    const x = event.clientX - element.getBoundingClientRect().left
    const ends = [startX ?? x, Math.min(width, Math.max(0, x))]
    return { left: Math.min(...ends), right: Math.max(...ends) }
  }
  const stop = (): void => {
    startX = undefined
    setBrush(undefined)
  }
  const on = <Name extends 'pointerdown' | 'pointermove' | 'pointerup' | 'pointercancel'>(
    name: Name,
    listener: (event: PointerEvent) => void,
  ): void => element.addEventListener(name, listener, { signal })
  on('pointerdown', (event) => {
    if (event.button !== 0) return
    element.setPointerCapture(event.pointerId)
    startX = event.clientX - element.getBoundingClientRect().left
    event.preventDefault()
  })
  on('pointermove', (event) => {
    if (startX !== undefined) setBrush(brushTo(event))
  })
  on('pointerup', (event) => {
    if (startX === undefined) return
    const { left, right } = brushTo(event)
    stop()
    const { scale, onZoom } = latest.current
    if (right - left < BRUSH_MIN) return
    onZoom({ fromMs: timeAt(scale, left), toMs: timeAt(scale, right) })
  })
  on('pointercancel', stop)
}
