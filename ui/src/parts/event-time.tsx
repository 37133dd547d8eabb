import type { ComponentChildren, JSX } from 'preact'
import { humanDuration, localTime, utcTime } from '../model/times.ts'

/** A time in whatever words; with the local time and UTC on hover. */
export function Moment({
  ms,
  children,
}: {
  readonly ms: number
  readonly children: ComponentChildren
}): JSX.Element {
  return (
    <time dateTime={utcTime(ms)} title={`${localTime(ms)} local\n${utcTime(ms)}`}>
      {children}
    </time>
  )
}

/** How long ago. */
export function EventTime({
  ms,
  nowMs,
}: {
  readonly ms: number
  readonly nowMs: number
}): JSX.Element {
  return <Moment ms={ms}>{humanDuration(nowMs - ms)}</Moment>
}
