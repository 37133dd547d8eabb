/** Announces what happens to screen readers. */
import { useEffect, useRef } from 'preact/hooks'
import type { Arrived } from '../model/tail-buffer.ts'
import { usePage } from '../parts/page.ts'
import type { TailFeed } from './tail-feed.ts'
import type { PauseControl } from './use-pause.ts'

/** A screen reader could not keep up with shorter intervals. */
const SUMMARY_EVERY_MS = 5_000

export function useAnnouncements(feed: TailFeed | undefined, { by }: PauseControl): void {
  useSummaries(feed, by !== undefined)
  useStates(feed, by)
}

/** Announces how many events arrived. */
function useSummaries(feed: TailFeed | undefined, isPaused: boolean): void {
  const { announce } = usePage()
  const paused = useRef(isPaused)
  paused.current = isPaused
  useEffect(() => {
    if (feed === undefined) return
    let told: Arrived | undefined
    const timer = setInterval(() => {
      told ??= feed.first
      const { arrived } = feed.buffer
      if (paused.current || told === undefined || arrived.events === told.events) return
      announce(summary(arrived.events - told.events, arrived.warnings - told.warnings))
      told = arrived
    }, SUMMARY_EVERY_MS)
    return () => clearInterval(timer)
  }, [feed])
}

function summary(events: number, warnings: number): string {
  const text = events === 1 ? '1 new event' : `${events} new events`
  return warnings === 0 ? text : `${text}, ${warnings} of type Warning`
}

type State = 'lost' | 'live' | NonNullable<PauseControl['by']>

const STATE_TEXTS: Readonly<Record<State, string>> = {
  lost: 'The connection was lost. Reconnecting.',
  live: 'Live',
  user: 'Paused',
  reading: 'Paused while you read',
}

interface News {
  readonly feed: TailFeed
  readonly state: State
  readonly gapCount: number
  readonly isAllShown: boolean
}

/** Announces whether events arrive, and whether some are missing. */
function useStates(feed: TailFeed | undefined, by: PauseControl['by']): void {
  const { announce } = usePage()
  const told = useRef<News | undefined>(undefined)
  useEffect(() => {
    const now = feed === undefined ? undefined : newsOf(feed, by)
    if (now === undefined) return
    const text = changeText(told.current, now)
    told.current = now
    if (text !== '') announce(text)
  })
}

function changeText(before: News | undefined, now: News): string {
  // At the beginning, only a failure is news.
  if (before?.feed !== now.feed) return now.state === 'lost' ? STATE_TEXTS.lost : ''
  const texts = [
    ...(now.state === before.state ? [] : [STATE_TEXTS[now.state]]),
    ...(now.gapCount === before.gapCount ? [] : ['There is a gap: changes are missing.']),
    ...(now.isAllShown || !before.isAllShown ? [] : ['Not all events are shown.']),
  ]
  return texts.join(' ')
}

/**
 * Undefined while the link changes, after a failure (which a panel shows), or while the tab is
 * hidden.
 */
function newsOf(feed: TailFeed, by: PauseControl['by']): News | undefined {
  const { link, buffer, reading } = feed
  if (link.kind !== 'waiting' && link.kind !== 'live') return undefined
  const state = link.kind === 'waiting' ? 'lost' : (by ?? 'live')
  return { feed, state, gapCount: buffer.gapCount, isAllShown: reading.unshown === undefined }
}
