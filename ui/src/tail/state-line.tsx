import type { JSX } from 'preact'
import { useShortcut } from '../parts/shortcuts.ts'
import type { TailFeed, TailLink } from './tail-feed.ts'
import type { PauseControl } from './use-pause.ts'
import { useTick } from './use-tick.ts'

export interface StateLineProps {
  readonly feed: TailFeed
  readonly pause: PauseControl
}

/** A sticky status bar: the state of the connection, the event rate, and the pause control. */
export function StateLine({ feed, pause }: StateLineProps): JSX.Element {
  const isPaused = pause.by !== undefined
  const nowMs = Date.now()
  useTick(feed.link.kind === 'waiting')
  useShortcut({ keys: [' '], title: 'Pause or resume', run: pause.toggle })
  return (
    <div class="tail-state">
      <button type="button" onClick={pause.toggle} title="Space">
        {isPaused ? 'Resume' : 'Pause'}
      </button>
      <span class={isProblem(feed.link) ? 'tail-link tail-link-problem' : 'tail-link'}>
        {isPaused && feed.link.kind === 'live' ? pausedText(pause) : linkText(feed.link, nowMs)}
      </span>
      {feed.link.kind === 'failed' && (
        <button type="button" onClick={() => feed.retryNow()}>
          Try again
        </button>
      )}
      {feed.link.kind === 'live' && !isPaused && (
        <span class="tail-rate">{rateText(feed.rate.perSecond(nowMs))}</span>
      )}
      {isPaused && pause.newCount > 0 && (
        <button type="button" class="tail-new" onClick={pause.toggle}>
          {newText(pause)}
        </button>
      )}
    </div>
  )
}

/** Larger counts are shown as `999+`. */
const NEW_MAX = 999

function newText({ newCount, by }: PauseControl): string {
  const count = newCount > NEW_MAX ? `${NEW_MAX}+` : String(newCount)
  return by === 'reading' ? `${count} new – back to top` : `${count} new – show`
}

function pausedText({ by }: PauseControl): string {
  return by === 'reading' ? 'Paused while you read' : 'Paused'
}

function isProblem(link: TailLink): boolean {
  return link.kind === 'waiting' || link.kind === 'failed'
}

function linkText(link: TailLink, nowMs: number): string {
  switch (link.kind) {
    case 'connecting':
      return 'Connecting…'
    case 'live':
      return 'Live'
    case 'waiting':
      return `Reconnecting in ${Math.max(0, Math.ceil((link.untilMs - nowMs) / 1_000))} s – ${link.error.message}`
    case 'asleep':
      return 'Paused in the background'
    case 'failed':
      return 'Stopped'
  }
}

function rateText(perSecond: number): string {
  if (perSecond === 0) return 'no events in the last 5 s'
  const rate = perSecond < 10 ? perSecond.toFixed(1) : Math.round(perSecond).toLocaleString('en')
  return `${rate} events/s`
}
