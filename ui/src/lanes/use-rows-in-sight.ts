import { useCallback, useLayoutEffect, useState } from 'preact/hooks'

/** Lanes from `first` up to, but without, `end`. */
export interface RowsInSight {
  readonly first: number
  readonly end: number
}

/** Lanes are drawn by so many at once. */
export const CHUNK = 8

interface Scrolled {
  readonly scroller: { readonly current: HTMLElement | null }
  readonly rowHeight: number
  readonly count: number
}

/** The lanes that are in sight and some around them, in whole chunks. Changes only with the chunks. */
export function useRowsInSight({ scroller, rowHeight, count }: Scrolled): {
  readonly rows: RowsInSight
  readonly update: () => void
} {
  const [rows, setRows] = useState<RowsInSight>({ first: 0, end: 4 * CHUNK })
  const update = useCallback(() => {
    const { current } = scroller
    if (current === null) return
    const top = current.scrollTop / rowHeight
    const bottom = (current.scrollTop + current.clientHeight) / rowHeight
    const first = Math.max(0, Math.floor(top / CHUNK - 0.5) * CHUNK)
    const end = Math.ceil(bottom / CHUNK + 0.5) * CHUNK
    setRows((before) => (before.first === first && before.end === end ? before : { first, end }))
  }, [scroller, rowHeight])
  useLayoutEffect(update, [update, count])
  return { rows, update }
}
