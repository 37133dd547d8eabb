import type { ComponentChildren, JSX } from 'preact'
import { age, localTime, utcTime } from '../model/times.ts'

/** A time in any wording; hovering shows the local time and UTC. */
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

/** How long ago it was, as a short form or with the word "ago". */
export function EventTime({
  ms,
  nowMs,
  isInSentence = false,
}: {
  readonly ms: number
  readonly nowMs: number
  readonly isInSentence?: boolean
}): JSX.Element {
  return (
    <Moment ms={ms}>
      {age(ms, nowMs)}
      {isInSentence && ms <= nowMs && ' ago'}
    </Moment>
  )
}
