/**
 * Tells watchers that have nothing to read of what has come since, once per turn of the event loop
 * for everything that is due.
 *
 * Watchers who wait are kept by namespace, so a change costs those who want it and nobody else. All
 * who wait in one place get the same batch. Rounds follow each other: one covers the changes up to a
 * position, the next what came meanwhile, so the busier we are, the larger the batches. A large
 * crowd is told in several turns.
 */

import { SharedBatch } from '../storage/frames.ts'
import { isAfter, type Version } from '../storage/resource-version.ts'
import type { WatchItem } from '../storage/storage.ts'
import type { History } from './history.ts'

/** Watchers told in one turn: what each then does takes 10 to 50 microseconds. */
const toldPerTurn = 256
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
  readonly waiting: readonly Waiting[]
}

interface Round {
  readonly end: Seen
  /** Tells as many as one turn allows, each time. */
  readonly telling: Iterator<void>
}

const everywhere = Symbol('everywhere')
type Place = string | typeof everywhere

export class FanOut {
  readonly #history: History
  readonly #waiting = new Map<Place, Set<Waiting>>()
  /** Those among them who want to hear of progress, too. */
  readonly #inquirers = new Set<Waiting>()
  #round: Round | undefined
  #isScheduled = false
  #seen: Seen
  #count = 0
  #dispatched = 0

  constructor(history: History) {
    this.#history = history
    this.#seen = present(history)
  }

  get waitingCount(): number {
    return this.#count
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
  wait(waiting: Waiting): void {
    const place = waiting.namespace ?? everywhere
    const others = this.#waiting.get(place)
    if (others === undefined) this.#waiting.set(place, new Set([waiting]))
    else others.add(waiting)
    this.#count++
    if (waiting.wantsProgress) this.#inquirers.add(waiting)
  }

  /** Somebody who waits wants to hear of progress as well. */
  inquire(waiting: Waiting): void {
    if (this.#isWaiting(waiting)) this.#inquirers.add(waiting)
  }

  leave(waiting: Waiting): void {
    const place = waiting.namespace ?? everywhere
    const others = this.#waiting.get(place)
    if (others?.delete(waiting) !== true) return
    this.#count--
    this.#inquirers.delete(waiting)
    if (others.size === 0) this.#waiting.delete(place)
  }

  /** Something has come, if only progress. */
  changed(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#turn())
  }

  /** The history began anew: everybody looks again. */
  restarted(): void {
    const everybody = this.#everybody()
    const seen = this.#seen
    this.#round = undefined
    this.#seen = present(this.#history)
    for (const one of everybody) if (this.#release(one)) one.reconsider(seen)
  }

  #turn(): void {
    this.#isScheduled = false
    this.#round ??= this.#begin()
    const { telling, end } = this.#round
    if (telling.next().done === true) {
      this.#round = undefined
      this.#seen = end
      if (end.position === this.#history.head) return
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
      return { end: reached, telling: this.#tellAll(this.#dueFrom(position, items), reached) }
    }
    return { end: now, telling: this.#sendBack(this.#everybody(), this.#seen) }
  }

  #dueFrom(start: number, items: readonly WatchItem[]): readonly Due[] {
    const due = new Map<Place, Due>()
    const add = (place: Place, item: WatchItem, position: number) => {
      const known = due.get(place)
      if (known !== undefined) {
        known.items.push(item)
        return
      }
      const waiting = this.#waiting.get(place)
      if (waiting === undefined) return
      due.set(place, { items: [item], first: position, waiting: [...waiting] })
    }
    for (const [index, item] of items.entries()) {
      add(everywhere, item, start + index)
      add(item.stored.key.namespace, item, start + index)
    }
    return [...due.values()]
  }

  /**
   * Who waits has been told everything before the round, so a position further back than its first
   * change means that nothing lies between.
   */
  *#tellAll(due: readonly Due[], end: Seen): Generator<void, void, undefined> {
    const before = this.#seen
    let told = 0
    for (const { items, first, waiting } of due) {
      const batch = new SharedBatch(items, end.version)
      const from = items[0]?.stored.version ?? end.version
      for (const one of waiting) {
        if (one.position >= end.position || !this.#release(one)) continue
        if (one.position <= first && isAfter(from, one.floor)) {
          this.#dispatched += items.length
          one.deliver(batch, end.position)
        } else one.reconsider(before)
        if (++told % toldPerTurn === 0) yield
      }
    }
    yield* this.#sendBack([...this.#inquirers], end)
  }

  *#sendBack(those: readonly Waiting[], seen: Seen): Generator<void, void, undefined> {
    let told = 0
    for (const one of those) {
      if (!this.#release(one)) continue
      one.reconsider(seen)
      if (++told % toldPerTurn === 0) yield
    }
  }

  /** False if it has left, or was told otherwise, since the round began. */
  #release(waiting: Waiting): boolean {
    if (!this.#isWaiting(waiting)) return false
    this.leave(waiting)
    return true
  }

  #isWaiting(waiting: Waiting): boolean {
    return this.#waiting.get(waiting.namespace ?? everywhere)?.has(waiting) === true
  }

  #everybody(): readonly Waiting[] {
    return [...this.#waiting.values()].flatMap((those) => [...those])
  }
}

function present(history: History): Seen {
  return { position: history.head, version: history.version, beats: history.beats }
}
