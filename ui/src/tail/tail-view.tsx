import '../styles/tail.css'
import type { JSX } from 'preact'
import { useMemo, useRef } from 'preact/hooks'
import type { EventRow } from '../model/event-row.ts'
import type { TailEntry, TailGap, TailRow } from '../model/tail-buffer.ts'
import { clockTime } from '../model/times.ts'
import { EventList } from '../parts/events/event-list.tsx'
import { EmptyPanel, ErrorPanel } from '../parts/panels.tsx'
import { assignSlots } from './slots.ts'
import { StateLine } from './state-line.tsx'
import type { TailFeed } from './tail-feed.ts'
import { DroppedNotice, GapNotice, UnshownNotice } from './tail-notices.tsx'
import { useAnnouncements } from './use-announcements.ts'
import { useFeed } from './use-feed.ts'
import { type PauseControl, usePause } from './use-pause.ts'
import { useTick } from './use-tick.ts'

/** Shows events as they happen, newest on top. */
export function TailView(): JSX.Element {
  const feed = useFeed()
  const pause = usePause(feed)
  useAnnouncements(feed, pause)
  return (
    <>
      <h1 class="hidden">Live</h1>
      {feed !== undefined && <Tail feed={feed} pause={pause} />}
    </>
  )
}

function Tail({
  feed,
  pause,
}: {
  readonly feed: TailFeed
  readonly pause: PauseControl
}): JSX.Element {
  const { link, reading, buffer } = feed
  const { entries, onOpen } = pause
  const nowMs = Date.now()
  const tick = useTick(pause.by === undefined && link.kind !== 'asleep' && link.kind !== 'failed')
  const shown = pause.by === undefined ? entries.slice(0, MOVING_ROWS) : entries
  const rows = useMemo(
    () => entries.length > 0 && <TailRows entries={shown} nowMs={nowMs} onOpen={onOpen} />,
    [entries, shown.length, tick, onOpen],
  )
  return (
    <>
      <StateLine feed={feed} pause={pause} />
      {link.kind === 'failed' && <ErrorPanel error={link.error} />}
      {reading.unshown !== undefined && (
        <UnshownNotice
          unshown={reading.unshown}
          nowMs={nowMs}
          onForget={() => feed.forgetUnshown()}
        />
      )}
      {link.kind === 'live' && entries.length === 0 && (
        <EmptyPanel title="No events yet">New events appear here as they happen.</EmptyPanel>
      )}
      {rows}
      {shown.length < entries.length && (
        <p class="tail-notice">
          {`${entries.length - shown.length} older rows are shown when you scroll or pause.`}
        </p>
      )}
      {buffer.hasDropped && shown.length === entries.length && (
        <DroppedNotice entries={entries} startedMs={feed.startedMs} nowMs={nowMs} />
      )}
    </>
  )
}

/** Moving rows are read only at the top, and drawing all of them costs memory. */
const MOVING_ROWS = 100

/** How long a row that was seen again is highlighted. */
const MARKED_MS = 5_000

function TailRows({
  entries,
  nowMs,
  onOpen,
}: {
  readonly entries: readonly TailEntry[]
  readonly nowMs: number
  readonly onOpen: (isAnyOpen: boolean) => void
}): JSX.Element {
  const rows = entries.filter((entry) => entry.kind === 'row')
  const slots = useRef<ReadonlyMap<string, number>>(new Map())
  slots.current = assignSlots(
    slots.current,
    rows.map(({ key }) => key),
  )
  const marked = new Set(rows.filter((one) => isMarked(one, nowMs)).map(({ key }) => key))
  const gaps = gapsAbove(entries)
  return (
    <div class="tail-rows">
      <EventList
        rows={rows.map(({ row }) => row)}
        label="Events, newest first"
        seenText={({ lastMs }: EventRow) => clockTime(lastMs, nowMs)}
        keyOf={({ key }: EventRow) => slots.current.get(key) ?? key}
        onOpen={onOpen}
        isMarked={({ key }: EventRow) => marked.has(key)}
        noticeAbove={({ key }: EventRow) => {
          const above = gaps.get(key)
          return above === undefined ? undefined : <Gaps gaps={above} nowMs={nowMs} />
        }}
      />
      <Gaps gaps={gaps.get(END) ?? []} nowMs={nowMs} />
    </div>
  )
}

function Gaps({
  gaps,
  nowMs,
}: {
  readonly gaps: readonly TailGap[]
  readonly nowMs: number
}): JSX.Element {
  return (
    <>
      {gaps.map((gap) => (
        <GapNotice key={gap.key} gap={gap} nowMs={nowMs} />
      ))}
    </>
  )
}

function isMarked({ isRepeated, arrivedMs }: TailRow, nowMs: number): boolean {
  return isRepeated && nowMs - arrivedMs < MARKED_MS
}

/** Differs from every row key. */
const END = 'end'

/** Gaps keyed by the row below them: several if the rows in between have moved up. */
function gapsAbove(entries: readonly TailEntry[]): ReadonlyMap<string, readonly TailGap[]> {
  const gaps = new Map<string, readonly TailGap[]>()
  let above: readonly TailGap[] = []
  for (const entry of entries) {
    if (entry.kind === 'gap') above = [...above, entry]
    else if (above.length > 0) {
      gaps.set(entry.key, above)
      above = []
    }
  }
  return gaps.set(END, above)
}
