import '../styles/tail.css'
import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
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
import { useTick } from './use-tick.ts'

/** Events as they happen, the newest on top. */
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
  const rows = useMemo(
    () => entries.length > 0 && <TailRows entries={entries} nowMs={nowMs} onOpen={onOpen} />,
    [entries, tick, onOpen],
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
          const above = gaps.get(key)
          return above === undefined ? undefined : <Gaps gaps={above} nowMs={nowMs} />
        }}
      />
      <Gaps gaps={gaps.get(END) ?? []} nowMs={nowMs} />
    </>
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

/** No key of a row. */
const END = 'end'

/** Gaps by the key of the row below them: more than one when the rows between have moved up. */
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
