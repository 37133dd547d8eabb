import type { Clock } from '../../lib/clock.ts'

/** Ages are recorded with this precision: one mark for all changes since the mark before. */
const markEveryMs = 1_000

/** Tells which changes of the history are too old. */
export class Ages {
  readonly #ageMsMax: number
  readonly #clock: Clock
  /** All changes before `position` had been appended at `atMs`. Oldest first. */
  readonly #marks: { readonly position: number; readonly atMs: number }[] = []
  #oldestKept = 0

  constructor(ageMsMax: number, clock: Clock) {
    this.#ageMsMax = ageMsMax
    this.#clock = clock
  }

  /** The changes before the returned position are too old. `head` is the position of the next change. */
  oldestKept(head: number): number {
    const atMs = this.#clock.now()
    const newest = this.#marks.at(-1)
    if (newest === undefined || atMs - newest.atMs >= markEveryMs) {
      this.#marks.push({ position: head, atMs })
    }
    for (;;) {
      const oldest = this.#marks[0]
      if (oldest === undefined || atMs - oldest.atMs < this.#ageMsMax) return this.#oldestKept
      this.#marks.shift()
      this.#oldestKept = oldest.position
    }
  }
}
