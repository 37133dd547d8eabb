import { useEffect, useReducer, useState } from 'preact/hooks'
import { FILTERS } from '../model/query.ts'
import { usePage } from '../parts/page.ts'
import { framePace } from './frame-pace.ts'
import { TailFeed, type TailLink } from './tail-feed.ts'

/** Rows that move more often cannot be read. */
const SHOW_EVERY_MS = 250
/** After this long in the background, the tab counts as abandoned. */
const HIDDEN_MS_MAX = 60_000

/** The feed for the page's filters. Renders again when there is something new. */
export function useFeed(): TailFeed | undefined {
  const { client, query } = usePage()
  const [feed, setFeed] = useState<TailFeed | undefined>(undefined)
  const [, render] = useReducer<number, void>((count) => count + 1, 0)
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let shownLink: TailLink | undefined
    const show = (): void => {
      timer = undefined
      shownLink = started.link
      render()
    }
    const onUpdate = (): void => {
      // Hidden tabs are not rendered.
      if (document.hidden && started.link === shownLink) return
      timer ??= setTimeout(show, SHOW_EVERY_MS)
    }
    const started = new TailFeed({ client, filters: query, pace: framePace(), onUpdate })
    setFeed(started)
    void started.run()
    const stopListening = listen(started)
    document.addEventListener('visibilitychange', onUpdate)
    return () => {
      started.close()
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', onUpdate)
      stopListening()
    }
  }, [client, ...FILTERS.map((name) => query[name])])
  return feed
}

/** Puts the feed to sleep while the tab is hidden for long. Returns a function that ends this. */
function listen(feed: TailFeed): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  const onVisibility = (): void => {
    clearTimeout(timer)
    if (document.hidden) {
      timer = setTimeout(() => feed.sleep(), HIDDEN_MS_MAX)
    } else {
      feed.wake()
      feed.retryNow()
    }
  }
  const onOnline = (): void => feed.retryNow()
  document.addEventListener('visibilitychange', onVisibility)
  window.addEventListener('online', onOnline)
  onVisibility()
  return () => {
    clearTimeout(timer)
    document.removeEventListener('visibilitychange', onVisibility)
    window.removeEventListener('online', onOnline)
  }
}
