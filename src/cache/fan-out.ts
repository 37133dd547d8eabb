/**
 * Tells watchers that have nothing to read of what has come since, all of it at once.
 *
 * Watchers are kept by namespace, so a change costs those who want it and nobody else. All who wait
 * in one place get the same batch. Rounds follow each other: one covers the changes up to a
 * position, the next what came meanwhile, so the busier we are, the larger the batches. A large
 * crowd is told in several turns of the event loop, and after each round the others have the loop
 * for as long as the round took: to write to everybody costs the same for one change as for ten.
 */

import type { Clock } from '../lib/clock.ts'
import { SharedBatch } from '../storage/frames.ts'
import { isAfter, type Version } from '../storage/resource-version.ts'
import type { WatchItem } from '../storage/storage.ts'
import type { History } from './history.ts'

/** For so long watchers are told in one turn. */
const turnMs = 4
/** Told before somebody looks at the clock: what each does takes 5 to 50 microseconds. */
const toldPerLook = 16
/** Rounds are not further apart than this, however long they take: others may hold the core, too. */
const restMsMax = 10
/** Changes in one round, when transactions allow. */
const roundChanges = 1_000

/** Somebody who has read what rounds have covered, up to `position`, and waits. */
export interface Waiting {
  /** Undefined: wants all of them. */
  readonly namespace: string | undefined
  readonly position: number
  /** Changes up to this version are not wanted, although they are after `position`. */
  readonly floor: Version
  readonly wantsProgress: boolean
  /** Kept by the fan-out, and false to begin with. */
  isWaiting: boolean
  /** Ends the waiting. `end` is the position after the batch. */
  deliver(batch: SharedBatch, end: number): void
  /** Ends the waiting: look again what there is, of what comes after `seen`. */
  reconsider(seen: Seen): void
}

/** Everything up to the position, which is after the version, has been told to who wanted it. */
export interface Seen {
  readonly position: number
  readonly version: Version
  /** Of the history, when that was so. */
  readonly beats: number
}

/** What is due in one place. */
interface Due {
  readonly items: WatchItem[]
  /** Where the first of them is. */
  readonly first: number
  readonly watchers: Iterable<Waiting>
}

interface Round {
  /** In all its turns together. */
  tookMs: number
  readonly end: Seen
  /** Tells as many as one turn allows, each time. */
  readonly telling: Iterator<void>
}

const everywhere = Symbol('everywhere')
type Place = string | typeof everywhere

export class FanOut {
  readonly #history: History
  readonly #clock: Clock
  /** Everybody who has ever waited there and not left, whether or not it waits now. */
  readonly #places = new Map<Place, Set<Waiting>>()
  /** Those who wait and want to hear of progress, too. */
  readonly #inquirers = new Set<Waiting>()
  /** Those who wait for the history to begin anew, and for nothing else. */
  readonly #shutOut = new Set<Waiting>()
  readonly #next = (): void => this.#turn()
  #round: Round | undefined
  #isScheduled = false
  #turnEndsAtMs = 0
  #restEndsAtMs = 0
  #seen: Seen
  #count = 0
  #dispatched = 0

  constructor(history: History, clock: Clock) {
    this.#history = history
    this.#clock = clock
    this.#seen = present(history)
  }

  get waitingCount(): number {
    return this.#count + this.#shutOut.size
  }

  /** Changes handed out, counted once for each watcher. */
  get dispatched(): number {
    return this.#dispatched
  }

  countDispatched(changes: number): void {
    this.#dispatched += changes
  }

  /**
   * What the round under way covers, or the last one. Whoever is further back reads up to here by
   * itself; who has come here waits for the next round, and shares it with the others.
   */
  get reach(): Seen {
    return this.#round?.end ?? this.#seen
  }

  /** Must have read everything up to `reach`. */
  wait(watcher: Waiting): void {
    const place = watcher.namespace ?? everywhere
    const others = this.#places.get(place)
    if (others === undefined) this.#places.set(place, new Set([watcher]))
    else others.add(watcher)
    watcher.isWaiting = true
    this.#count++
    if (watcher.wantsProgress) this.#inquirers.add(watcher)
  }

  /** There is nothing to be read until then. */
  waitForRestart(watcher: Waiting): void {
    this.#shutOut.add(watcher)
  }

  /** Somebody who waits wants to hear of progress as well. */
  inquire(watcher: Waiting): void {
    if (watcher.isWaiting) this.#inquirers.add(watcher)
  }

