import type { JSX } from 'preact'
import type { Span } from '../../model/range.ts'
import { horizonOf } from '../../model/server/retention.ts'
import { shortTime } from '../../model/times.ts'
import { Moment } from '../event-time.tsx'
import { usePage } from '../page.ts'
import { useServerStatus } from './status.ts'

/** Says since when events are retained, if the displayed span begins earlier. */
export function HorizonNote({ span }: { readonly span: Span }): JSX.Element | null {
  const { nowMs } = usePage()
  const { window } = useServerStatus()
  const oldestMs = window && horizonOf(window)
  if (oldestMs === undefined || span.fromMs >= oldestMs) return null
  return (
    <p class="horizon-note">
      No events from before <Moment ms={oldestMs}>{shortTime(oldestMs, nowMs)}</Moment> are kept:
      they have expired or were evicted, or there were none.
    </p>
  )
}
