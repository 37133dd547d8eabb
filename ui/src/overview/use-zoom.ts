import { useRef } from 'preact/hooks'
import { type Span, spanOf, type TimeRange, zoomed } from '../model/range.ts'
import { usePage } from '../parts/page.ts'

/** Shorter spans contain nothing. */
const SPAN_MS_MIN = 1_000

export interface Zoom {
  readonly zoomIn: (span: Span) => void
  /** Undefined if the range ends now, so was not zoomed into. */
  readonly zoomOut: (() => void) | undefined
}

/** Zooms into shorter ranges and back out. */
export function useZoom(): Zoom {
  const { query, change, nowMs, announce } = usePage()
  const { range } = query
  const before = useRef<TimeRange[]>([])
  return {
    zoomIn: (span) => {
      if (span.toMs - span.fromMs < SPAN_MS_MIN) return
      before.current.push(range)
      change({ range: span })
      announce('Zoomed in')
    },
    zoomOut:
      'last' in range
        ? undefined
        : () => {
            const last = before.current.pop()
            const isWayBack = last !== undefined && isAround(spanOf(last, nowMs), range)
            // The range has been changed in the meantime, so zooming out would lead elsewhere.
            if (!isWayBack) before.current = []
            change({ range: isWayBack ? last : zoomed(range, { factor: 2, nowMs }) })
            announce('Zoomed out')
          },
  }
}

/** Bars extend slightly beyond the range that they were made for. */
function isAround(outer: Span, inner: Span): boolean {
  const isLonger = outer.toMs - outer.fromMs > inner.toMs - inner.fromMs
  return isLonger && outer.fromMs < inner.toMs && inner.fromMs < outer.toMs
}
