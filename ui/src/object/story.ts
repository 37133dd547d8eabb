/** Orders the events of an object as a story, and computes what separates one from the previous. */
import { type Mention, mentionOf } from '../model/about.ts'
import type { EventRow, ObjectName } from '../model/event-row.ts'

export interface StoryEntry {
  readonly row: EventRow
  readonly mention: Mention
  /** Whether it is the first of its day, in the browser's time zone. */
  readonly isNewDay: boolean
  /** Time since the previous event; 0 if it is too short to mention. */
  readonly gapMs: number
  /** The uid of another object of the same name with which the story continues; otherwise empty. */
  readonly otherUid: string
}

/** Shorter pauses are apparent from the times. */
const GAP_MS = 5 * 60_000

/** Sorted by last seen, like the server's lists, without duplicates. */
export function storyOf(rows: readonly EventRow[], about: ObjectName): readonly StoryEntry[] {
  const unique = [...new Map(rows.map((row) => [row.key, row])).values()]
  const sorted = unique.sort((a, b) => a.lastMs - b.lastMs || (a.key < b.key ? -1 : 1))
  let before: StoryEntry | undefined
  let lastUid = ''
  const entries: StoryEntry[] = []
  for (const row of sorted) {
    const mention = mentionOf(row, about)
    if (mention === undefined) continue
    const { uid } = mention.object
    const entry: StoryEntry = {
      row,
      mention,
      isNewDay: before === undefined || dayOf(before.row.lastMs) !== dayOf(row.lastMs),
      gapMs: before === undefined ? 0 : gapOf(row.firstMs - before.row.lastMs),
      otherUid: uid !== '' && lastUid !== '' && uid !== lastUid ? uid : '',
    }
    if (uid !== '') lastUid = uid
    entries.push(entry)
    before = entry
  }
  return entries
}

function gapOf(ms: number): number {
  return ms < GAP_MS ? 0 : ms
}

export function dayOf(ms: number): string {
  return new Date(ms).toDateString()
}

/** The objects of the story that have a uid, ordered by their first event. */
export interface Individual {
  readonly uid: string
  readonly events: number
  readonly firstMs: number
  readonly lastMs: number
}

export function individualsOf(entries: readonly StoryEntry[]): readonly Individual[] {
  const found = new Map<string, Individual>()
  for (const { row, mention } of entries) {
    const { uid } = mention.object
    if (uid === '') continue
    const { events, firstMs, lastMs } = found.get(uid) ?? { ...row, events: 0 }
    found.set(uid, {
      uid,
      events: events + 1,
      firstMs: Math.min(firstMs, row.firstMs),
      lastMs: Math.max(lastMs, row.lastMs),
    })
  }
  return [...found.values()].sort((a, b) => a.firstMs - b.firstMs)
}
