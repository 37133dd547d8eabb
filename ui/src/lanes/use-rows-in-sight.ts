import { useCallback, useLayoutEffect, useState } from 'preact/hooks'

/** Lanes from `first` (inclusive) to `end` (exclusive). */
export interface RowsInSight {
  readonly first: number
  readonly end: number
}

/**
 * Labels are created in steps of this size: small, since each frame of a fast scroll creates some.
 */
const STEP = 2
/** Rows rendered before they become visible. */
const MARGIN = 6

interface Scrolled {
  readonly scroller: { readonly current: HTMLElement | null }
  readonly rowHeight: number
  readonly count: number
}

/** The visible lanes and some around them. Does not change with every pixel scrolled. */
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
