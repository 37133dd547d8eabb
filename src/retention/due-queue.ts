import type { Version } from '../storage/resource-version.ts'
import type { EventKey } from '../storage/storage.ts'

/** An event as somebody saw it, and when it is to go if it stays as it is. */
export interface DueEvent {
  readonly key: EventKey
  readonly version: Version
  /** By the process's own clock, in ms. */
  readonly dueAt: number
}

/** A place of the heap, with its key as text. */
interface Place {
  readonly text: string
  readonly version: number
  readonly dueAt: number
}

const chunkBits = 13
const chunkSize: number = 1 << chunkBits

/** Some places of the heap, side by side. */
class Chunk {
  readonly texts: string[] = new Array(chunkSize).fill('')
  readonly versions = new Float64Array(chunkSize)
  readonly dueAt = new Float64Array(chunkSize)
}

/**
 * Events in the order in which they are due.
 *
 * A binary heap, cut into chunks so that a million can be put in without ever moving them all at
 * once: some 24 bytes an event and the text of its key. Nothing in it is looked for by key: an event
 * that changes or goes is found out when its turn comes.
 */
export class DueQueue {
  readonly #chunks: Chunk[] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  /** When the first is due; undefined when there is none. */
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

  /** Takes out those that are due at `now`, the earliest first, at most so many. */
  takeDue(now: number, max: number): readonly DueEvent[] {
    const taken: DueEvent[] = []
    while (taken.length < max && this.#size > 0 && this.#dueAt(0) <= now) {
      const { text, version, dueAt } = this.#get(0)
      taken.push({ key: keyOf(text), version: version as Version, dueAt })
      this.#removeFirst()
    }
    return taken
  }

  clear(): void {
    this.#size = 0
    this.#chunks.length = 0
  }

  /** The last one takes the place that becomes free, and sinks to where it belongs. */
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
    // One chunk more than is needed stays, so that a queue that goes up and down a little is let be.
    if (this.#size >> chunkBits < this.#chunks.length - 2) this.#chunks.pop()
  }

  /** Beyond the end when there is none. */
  #earlierChild(at: number): number {
    const left = 2 * at + 1
    const right = left + 1
    return right < this.#size && this.#dueAt(right) < this.#dueAt(left) ? right : left
  }

  #dueAt(at: number): number {
    return this.#chunks[at >> chunkBits]?.dueAt[at & (chunkSize - 1)] ?? 0
  }

  #get(at: number): Place {
    const chunk = this.#chunks[at >> chunkBits]
    const inside = at & (chunkSize - 1)
    return {
      text: chunk?.texts[inside] ?? '',
      version: chunk?.versions[inside] ?? 0,
      dueAt: chunk?.dueAt[inside] ?? 0,
    }
  }

  #set(at: number, place: Place): void {
    const chunk = this.#chunks[at >> chunkBits]
    if (chunk === undefined) return
    const inside = at & (chunkSize - 1)
    chunk.texts[inside] = place.text
    chunk.versions[inside] = place.version
    chunk.dueAt[inside] = place.dueAt
  }
}

/** A copy, because names are often parts of a longer text, which they would keep in memory. */
function textOf(key: EventKey): string {
  return Buffer.from(`${key.namespace}/${key.name}`).toString()
}

function keyOf(text: string): EventKey {
  const slash = text.indexOf('/')
  return { namespace: text.slice(0, slash), name: text.slice(slash + 1) }
}
