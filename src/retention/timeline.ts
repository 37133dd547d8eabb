/**
 * How old things are at least, without a wall clock.
 *
 * Wall clocks can be wrong, on the replica that wrote an event as well as on the one that sweeps.
 * Revisions of etcd cannot: a change with a smaller one was made earlier. So a replica asks etcd now and
 * then for the current version and notes the moment by its monotonic clock. Each note is a proof: this
 * version, and whatever has a smaller one, was there by then. An event is as old as the notes prove, and
 * one that no note covers yet counts as written now. It may be older than that, never younger, so it may
 * go late, by at most the distance of two notes, and never early.
 *
 * Notes of other replicas, and of those that ran before this one, come from the record in etcd
 * (age-record.ts) and are proofs in the same sense.
 */
import { pause } from '../lib/abort.ts'
import type { Clock } from '../lib/clock.ts'
import { StorageError } from '../storage/errors.ts'
import { isAfter, type Version } from '../storage/resource-version.ts'
import type { EventStorage, StoredEvent } from '../storage/storage.ts'

/** Past this, notes are thinned out: the older, the fewer. */
const notesMax = 4096
/** The distance that thinning may leave, as a share of the age: a month then takes some 2000. */
const distanceShare = 1 / 256
const askTimeoutMs = 5_000

/** This version was there at this time of the process's own clock, or earlier. */
export interface Note {
  readonly version: Version
  readonly at: number
}

export class Timeline {
  readonly #clock: Clock
  readonly #horizonMs: number
  /** By version, and by time as well. */
  #notes: Note[] = []
  /** When the newest version was learned. */
  #learnedAt = Number.NEGATIVE_INFINITY
  /** How often everything was forgotten. */
  #epoch = 0

  /** `horizonMs`: whether something is older than that makes no difference. */
  constructor(clock: Clock, horizonMs: number = Number.POSITIVE_INFINITY) {
    this.#clock = clock
    this.#horizonMs = horizonMs
  }

  /** Asks for the current version again and again, until aborted. */
  async run(
    storage: Pick<EventStorage, 'currentVersion'>,
    options: { readonly everyMs: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const { everyMs, signal } = options
    while (!signal.aborted) {
      await this.#ask(storage, signal)
      await pause(everyMs, signal)
    }
  }

  /** `version` was the current one at some moment between the two. */
  note(version: Version, between: { readonly askedAt: number; readonly answeredAt: number }): void {
    const last = this.#notes.at(-1)
    // Most often nothing has happened since.
    if (last?.version === version) return
    if (last !== undefined && isAfter(last.version, version)) {
      // The answer may have been overtaken by one with a newer version.
      if (between.askedAt <= this.#learnedAt) return
      // The store was set back to an older state: what we knew is about another history.
      this.#notes = []
    }
    this.#notes.push({ version, at: between.answeredAt })
    this.#learnedAt = this.#clock.now()
    this.#thin()
  }

  /** Adds proofs, of whatever versions. */
  learn(notes: readonly Note[]): void {
    const newest = this.#notes.at(-1)?.version
    this.#notes = withoutNeedless([...this.#notes, ...notes])
    if (this.#notes.at(-1)?.version !== newest) this.#learnedAt = this.#clock.now()
    this.#thin()
  }

  /** What is known may be about another history than the one that etcd is in. */
  forget(): void {
    this.#notes = []
    this.#learnedAt = Number.NEGATIVE_INFINITY
    this.#epoch++
  }

  /** All that is known, in fewer notes: bounded in number, oldest first. */
  summary(): Note[] {
    const now = this.#clock.now()
    const inside = this.#firstNote(({ at }) => at > now - this.#horizonMs)
    // One beyond the horizon says that whatever came before is beyond it too.
    return thinned(this.#notes.slice(Math.max(0, inside - 1)), now)
  }

  /** The newest version known to have been there at this time; undefined before our first. */
  versionAt(time: number): Version | undefined {
    const after = this.#firstNote((note) => note.at > time)
    return this.#notes[after - 1]?.version
  }

  /** When this was written, at the latest. */
  writtenAt(event: Pick<StoredEvent, 'version'>): number {
    const next = this.#firstNote((note) => !isAfter(event.version, note.version))
    return this.#notes[next]?.at ?? this.#clock.now()
  }

  #thin(): void {
    if (this.#notes.length > notesMax) this.#notes = this.summary()
  }

  async #ask(storage: Pick<EventStorage, 'currentVersion'>, signal: AbortSignal): Promise<void> {
    const ending = new AbortController()
    const end = () => ending.abort()
    const timer = setTimeout(end, askTimeoutMs)
    signal.addEventListener('abort', end)
    const askedAt = this.#clock.now()
    const epoch = this.#epoch
    try {
      const version = await storage.currentVersion({ signal: ending.signal })
      if (epoch !== this.#epoch) return
      this.note(version, { askedAt, answeredAt: this.#clock.now() })
    } catch (error) {
      // A note that is not taken makes events younger until the next one.
      if (!(error instanceof StorageError)) throw error
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
    }
  }

  /** The place of the first note that is so; all behind it are so too. */
  #firstNote(isSo: (note: Note) => boolean): number {
    let low = 0
    let high = this.#notes.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const note = this.#notes[middle]
      if (note !== undefined && isSo(note)) high = middle
      else low = middle + 1
    }
    return low
  }
}

/** In order, without those for which a newer version is proved to be as old. */
function withoutNeedless(notes: readonly Note[]): Note[] {
  const newestFirst = notes.toSorted((a, b) => b.version - a.version || a.at - b.at)
  let earliest = Number.POSITIVE_INFINITY
  const kept = newestFirst.filter(({ at }) => {
    const isNeeded = at < earliest
    earliest = Math.min(earliest, at)
    return isNeeded
  })
  return kept.reverse()
}

/** Without notes that say little more than those beside them. Events get younger by that, not older. */
function thinned(notes: readonly Note[], now: number): Note[] {
  const kept: Note[] = []
  for (const [index, note] of notes.entries()) {
    const before = kept.at(-1)?.at ?? Number.NEGATIVE_INFINITY
    const distance = (notes[index + 1]?.at ?? Number.POSITIVE_INFINITY) - before
    if (distance > (now - note.at) * distanceShare) kept.push(note)
  }
  return kept.slice(-notesMax)
}