  leave(watcher: Waiting): void {
    this.#release(watcher)
    const place = watcher.namespace ?? everywhere
    const others = this.#places.get(place)
    if (others?.delete(watcher) === true && others.size === 0) this.#places.delete(place)
  }

  /** Something has come, if only progress. */
  changed(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    const restMs = this.#round === undefined ? this.#restEndsAtMs - this.#clock.now() : 0
    // A timer is no more exact than that.
    if (restMs < 1) setImmediate(this.#next)
    else setTimeout(this.#next, restMs)
  }

  /** The history began anew: everybody looks again. Until all have, nothing new is told. */
  restarted(): void {
    const everybody = [...this.#everybody(), ...this.#shutOut]
    this.#round = {
      tookMs: 0,
      end: present(this.#history),
      telling: this.#sendBack(everybody, this.#seen),
    }
    this.changed()
  }

  #turn(): void {
    this.#isScheduled = false
    const beganAtMs = this.#clock.now()
    this.#turnEndsAtMs = beganAtMs + turnMs
    this.#round ??= this.#begin()
    const round = this.#round
    const isLast = round.telling.next().done === true
    const endedAtMs = this.#clock.now()
    round.tookMs += endedAtMs - beganAtMs
    if (isLast) {
      this.#round = undefined
      this.#seen = round.end
      this.#restEndsAtMs = endedAtMs + Math.min(round.tookMs, restMsMax)
      if (round.end.position === this.#history.head) return
    }
    this.changed()
  }

  #begin(): Round {
    const history = this.#history
    const { position, beats } = this.#seen
    const now = present(history)
    // Otherwise more came in one turn than the ring holds.
    if (position >= history.tail) {
      const whole = { namespace: undefined, enough: roundChanges, until: now }
      const { items, end, version } = history.read(position, whole)
      const isAll = end === now.position
      const reached = { position: end, version, beats: isAll ? now.beats : beats }
      const telling = this.#tellAll(this.#dueFrom(position, items), reached)
      return { tookMs: 0, end: reached, telling }
    }
    return { tookMs: 0, end: now, telling: this.#sendBack(this.#everybody(), this.#seen) }
  }

  #dueFrom(start: number, items: readonly WatchItem[]): readonly Due[] {
    const due = new Map<Place, Due>()
    const add = (place: Place, item: WatchItem, position: number) => {
      const known = due.get(place)
      if (known !== undefined) {
        known.items.push(item)
        return
      }
      const watchers = this.#places.get(place)
      if (watchers !== undefined) due.set(place, { items: [item], first: position, watchers })
    }
    for (const [index, item] of items.entries()) {
      add(everywhere, item, start + index)
      add(item.stored.key.namespace, item, start + index)
    }
    return [...due.values()]
  }

  /**
   * Who waits has been told everything before the round, so a position further back than its first
   * change means that nothing lies between. Who comes while others are told has read up to its end.
   */
  *#tellAll(due: readonly Due[], end: Seen): Generator<void, void, undefined> {
    const before = this.#seen
    let told = 0
    for (const { items, first, watchers } of due) {
      const batch = new SharedBatch(items, end.version)
      const from = items[0]?.stored.version ?? end.version
      for (const one of watchers) {
        if (!one.isWaiting || one.position >= end.position) continue
        this.#release(one)
        if (one.position <= first && isAfter(from, one.floor)) {
          this.#dispatched += items.length
          one.deliver(batch, end.position)
        } else one.reconsider(before)
        if (this.#isTurnOver(++told)) yield
      }
    }
    yield* this.#sendBack([...this.#inquirers], end)
  }

  *#sendBack(those: readonly Waiting[], seen: Seen): Generator<void, void, undefined> {
    let told = 0
    for (const one of those) {
      if (!this.#release(one)) continue
      one.reconsider(seen)
      if (this.#isTurnOver(++told)) yield
    }
  }

  #isTurnOver(told: number): boolean {
    return told % toldPerLook === 0 && this.#clock.now() >= this.#turnEndsAtMs
  }

  /** False if it has left, or was told otherwise, since the round began. */
  #release(watcher: Waiting): boolean {
    if (!watcher.isWaiting) return this.#shutOut.delete(watcher)
    watcher.isWaiting = false
    this.#count--
    if (watcher.wantsProgress) this.#inquirers.delete(watcher)
    return true
  }

  #everybody(): readonly Waiting[] {
    return [...this.#places.values()].flatMap((those) => [...those].filter((one) => one.isWaiting))
  }
}

function present(history: History): Seen {
  return { position: history.head, version: history.version, beats: history.beats }
}
