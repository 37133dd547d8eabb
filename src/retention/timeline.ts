/**
 * Proves minimum ages of events without a wall clock.
 *
 * Wall clocks can be wrong, both on the replica that wrote an event and on the one that sweeps.
 * Revisions of etcd cannot: a change with a smaller revision was made earlier. So a replica
 * periodically reads the current version from etcd and notes the time by its monotonic clock. Each
 * note is a proof: this version, and every smaller one, existed by then. An event is as old as the
 * notes prove, and one that no note covers yet counts as written now. Its real age may be greater,
 * never smaller, so it may expire late, by at most the gap between two notes, and never early.
 *
 * Notes of other replicas, and of replicas that ran earlier, come from the age record in etcd
 * (age-record.ts) and are proofs in the same sense.
 */
import { LinkedAbort, pause } from '../lib/abort.ts'
import type { Clock } from '../lib/clock.ts'
import { StorageError } from '../storage/errors.ts'
import { isAfter, type Version } from '../storage/resource-version.ts'
import type { EventStorage, StoredEvent } from '../storage/storage.ts'

/** Thinning leaves gaps of at most this share of the age: a month then takes about 2000 notes. */
const gapShare = 1 / 256
/** Upper bound of gaps in memory, and so of how late events expire. */
const gapMsMax = 10_000
/**
 * Notes in memory, 80 bytes each: enough for the shortest gaps over two weeks, twice a lifetime of
 * seven days. Longer lifetimes get longer gaps.
 */
const notesMax = 200_000
/** Notes added before the list is thinned again. */
const notesBetween = 4096
/** Maximum number of notes in the age record. */
const summaryMax = 4096
const readTimeoutMs = 5_000

/** This version existed at this time, by the process's own clock, or earlier. */
export interface Note {
  readonly version: Version
  readonly at: number
}

/** How often to repeat something, which may change, and until when. */
export interface Periodic {
  readonly everyMs: () => number
  readonly signal: AbortSignal
}

export class Timeline {
  readonly #clock: Clock
  readonly #horizonMs: () => number
  /** Sorted by version and by time. */
  #notes: Note[] = []
  /** When the newest version was learned. */
  #learnedAt = Number.NEGATIVE_INFINITY
  /** How many notes there may be until they are thinned out. */
  #thinAbove = notesBetween
  /** Counts calls of `forget`. */
  #epoch = 0

  /** Ages above `horizonMs`, which may change, are not distinguished. */
  constructor(clock: Clock, horizonMs: () => number = () => Number.POSITIVE_INFINITY) {
    this.#clock = clock
    this.#horizonMs = horizonMs
  }

  /** Reads the current version periodically until aborted. */
  async run(storage: Pick<EventStorage, 'currentVersion'>, options: Periodic): Promise<void> {
    const { everyMs, signal } = options
    while (!signal.aborted) {
      await this.#read(storage, signal)
      await pause(everyMs(), signal)
    }
  }

