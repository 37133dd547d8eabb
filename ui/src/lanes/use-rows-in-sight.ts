import { useCallback, useLayoutEffect, useState } from 'preact/hooks'

/** Lanes from `first` up to, but without, `end`. */
export interface RowsInSight {
  readonly first: number
  readonly end: number
}

/** Labels are made by so many at once: few, since each frame of a fast scroll makes some. */
const STEP = 2
/** And so many before they are in sight. */
const MARGIN = 6

interface Scrolled {
  readonly scroller: { readonly current: HTMLElement | null }
  readonly rowHeight: number
  readonly count: number
}

/** The lanes that are in sight, and some around them. Does not change with every pixel. */
export function useRowsInSight({ scroller, rowHeight, count }: Scrolled): {
  readonly rows: RowsInSight
  readonly update: () => void
} {
  const [rows, setRows] = useState<RowsInSight>({ first: 0, end: 40 })
  const update = useCallback(() => {
    const { current } = scroller
    if (current === null) return
    const top = current.scrollTop / rowHeight
    const bottom = (current.scrollTop + current.clientHeight) / rowHeight
    const first = Math.max(0, Math.floor(top / STEP) * STEP - MARGIN)
    const end = Math.ceil(bottom / STEP) * STEP + MARGIN
    setRows((before) => (before.first === first && before.end === end ? before : { first, end }))
  }, [scroller, rowHeight])
  useLayoutEffect(update, [update, count])
  return { rows, update }
}
