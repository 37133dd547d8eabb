import { useLayoutEffect, useState } from 'preact/hooks'

/** Positions of labels and marks, in pixels. */
export interface BoardSize {
  /** Width of the lanes, excluding the scrollbar. */
  readonly width: number
  readonly rowHeight: number
  /** Width of the labels to the left of the marks; 0 on narrow screens, where labels are above. */
  readonly labelWidth: number
  /** Top of the marks within a row. */
  readonly plotTop: number
  readonly plotHeight: number
}

const NARROW = 640

export function boardSize(width: number): BoardSize {
  if (width < NARROW) return { width, rowHeight: 44, labelWidth: 0, plotTop: 21, plotHeight: 20 }
  const labelWidth = Math.min(340, Math.round(width * 0.3))
  return { width, rowHeight: 26, labelWidth, plotTop: 3, plotHeight: 20 }
}

/** Tracks an element's width. 0 until it is known. */
export function useWidth(element: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0)
  useLayoutEffect(() => {
    const { current } = element
    if (current === null) return undefined
    const observer = new ResizeObserver(() => setWidth(current.clientWidth))
    observer.observe(current)
    setWidth(current.clientWidth)
    return () => observer.disconnect()
  }, [element])
  return width
}