  /** `version` was current at some time between request and response. */
  note(
    version: Version,
    between: { readonly requestedAt: number; readonly respondedAt: number },
  ): void {
    const last = this.#notes.at(-1)
    // Usually nothing was written since.
    if (last?.version === version) return
    if (last !== undefined && isAfter(last.version, version)) {
      // A response with a newer version may have overtaken this one.
      if (between.requestedAt <= this.#learnedAt) return
      // The store was restored to an older state: the notes belong to another history.
      this.#notes = []
    }
    this.#notes.push({ version, at: between.respondedAt })
    this.#learnedAt = this.#clock.now()
    this.#thin()
  }

  /**
   * Adds notes of other replicas. Skips those that add hardly any proof: a replica that does not
   * sweep reads all notes of the sweeper every few seconds.
   */
  learn(learned: readonly Note[]): void {
    const now = this.#clock.now()
    const notes = learned.filter((note) => this.writtenAt(note) - note.at > gapMsAt(now - note.at))
    if (notes.length === 0) return
    const newest = this.#notes.at(-1)?.version
    this.#notes = withoutRedundant([...this.#notes, ...notes])
    if (this.#notes.at(-1)?.version !== newest) this.#learnedAt = this.#clock.now()
    this.#thin()
  }

  /** Deletes all notes, which may belong to another history than etcd's current one. */
  forget(): void {
    this.#notes = []
    this.#learnedAt = Number.NEGATIVE_INFINITY
    this.#epoch++
  }

  /** The notes, oldest first, thinned to fit into the age record. */
  summary(): Note[] {
    const now = this.#clock.now()
    return thinned(this.#insideHorizon(), (at) => (now - at) * gapShare).slice(-summaryMax)
  }

  /** The newest version proved to exist at `time`; undefined before the first note. */
  versionAt(time: number): Version | undefined {
    const after = this.#firstNote((note) => note.at > time)
    return this.#notes[after - 1]?.version
  }

  /** The latest time at which the event can have been written. */
  writtenAt(event: Pick<StoredEvent, 'version'>): number {
    const next = this.#firstNote((note) => !isAfter(event.version, note.version))
    return this.#notes[next]?.at ?? this.#clock.now()
  }

  #thin(): void {
    if (this.#notes.length <= this.#thinAbove) return
    const now = this.#clock.now()
    let notes: readonly Note[] = this.#insideHorizon()
    let gapMs = gapMsMax
    do {
      const longest = gapMs
      notes = thinned(notes, (at) => gapMsAt(now - at, longest))
      gapMs *= 2
    } while (notes.length > notesMax && gapMs < Number.MAX_SAFE_INTEGER)
    this.#notes = notes.slice(-notesMax)
    this.#thinAbove = this.#notes.length + notesBetween
  }

  #insideHorizon(): readonly Note[] {
    const from = this.#clock.now() - this.#horizonMs()
    const inside = this.#firstNote(({ at }) => at > from)
    // One note beyond the horizon proves that everything before it lies beyond as well.
    return this.#notes.slice(Math.max(0, inside - 1))
  }

  async #read(storage: Pick<EventStorage, 'currentVersion'>, signal: AbortSignal): Promise<void> {
    using ending = new LinkedAbort(signal)
    const timer = setTimeout(ending.abort, readTimeoutMs)
    const requestedAt = this.#clock.now()
    const epoch = this.#epoch
    try {
      const version = await storage.currentVersion({ signal: ending.signal })
      if (epoch !== this.#epoch) return
      this.note(version, { requestedAt, respondedAt: this.#clock.now() })
    } catch (error) {
      // Without this note, events count as younger until the next one.
      if (!(error instanceof StorageError)) throw error
    } finally {
      clearTimeout(timer)
    }
  }

  /** The index of the first note that matches; all later ones must match as well. */
  #firstNote(matches: (note: Note) => boolean): number {
    let low = 0
    let high = this.#notes.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const note = this.#notes[middle]
      if (note !== undefined && matches(note)) high = middle
      else low = middle + 1
    }
    return low
  }
}

/** Sorted, without notes made redundant by one that proves the same age for a newer version. */
function withoutRedundant(notes: readonly Note[]): Note[] {
  const newestFirst = notes.toSorted((a, b) => b.version - a.version || a.at - b.at)
  let earliest = Number.POSITIVE_INFINITY
  const needed = newestFirst.filter(({ at }) => {
    const isNeeded = at < earliest
    earliest = Math.min(earliest, at)
    return isNeeded
  })
  return needed.reverse()
}

/** How much younger than they are events of this age may appear. */
function gapMsAt(ageMs: number, longestMs = gapMsMax): number {
  return Math.min(ageMs * gapShare, longestMs)
}

/**
 * Drops notes as long as the gap between their neighbours stays within what is allowed at that time.
 * That makes events younger, never older.
 */
function thinned(notes: readonly Note[], gapMsAllowed: (at: number) => number): Note[] {
  const retained: Note[] = []
  let before = Number.NEGATIVE_INFINITY
  for (const [index, note] of notes.entries()) {
    const next = notes[index + 1]?.at ?? Number.POSITIVE_INFINITY
    if (next - before <= gapMsAllowed(note.at)) continue
    retained.push(note)
    before = note.at
  }
  return retained
}
