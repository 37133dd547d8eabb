/** The events of a state in the order of a list, as the checks know it. */
import type { ListOrder } from '../../../src/storage/storage.ts'
import type { ChangeRecord, Lineage } from './lineage.ts'
import type { Filter, Selection } from './lists.ts'
import { facetsOf } from './stored-text.ts'

/** Where a page begins. */
export interface WalkFrom {
  readonly revision: number
  readonly order?: ListOrder | undefined
  readonly after: string | undefined
  readonly afterMs?: number | undefined
}

export interface Walk {
  /** Undefined at the end. */
  next(): ChangeRecord | undefined
  /** How many follow. */
  rest(): number
}

export function walkOf(lineage: Lineage, selection: Selection, from: WalkFrom): Walk {
  const { order = 'key' } = from
  if (order === 'key') return new KeyWalk(lineage, selection, from)
  return new TimeWalk(lineage, selection, { ...from, order })
}

/** The events of a state in order, from a path on. */
class KeyWalk implements Walk {
  readonly #lineage: Lineage
  readonly #revision: number
  readonly #prefix: string
  readonly #matches: Filter['matches'] | undefined
  #index: number

  constructor(
    lineage: Lineage,
    { namespace, filter }: Selection,
    from: { readonly revision: number; readonly after: string | undefined },
  ) {
    this.#lineage = lineage
    this.#revision = from.revision
    this.#prefix = namespace === undefined ? '' : `${namespace}/`
    this.#matches = filter?.matches
    const { after } = from
    // The next possible path after another one.
    const next = `${after ?? ''}\0`
    const isInside = after !== undefined && next > this.#prefix
    this.#index = lineage.indexOf(isInside ? next : this.#prefix)
  }

  next(): ChangeRecord | undefined {
    for (;;) {
      const key = this.#lineage.keyAt(this.#index)
      if (key === undefined || !key.path.startsWith(this.#prefix)) return undefined
      this.#index++
      const record = this.#lineage.stateAt(key, this.#revision)
      if (record === undefined) continue
      if (this.#matches === undefined || this.#matches(record)) return record
    }
  }

  rest(): number {
    let count = 0
    while (this.next() !== undefined) count++
    return count
  }
}

/** Walks in the order of time, and of paths among events that were seen at the same time. */
class TimeWalk implements Walk {
  readonly #records: readonly ChangeRecord[]
  #index = 0

  constructor(lineage: Lineage, selection: Selection, from: WalkFrom) {
    const { revision, after, afterMs = 0, order } = from
    const all = new KeyWalk(lineage, selection, { revision, after: undefined })
    const found: Timed[] = []
    for (let record = all.next(); record !== undefined; record = all.next()) {
      found.push({ record, path: record.path, ms: facetsOf(record.facet).lastSeenMs })
    }
    const direction = order === 'newest' ? -1 : 1
    const isBehind = (timed: Timed): boolean =>
      after === undefined || direction * compare(timed, { path: after, ms: afterMs }) > 0
    this.#records = found
      .filter(isBehind)
      .sort((one, other) => direction * compare(one, other))
      .map(({ record }) => record)
  }

  next(): ChangeRecord | undefined {
    return this.#records[this.#index++]
  }

  rest(): number {
    const left = this.#records.length - this.#index
    this.#index = this.#records.length
    return Math.max(0, left)
  }
}

interface Place {
  readonly path: string
  readonly ms: number
}

interface Timed extends Place {
  readonly record: ChangeRecord
}

function compare(one: Place, other: Place): number {
  if (one.ms !== other.ms) return one.ms - other.ms
  if (one.path === other.path) return 0
  return one.path < other.path ? -1 : 1
}
