/** Says what the rows do not show, and where to find it. */
import type { JSX } from 'preact'
import type { EventRow } from '../model/event-row.ts'
import type { Span } from '../model/range.ts'
import type { TailEntry, TailGap } from '../model/tail-buffer.ts'
import type { Unshown } from '../model/tail-rate.ts'
import { clockTime } from '../model/times.ts'
import { QueryLink } from '../parts/query-link.tsx'

export function GapNotice({
  gap,
  nowMs,
}: {
  readonly gap: TailGap
  readonly nowMs: number
}): JSX.Element {
  const between = `between ${clockTime(gap.fromMs, nowMs)} and ${clockTime(gap.toMs, nowMs)}`
  return (
    <div class={gap.isListed ? 'tail-gap' : 'tail-gap tail-gap-missing'}>
      <span>
        {gap.isListed
          ? `The server no longer has the changes ${between}. Events from that time that still exist are shown.`
          : `Events ${between} may be missing: the server no longer has the changes from that time.`}
      </span>
      <OverviewLink span={gap} />
    </div>
  )
}

/** Events that arrived faster than anybody can read, or were too long. */
export function UnshownNotice({
  unshown,
  onForget,
  nowMs,
}: {
  readonly unshown: Unshown
  readonly onForget: () => void
  readonly nowMs: number
}): JSX.Element {
  const { normal, warning, tooLong, fromMs, toMs } = unshown
  const many = [...counted(warning, 'Warning'), ...counted(normal, 'Normal')].join(' and ')
  const what = [
    ...(many === '' ? [] : [`Too many to read: ${many} not shown`]),
    ...counted(tooLong, 'not shown since too long'),
  ].join(', ')
  return (
    <div class="tail-notice">
      <span>{`${what}, from ${clockTime(fromMs, nowMs)} to ${clockTime(toMs, nowMs)}.`}</span>
      <OverviewLink span={unshown} />
      <button type="button" onClick={onForget}>
        Dismiss
      </button>
    </div>
  )
}

function counted(count: number, what: string): readonly string[] {
  return count === 0 ? [] : [`${count.toLocaleString('en')} ${what}`]
}

/** Shown below the last row. */
export function DroppedNotice({
  entries,
  startedMs,
  nowMs,
}: {
  readonly entries: readonly TailEntry[]
  readonly startedMs: number
  readonly nowMs: number
}): JSX.Element {
  const oldestMs = Math.min(nowMs, ...rowsOf(entries).map(({ lastMs }) => lastMs))
  const span = { fromMs: Math.min(startedMs, oldestMs), toMs: oldestMs + SECOND_MS }
  return (
    <div class="tail-notice">
      <span>{`Older rows have dropped off: this view shows the newest ${entries.length}.`}</span>
      <OverviewLink span={span} />
    </div>
  )
}

const SECOND_MS = 1_000

function rowsOf(entries: readonly TailEntry[]): readonly EventRow[] {
  return entries.flatMap((entry) => (entry.kind === 'row' ? [entry.row] : []))
}

function OverviewLink({ span: { fromMs, toMs } }: { readonly span: Span }): JSX.Element {
  // Times in lists have whole seconds.
  const from = Math.floor(fromMs / SECOND_MS) * SECOND_MS
  const to = Math.max(Math.ceil(toMs / SECOND_MS) * SECOND_MS, from + SECOND_MS)
  return (
    <QueryLink to={{ view: 'overview', range: { fromMs: from, toMs: to } }}>
      Show that time in the overview
    </QueryLink>
  )
}
