/**
 * When things were written, by our own clock.
 *
 * An event carries the time at which it was written, by the clock of the replica that wrote it. As
 * long as the clocks of all replicas agree, that is when it was. A replica whose clock is an hour
 * behind writes events that look an hour old; one whose clock is an hour ahead, when it sweeps,
 * takes everything for an hour older than it is.
 *
 * Versions do not depend on clocks. Every replica asks etcd now and then for the current version and
 * notes the moment. A change with a greater version was made after that moment, one with a version
 * not greater was made before. Between the two notes around it, the time an event carries is
 * believed; beyond them it is corrected. So a replica that has been up for a lifetime is never wrong
 * by more than the distance of its notes, whatever the clocks say. One that has just been started
 * knows nothing better than the clocks, except that nothing was written in the future: to it, an
 * event from the future is as old as its own first look.
 *
 * All times here are those of the process's own clock, which nobody can set.
 */
import { pause } from '../lib/abort.ts'
import type { Clock } from '../lib/clock.ts'
import { StorageError } from '../storage/errors.ts'
import { isAfter, type Version } from '../storage/resource-version.ts'
import type { EventStorage, StoredEvent } from '../storage/storage.ts'

/** Past this, notes are thinned out: the older, the fewer. */
const notesMax = 1024
/** The distance that thinning may leave, as a share of their age: a month then takes some 600. */
const distanceShare = 1 / 32
/** A contradiction within this is what it takes to commit a write, and nobody's fault. */
const skewToleratedMs = 5_000
const askTimeoutMs = 5_000

/** From the first time this version was found to be the current one, to the last. */
interface Note {
  readonly version: Version
  /** It was the current one, or had been already. */
  readonly reachedBefore: number
  /** It was still the current one. */
  passedAfter: number
}

export interface TimelineOptions {
  readonly clock: Clock
  /** Milliseconds since 1970, as in the events. */
  readonly wallTime: () => number
  /** Told how far a written time is off from when it can have been: positive is too late. */
  readonly onSkew?: ((skewMs: number) => void) | undefined
}

export class Timeline {
  readonly #options: TimelineOptions
  #notes: Note[] = []

  constructor(options: TimelineOptions) {
    this.#options = options
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
    if (last?.version === version) {
      last.passedAfter = between.askedAt
      return
    }
    // The store was set back to an older state: what we knew is about another history.
    if (last !== undefined && isAfter(last.version, version)) this.#notes = []
    this.#notes.push({
      version,
      reachedBefore: between.answeredAt,
      passedAfter: between.askedAt,
    })
    if (this.#notes.length > notesMax) this.#notes = thinned(this.#notes, between.answeredAt)
  }

  /** The newest version known to have been there at this time; undefined before our first. */
  versionAt(time: number): Version | undefined {
    const after = this.#firstNote((note) => note.reachedBefore > time)
    return this.#notes[after - 1]?.version
  }

  /** When this was written: what it says itself, held against what we know. */
  writtenAt(event: Pick<StoredEvent, 'version' | 'writtenAtMs'>): number {
    const { clock, wallTime, onSkew } = this.#options
    const now = clock.now()
    const claimed = now - (wallTime() - event.writtenAtMs)
    const next = this.#firstNote((note) => !isAfter(event.version, note.version))
    const earliest = this.#notes[next - 1]?.passedAfter ?? Number.NEGATIVE_INFINITY
    const latest = Math.min(now, this.#notes[next]?.reachedBefore ?? now)
    const actual = Math.min(Math.max(claimed, earliest), latest)
    if (Math.abs(claimed - actual) > skewToleratedMs) onSkew?.(claimed - actual)
    return actual
  }

  async #ask(storage: Pick<EventStorage, 'currentVersion'>, signal: AbortSignal): Promise<void> {
    const ending = new AbortController()
    const end = () => ending.abort()
    const timer = setTimeout(end, askTimeoutMs)
    signal.addEventListener('abort', end)
    const askedAt = this.#options.clock.now()
    try {
      const version = await storage.currentVersion({ signal: ending.signal })
      this.note(version, { askedAt, answeredAt: this.#options.clock.now() })
    } catch (error) {
      // A note that is not taken makes the bounds wider; the next one will do.
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

/** Without notes that say little more than those beside them. Bounds get wider, never wrong. */
function thinned(notes: readonly Note[], now: number): Note[] {
  const kept: Note[] = []
  for (const [at, note] of notes.entries()) {
    const before = kept.at(-1)?.reachedBefore ?? Number.NEGATIVE_INFINITY
    const distance = (notes[at + 1]?.reachedBefore ?? Number.POSITIVE_INFINITY) - before
    if (distance > (now - note.reachedBefore) * distanceShare) kept.push(note)
  }
  return kept
}
