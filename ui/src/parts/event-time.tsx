import type { JSX } from 'preact'
import { humanDuration, localTime, utcTime } from '../model/times.ts'

/** How long ago; with the local time and UTC on hover. */
export function EventTime({
  ms,
  nowMs,
}: {
  readonly ms: number
  readonly nowMs: number
}): JSX.Element {
  return (
    <time dateTime={utcTime(ms)} title={`${localTime(ms)} local\n${utcTime(ms)}`}>
      {humanDuration(nowMs - ms)}
    </time>
  )
}
