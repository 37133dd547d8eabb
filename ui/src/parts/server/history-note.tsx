import type { JSX } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { questionOf } from '../../model/query.ts'
import { reachesHistory } from '../../model/server/retention.ts'
import { humanDuration, secondMs, shortTime } from '../../model/times.ts'
import { Moment } from '../event-time.tsx'
import { useNow } from '../events/use-now.ts'
import { useHold, usePage } from '../page.ts'
import type { Work } from '../use-load.ts'
import { useServerStatus } from './status.ts'

export interface HistoryNoteProps {
  /** Where the range begins. */
  readonly fromMs: number
  readonly works: readonly Work[]
  /** How far back a list has been searched; undefined if that is not known, or all of it. */
  readonly reachedMs?: number | undefined
  /** Renders nothing else. */
  readonly isOnlyProgress?: boolean
}

/**
 * Says what comes from history. If that takes time, it shows the progress, cancels it and goes on,
 * and there are no more automatic refreshes.
 */
export function HistoryNote(props: HistoryNoteProps): JSX.Element | null {
  const { fromMs, works, reachedMs, isOnlyProgress = false } = props
  const { query, nowMs } = usePage()
  const { window } = useServerStatus()
  const isRead = reachesHistory(window, fromMs)
  const isBusy = works.some(({ isLoading }) => isLoading)
  const isCancelled = works.some((work) => work.isCancelled)
  const { isSlow, begunMs } = useSlowness(isBusy, questionOf(query))
  useHold(isRead && (isSlow || isCancelled))
  if (!isRead) return null
  const time = (ms: number): JSX.Element => <Moment ms={ms}>{shortTime(ms, nowMs)}</Moment>
  if (!isCancelled && !(isBusy && isSlow)) {
    return isOnlyProgress ? null : (
      <p class="horizon-note">
        Events from before {time(window?.history?.untilMs ?? nowMs)} are from history.
      </p>
    )
  }
  return (
    <p class="horizon-note">
      <span role="status">
        {isBusy ? 'Reading history…' : 'Cancelled.'}
        {reachedMs !== undefined && <> Searched back to {time(reachedMs)}.</>}
      </span>{' '}
      {isBusy && <Elapsed sinceMs={begunMs} />}{' '}
      <button
        type="button"
        onClick={() => {
          for (const work of works) isBusy ? work.cancel() : work.goOn()
        }}
      >
        {isBusy ? 'Cancel' : 'Go on'}
      </button>
    </p>
  )
}

/** What takes longer is worth a word. */
const SLOW_MS = secondMs

/** Whether the question is, or was, slow to answer; and when that began. */
function useSlowness(
  isBusy: boolean,
  question: string,
): { readonly isSlow: boolean; readonly begunMs: number } {
  const [slow, setSlow] = useState('')
  const begunMs = useMemo(Date.now, [isBusy, question])
  useEffect(() => {
    if (!isBusy) return
    const timer = setTimeout(() => setSlow(question), SLOW_MS)
    return () => clearTimeout(timer)
  }, [isBusy, question])
  return { isSlow: slow === question, begunMs }
}

function Elapsed({ sinceMs }: { readonly sinceMs: number }): JSX.Element {
  return <>{humanDuration(useNow(secondMs) - sinceMs)}</>
}
