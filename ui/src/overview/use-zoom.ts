import { useRef } from 'preact/hooks'
import { type Span, spanOf, type TimeRange, zoomed } from '../model/range.ts'
import { usePage } from '../parts/page.ts'

/** Nothing happens in less. */
const SPAN_MS_MIN = 1_000

export interface Zoom {
  readonly zoomIn: (span: Span) => void
  /** Undefined when the range ends now: it has not been zoomed into. */
  readonly zoomOut: (() => void) | undefined
}

/** Shorter ranges, and the way back to the longer ones. */
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
            // Another range was chosen meanwhile: the way back does not lead from there.
            if (!isWayBack) before.current = []
            change({ range: isWayBack ? last : zoomed(range, { factor: 2, nowMs }) })
            announce('Zoomed out')
          },
  }
}

/** Bars begin and end a little outside of the range that they are made of. */
function isAround(outer: Span, inner: Span): boolean {
  const isLonger = outer.toMs - outer.fromMs > inner.toMs - inner.fromMs
  return isLonger && outer.fromMs < inner.toMs && inner.fromMs < outer.toMs
}
