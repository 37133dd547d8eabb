import { useLayoutEffect, useState } from 'preact/hooks'

/** Where labels and marks are, in pixels. */
export interface BoardSize {
  /** Of the lanes, without a scrollbar. */
  readonly width: number
  readonly rowHeight: number
  /** Labels are left of the marks; 0 where there is no room, and they are above. */
  readonly labelWidth: number
  /** Of the marks in a row. */
  readonly plotTop: number
  readonly plotHeight: number
}

const NARROW = 640

export function boardSize(width: number): BoardSize {
  if (width < NARROW) return { width, rowHeight: 44, labelWidth: 0, plotTop: 21, plotHeight: 20 }
  const labelWidth = Math.min(340, Math.round(width * 0.3))
  return { width, rowHeight: 26, labelWidth, plotTop: 3, plotHeight: 20 }
}

/** Follows the width of an element. 0 until it is known. */
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
