/** Orders the events of an object as a story, and computes what separates one from the previous. */
import { type Mention, mentionOf } from '../model/about.ts'
import type { EventRow, ObjectName } from '../model/event-row.ts'

export interface StoryEntry {
  readonly row: EventRow
  readonly mention: Mention
  /** Whether it is the first that began on its day, in the browser's time zone. */
  readonly isNewDay: boolean
  /** How long nothing was seen before it; 0 if that is too short to mention. */
  readonly gapMs: number
  /** The uid of another object of the same name with which the story continues; otherwise empty. */
  readonly otherUid: string
}

/** Shorter pauses are apparent from the times. */
const GAP_MS = 5 * 60_000

/**
 * Sorted by when events began, without duplicates. The server's lists are sorted by when they were
 * last seen, and a warning that repeats until now would come after everything that it caused.
 */
export function storyOf(rows: readonly EventRow[], about: ObjectName): readonly StoryEntry[] {
  const unique = [...new Map(rows.map((row) => [row.key, row])).values()]
  let before: StoryEntry | undefined
  let seenMs: number | undefined
  let lastUid = ''
  const entries: StoryEntry[] = []
  for (const row of unique.sort(compareBeginnings)) {
    const mention = mentionOf(row, about)
    if (mention === undefined) continue
    const { uid } = mention.object
    const entry: StoryEntry = {
      row,
      mention,
      isNewDay: before === undefined || dayOf(before.row.firstMs) !== dayOf(row.firstMs),
      gapMs: gapOf(row.firstMs - (seenMs ?? row.firstMs)),
      otherUid: uid !== '' && lastUid !== '' && uid !== lastUid ? uid : '',
    }
    if (uid !== '') lastUid = uid
    entries.push(entry)
    seenMs = Math.max(seenMs ?? row.lastMs, row.lastMs)
    before = entry
  }
  return entries
}

/** Versions are numbers of any length. */
function compareBeginnings(one: EventRow, other: EventRow): number {
  const [a, b] = [one.resourceVersion, other.resourceVersion]
  return (
    one.firstMs - other.firstMs ||
    a.length - b.length ||
    compareTexts(a, b) ||
    compareTexts(one.key, other.key)
  )
}

function compareTexts(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
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
