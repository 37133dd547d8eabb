import type { Command, Outcome } from '../machine.ts'

/** An entry of the log. Members that have it share the object. */
export interface Entry {
  term: number
  /** What to do; dropped once it is done, with the memory of the request. */
  command: Command
  /** What the space quota charges. */
  readonly cost: number
  /** The member that waits for the result, and its number for it. */
  readonly origin: number
  readonly proposal: number
  /** Once it is committed. */
  outcome: Outcome | undefined
}

/** The log of one member. Its beginning is dropped once every member has applied it. */
export class RaftLog {
  #entries: Entry[] = []
  /** The index of the first entry that is kept. */
  #first = 1
  #termBefore = 0

  get first(): number {
    return this.#first
  }

  get last(): number {
    return this.#first + this.#entries.length - 1
  }

  get lastTerm(): number {
    return this.#entries.at(-1)?.term ?? this.#termBefore
  }

  at(index: number): Entry | undefined {
    return this.#entries[index - this.#first]
  }

  /** Undefined when the entry is dropped or does not exist yet. */
  termAt(index: number): number | undefined {
    if (index === this.#first - 1) return this.#termBefore
    return this.at(index)?.term
  }

  append(entry: Entry): void {
    this.#entries.push(entry)
  }

  /** The entries from `index` to the end. */
  from(index: number): readonly Entry[] {
    const { last } = this
    if (index === last) return [this.#entries[this.#entries.length - 1] as Entry]
    return this.#entries.slice(index - this.#first)
  }

  /** Appends what a leader sent, from `index` on; an entry of another term replaces the rest. */
  merge(index: number, entries: readonly Entry[]): void {
    let at = index
    for (const entry of entries) {
      const own = this.at(at)
      if (own !== undefined && own.term !== entry.term) {
        this.#entries.length = at - this.#first
        this.#entries.push(entry)
      } else if (own === undefined && at > this.last) this.#entries.push(entry)
      at++
    }
  }

  /** Drops the entries before `index`. */
  trim(index: number): void {
    if (index <= this.#first) return
    this.#termBefore = this.termAt(index - 1) ?? this.#termBefore
    this.#entries.splice(0, index - this.#first)
    this.#first = index
  }

  /** Starts over after `index`: the state up to there was received as a whole. */
  reset(index: number, term: number): void {
    this.#entries = []
    this.#first = index + 1
    this.#termBefore = term
  }
}
