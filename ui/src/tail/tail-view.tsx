import '../styles/tail.css'
import type { JSX } from 'preact'
import type { EventRow } from '../model/event-row.ts'
import type { TailEntry, TailGap, TailRow } from '../model/tail-buffer.ts'
import { EventList } from '../parts/events/event-list.tsx'
import { EmptyPanel, ErrorPanel } from '../parts/panels.tsx'
import { StateLine } from './state-line.tsx'
import type { TailFeed } from './tail-feed.ts'
import { DroppedNotice, GapNotice, UnshownNotice } from './tail-notices.tsx'
import { useAnnouncements } from './use-announcements.ts'
import { useFeed } from './use-feed.ts'
import { type PauseControl, usePause } from './use-pause.ts'

/** Events as they happen, the newest on top. */
export function TailView(): JSX.Element {
  const feed = useFeed()
  const pause = usePause(feed)
  useAnnouncements(feed, pause.by !== undefined)
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
  if (link.kind === 'failed') return <ErrorPanel error={link.error} />
  const nowMs = Date.now()
  const { entries } = pause
  return (
    <>
      <StateLine feed={feed} pause={pause} nowMs={nowMs} />
      {reading.unshown !== undefined && (
        <UnshownNotice unshown={reading.unshown} nowMs={nowMs} onForget={() => reading.forget()} />
      )}
      {link.kind === 'live' && entries.length === 0 && (
        <EmptyPanel title="No events yet">New events appear here as they happen.</EmptyPanel>
      )}
      {entries.length > 0 && <TailRows entries={entries} nowMs={nowMs} onOpen={pause.onOpen} />}
      {buffer.hasDropped && (
        <DroppedNotice entries={entries} startedMs={feed.startedMs} nowMs={nowMs} />
      )}
    </>
  )
}

/** A row that was seen again is marked for this long. */
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
  const marked = new Set(rows.filter((one) => isMarked(one, nowMs)).map(({ key }) => key))
  const gaps = gapsAbove(entries)
  return (
    <>
      <EventList
        rows={rows.map(({ row }) => row)}
        label="Events, newest first"
        nowMs={nowMs}
        onOpen={onOpen}
        isMarked={({ key }: EventRow) => marked.has(key)}
        noticeAbove={({ key }: EventRow) => {
          const gap = gaps.get(key)
          return gap === undefined ? undefined : <GapNotice gap={gap} nowMs={nowMs} />
        }}
      />
      {gaps.has(END) && <GapNotice gap={gaps.get(END) as TailGap} nowMs={nowMs} />}
    </>
  )
}

function isMarked({ isRepeated, arrivedMs }: TailRow, nowMs: number): boolean {
  return isRepeated && nowMs - arrivedMs < MARKED_MS
}

/** No key of a row. */
const END = 'end'

/** Gaps by the key of the row below them. */
function gapsAbove(entries: readonly TailEntry[]): ReadonlyMap<string, TailGap> {
  const gaps = new Map<string, TailGap>()
  for (const [index, entry] of entries.entries()) {
    if (entry.kind !== 'gap') continue
    const below = entries.slice(index).find((one) => one.kind === 'row')
    gaps.set(below?.key ?? END, entry)
  }
  return gaps
}
