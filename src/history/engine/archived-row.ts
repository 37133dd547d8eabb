/** A change as a row of the archive. */

import { placeAndWorkload } from '../../incidents/marks.ts'
import { patternOf } from '../../incidents/pattern.ts'
import type { Workload } from '../../incidents/workload.ts'
import { type EventFields, fieldsIn } from '../../storage/event-fields.ts'
import { addedOccurrences, occurrencesFrom, type Span } from '../../storage/occurrences.ts'
import type { Version } from '../../storage/resource-version.ts'
import type { EventKey } from '../../storage/storage.ts'
import { readBody, servedText } from '../../storage/stored-form.ts'
import { occurrencesIn } from '../../storage/trailer.ts'
import { dateOf } from '../manifest.ts'
import type { ArchivedChange } from './protocol.ts'

export interface ArchivedRow {
  readonly key: EventKey
  readonly date: string
  /** That of the event, or its key if it has none. */
  readonly uid: string
  readonly fields: EventFields
  readonly labels: readonly (readonly [name: string, value: string])[]
  readonly workload: Workload
  readonly node: string
  readonly pattern: number
  readonly version: number
  readonly writtenAtMs: number
  readonly trailer: Buffer
  readonly json: string
  readonly isAgain: boolean
  readonly spans: readonly Span[]
}

/** Formatting a date takes as long as reading the fields of an event, but there are few of them. */
export class DayNames {
  readonly #names: Map<number, string> = new Map()

  dateOf(ms: number): string {
    const day = Math.floor(ms / DAY_MS)
    const known = this.#names.get(day)
    if (known !== undefined) return known
    const name = dateOf(ms)
    this.#names.set(day, name)
    return name
  }
}

/** The body is not that of an event. */
export class UnreadableChange extends Error {
  override readonly name = 'UnreadableChange'
}

const DAY_MS = 24 * 3_600_000
/** Years have four digits. */
const YEARS_END_MS = Date.UTC(10_000, 0)
/**
 * Events of other days are filed under the day of the write: a reporter without a clock must not
 * create a file for each day since 1970, nor one that expires in the year 9999.
 */
const EARLIER_MS_MAX = 31 * DAY_MS
const LATER_MS_MAX = DAY_MS

/** Throws `UnreadableChange`. */
export function rowOf(change: ArchivedChange, days: DayNames): ArchivedRow {
  const { key, version, writtenAtMs } = change
  const { text, event, fields } = read(change)
  const trailer = bufferOf(change.trailer)
  return {
    key,
    date: days.dateOf(filedMs(fields.lastSeenMs, writtenAtMs)),
    uid: fields.uid === '' ? `${key.namespace}/${key.name}` : fields.uid,
    fields,
    labels: labelsIn(event),
    ...placeAndWorkload({ fields, trailer }),
    pattern: patternOf(fields.note),
    version,
    writtenAtMs,
    trailer,
    json: servedText(text, version as Version),
    ...newOccurrences(change, { event, fields, trailer }),
  }
}

interface ReadState {
  readonly text: string
  readonly event: unknown
  readonly fields: EventFields
}

function read(state: Pick<ArchivedChange, 'body'>): ReadState {
  const body = readBody(bufferOf(state.body))
  if (body === undefined) throw new UnreadableChange('it is not JSON that starts with metadata')
  const fields = fieldsIn(body.event)
  if (!Number.isSafeInteger(fields.occurrences)) {
    throw new UnreadableChange(`its count is ${fields.occurrences}`)
  }
  return { ...body, fields }
}

/** A time of the day whose folder has the row. */
function filedMs(lastSeenMs: number, writtenAtMs: number): number {
  if (!(writtenAtMs >= 0 && writtenAtMs < YEARS_END_MS)) {
    throw new UnreadableChange(`it was written at ${writtenAtMs}`)
  }
  const isSane =
    lastSeenMs > Math.max(0, writtenAtMs - EARLIER_MS_MAX) &&
    lastSeenMs <= writtenAtMs + LATER_MS_MAX &&
    lastSeenMs < YEARS_END_MS
  return isSane ? lastSeenMs : writtenAtMs
}

function labelsIn(event: unknown): ArchivedRow['labels'] {
  const { labels } = (event as { readonly metadata: { readonly labels?: unknown } }).metadata ?? {}
  if (typeof labels !== 'object' || labels === null) return NO_LABELS
  return Object.entries(labels).filter(([, value]) => typeof value === 'string')
}

const NO_LABELS: ArchivedRow['labels'] = []

type State = Pick<ReadState, 'event' | 'fields'> & { readonly trailer: Buffer }

/** What no earlier row of the event has. */
function newOccurrences(
  { previous }: ArchivedChange,
  state: State,
): Pick<ArchivedRow, 'isAgain' | 'spans'> {
  const { fields, trailer } = state
  const { spans } = occurrencesIn(trailer, fields)
  if (previous === undefined) return { isAgain: false, spans }
  if ('unknownBeforeMs' in previous) {
    const { unknownBeforeMs } = previous
    const isAgain = createdMs(state) < unknownBeforeMs
    // Readers take it that a first row has all occurrences of its event until then.
    return { isAgain, spans: isAgain ? occurrencesFrom(spans, unknownBeforeMs) : spans }
  }
  const before = readEarlier(previous)
  // The count of an event that was lowered begins again, as that of a new event.
  if (before === undefined || before.occurrences > fields.occurrences) {
    return { isAgain: true, spans }
  }
  const known = occurrencesIn(bufferOf(previous.trailer), before)
  const added = addedOccurrences(known, before, fields)
  return { isAgain: true, spans: added === undefined ? [] : [added] }
}

/** Undefined when it cannot be read, and thus is not in the archive either. */
function readEarlier(state: Pick<ArchivedChange, 'body'>): EventFields | undefined {
  try {
    return read(state).fields
  } catch {
    return undefined
  }
}

function createdMs({ event, fields }: State): number {
  const { creationTimestamp } = (event as { readonly metadata: Record<string, unknown> }).metadata
  const ms = typeof creationTimestamp === 'string' ? Date.parse(creationTimestamp) : Number.NaN
  return Number.isNaN(ms) ? fields.firstSeenMs : ms
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
