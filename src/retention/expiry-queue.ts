import { keyOfPath, pathOf } from '../storage/event-scope.ts'
import type { Version } from '../storage/resource-version.ts'
import type { EventKey } from '../storage/storage.ts'

/** A version of an event, and when it expires unless the event is changed. */
export interface DueEvent {
  readonly key: EventKey
  readonly version: Version
  /** Monotonic milliseconds. */
  readonly dueAt: number
}

/** An entry of the heap, with its key as text. */
interface Entry {
  readonly text: string
  readonly version: number
  readonly dueAt: number
}

const chunkBits = 13
const chunkSize: number = 1 << chunkBits

/** Consecutive entries of the heap, stored by column. */
class Chunk {
  readonly texts: string[] = new Array(chunkSize).fill('')
  readonly versions = new Float64Array(chunkSize)
  readonly dueAt = new Float64Array(chunkSize)
}

/**
 * A priority queue of events, ordered by when they are due.
 *
 * A binary heap in chunks, so that it grows to a million entries without ever copying all of them.
 * An entry takes about 24 bytes plus the text of its key. There is no lookup by key: the sweeper finds
 * out whether an event was changed or deleted when its entry is due.
 */
export class ExpiryQueue {
  readonly #chunks: Chunk[] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  /** When the first entry is due; undefined when the queue is empty. */
  get firstDueAt(): number | undefined {
    return this.#size === 0 ? undefined : this.#dueAt(0)
  }

  push(event: DueEvent): void {
    const { version, dueAt } = event
    let at = this.#size++
    if (at >> chunkBits === this.#chunks.length) this.#chunks.push(new Chunk())
    while (at > 0) {
      const parent = (at - 1) >>> 1
      if (this.#dueAt(parent) <= dueAt) break
      this.#set(at, this.#get(parent))
      at = parent
    }
    this.#set(at, { text: textOf(event.key), version, dueAt })
  }

  /** Removes and returns up to `max` events that are due at `now`, earliest first. */
  takeDue(now: number, max: number): readonly DueEvent[] {
    const taken: DueEvent[] = []
    while (taken.length < max && this.#size > 0 && this.#dueAt(0) <= now) {
      const { text, version, dueAt } = this.#get(0)
      taken.push({ key: keyOfPath(text), version: version as Version, dueAt })
      this.#removeFirst()
    }
    return taken
  }

  /** Removes all but the earliest entries. Returns the due time of the last one retained. */
  keepEarliest(count: number): number {
    const earliest = this.takeDue(Number.POSITIVE_INFINITY, count)
    this.clear()
    for (const event of earliest) this.push(event)
    return earliest.at(-1)?.dueAt ?? Number.POSITIVE_INFINITY
  }

  clear(): void {
    this.#size = 0
    this.#chunks.length = 0
  }

  /** The last entry moves to the root and sifts down. */
  #removeFirst(): void {
    const last = this.#get(--this.#size)
    this.#set(this.#size, { text: '', version: 0, dueAt: 0 })
    let at = 0
    let child = this.#earlierChild(0)
    while (child < this.#size && this.#dueAt(child) < last.dueAt) {
      this.#set(at, this.#get(child))
      at = child
      child = this.#earlierChild(at)
    }
    if (this.#size > 0) this.#set(at, last)
    // Retain one spare chunk, so that a queue whose size varies a little does not reallocate.
    if (this.#size >> chunkBits < this.#chunks.length - 2) this.#chunks.pop()
  }

  /** An index beyond the end when there is no child. */
  #earlierChild(at: number): number {
    const left = 2 * at + 1
    const right = left + 1
    return right < this.#size && this.#dueAt(right) < this.#dueAt(left) ? right : left
  }

  #dueAt(at: number): number {
    return this.#chunks[at >> chunkBits]?.dueAt[at & (chunkSize - 1)] ?? 0
  }

  #get(at: number): Entry {
    const chunk = this.#chunks[at >> chunkBits]
    const inside = at & (chunkSize - 1)
    return {
      text: chunk?.texts[inside] ?? '',
      version: chunk?.versions[inside] ?? 0,
      dueAt: chunk?.dueAt[inside] ?? 0,
    }
  }

  #set(at: number, entry: Entry): void {
    const chunk = this.#chunks[at >> chunkBits]
    if (chunk === undefined) return
    const inside = at & (chunkSize - 1)
    chunk.texts[inside] = entry.text
    chunk.versions[inside] = entry.version
    chunk.dueAt[inside] = entry.dueAt
  }
}

/** A copy: names are often slices that would retain a longer string. */
function textOf(key: EventKey): string {
  return Buffer.from(pathOf(key)).toString()
}
