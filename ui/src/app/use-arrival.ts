import type { RefObject } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Query } from '../model/query.ts'
import { visible } from '../model/visible.ts'
import { VIEW_TITLES } from './header.tsx'

/** Announces a change of view: sets the title, scrolls to the top and moves the focus there. */
export function useArrival(query: Query): RefObject<HTMLElement | null> {
  const main = useRef<HTMLElement>(null)
  const isFirst = useRef(true)
  const { view, about, namespace, cluster } = query
  useEffect(() => {
    const subject = view === 'object' && about !== '' ? about : VIEW_TITLES[view]
    const parts = [subject, namespace, cluster, 'Events'].filter((part) => part !== '')
    document.title = visible(parts.join(' · '))
  }, [view, about, namespace, cluster])
  useEffect(() => {
    const hasArrived = !isFirst.current
    isFirst.current = false
    if (!hasArrived) return
    window.scrollTo(0, 0)
    // A view may have given the focus to one of its inputs.
    if (main.current?.contains(document.activeElement) === false) main.current.focus()
  }, [view, about])
  return main
}
