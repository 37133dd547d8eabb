import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import type { TailEntry } from '../model/tail-buffer.ts'
import type { TailFeed } from './tail-feed.ts'

/** Scroll position beyond which the user is reading. */
const TOP_PX = 8

interface Pause {
  readonly feed: TailFeed
  /** `reading`: scrolling and opening a row pause for as long as they last. */
  readonly by: 'user' | 'reading'
  readonly entries: readonly TailEntry[]
  readonly arrivedCount: number
}

export interface PauseControl {
  /** The rows shown; constant during a pause. */
  readonly entries: readonly TailEntry[]
  /** Undefined while not paused. */
  readonly by: Pause['by'] | undefined
  /** Events that arrived since the pause. */
  readonly newCount: number
  readonly toggle: () => void
  /** To be called with whether a row is open. */
  readonly onOpen: (isAnyOpen: boolean) => void
}

export function usePause(feed: TailFeed | undefined): PauseControl {
  const [stored, setPause] = useState<Pause | undefined>(undefined)
  // With other filters, the paused rows are not the requested ones.
  const pause = stored?.feed === feed ? stored : undefined
  const isRowOpen = useRef(false)
  const begin = (by: Pause['by']): void => {
    if (feed === undefined) return
    const { entries, arrived } = feed.buffer
    setPause((before) =>
      before?.feed === feed ? before : { feed, by, entries, arrivedCount: arrived.events },
    )
  }
  const check = (): void => {
    if (isRowOpen.current || window.scrollY > TOP_PX) begin('reading')
    else setPause((before) => (before?.by === 'reading' ? undefined : before))
  }
  useEffect(() => {
    window.addEventListener('scroll', check, { passive: true })
    return () => window.removeEventListener('scroll', check)
  }, [feed])
  const onOpen = useCallback(
    (isAnyOpen: boolean) => {
      isRowOpen.current = isAnyOpen
      check()
    },
    [feed],
  )
  return {
    entries: pause?.entries ?? feed?.buffer.entries ?? [],
    by: pause?.by,
    newCount: pause === undefined ? 0 : pause.feed.buffer.arrived.events - pause.arrivedCount,
    onOpen,
    toggle: () => {
      if (pause === undefined) return begin('user')
      isRowOpen.current = false
      setPause(undefined)
      window.scrollTo({ top: 0 })
    },
  }
}
