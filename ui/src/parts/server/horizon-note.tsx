import type { JSX } from 'preact'
import type { Span } from '../../model/range.ts'
import { localTime, shortTime, utcTime } from '../../model/times.ts'
import { usePage } from '../page.ts'
import { useServerStatus } from './status.ts'

/** Says from when on events are kept, if the shown span begins earlier. */
export function HorizonNote({ span }: { readonly span: Span }): JSX.Element | null {
  const { nowMs } = usePage()
  const { window } = useServerStatus()
  const oldestMs = window?.oldestMs
  if (oldestMs === undefined || span.fromMs >= oldestMs) return null
  return (
    <p class="horizon-note">
      No events from before{' '}
      <time
        dateTime={utcTime(oldestMs)}
        title={`${localTime(oldestMs)} local\n${utcTime(oldestMs)}`}
      >
        {shortTime(oldestMs, nowMs)}
      </time>{' '}
      are kept: they have expired or were evicted, or there were none.
    </p>
  )
}
