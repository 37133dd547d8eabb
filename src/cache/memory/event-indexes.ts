import { type Column, indexes } from './columns.ts'
import type { EventTable } from './event-table.ts'
import { SlotTree } from './slot-tree.ts'
import type { TreeView } from './tree-view.ts'

/** All sorted sets of one state. */
export interface IndexViews {
  readonly byKey: TreeView
  /** Sorted by when events were last seen, then by key. */
  readonly byTime: TreeView
  /** In the order of `indexes`; each is sorted by the number in its column, then by key. */
  readonly byColumn: readonly TreeView[]
}

/** The rows of the present, sorted by key, by time and by each indexed column. */
export class EventIndexes {
  readonly #table: EventTable
  readonly #byKey: SlotTree
  readonly #byTime: SlotTree
  readonly #byColumn: readonly SlotTree[]

  constructor(table: EventTable) {
    this.#table = table
    this.#byKey = new SlotTree((slot, other) => table.compareKeys(slot, other))
    this.#byTime = new SlotTree((slot, other) => table.compareTimes(slot, other))
    this.#byColumn = indexes.map(
      ({ column }) => new SlotTree((slot, other) => this.#compareColumn(slot, other, column)),
    )
  }

  /** Roughly how much has been copied on write because of views. */
  get bytesCopied(): number {
    let bytes = this.#byKey.bytesCopied + this.#byTime.bytesCopied
    for (const tree of this.#byColumn) bytes += tree.bytesCopied
    return bytes
  }

  /** Valid until the next change. */
  peek(): IndexViews {
    return {
      byKey: this.#byKey.peek(),
      byTime: this.#byTime.peek(),
      byColumn: this.#byColumn.map((tree) => tree.peek()),
    }
  }

  /** Immutable. */
  view(): IndexViews {
    return {
      byKey: this.#byKey.view(),
      byTime: this.#byTime.view(),
      byColumn: this.#byColumn.map((tree) => tree.view()),
    }
  }

  /** The set by key as it is now. Valid until the next change. */
  peekByKey(): TreeView {
    return this.#byKey.peek()
  }

  insert(slot: number): void {
    this.#byKey.insert(slot)
    this.#byTime.insert(slot)
    for (const [index, tree] of this.#byColumn.entries()) {
      if (this.#isIn(slot, index)) tree.insert(slot)
    }
  }

  remove(slot: number): void {
    this.#byKey.remove(slot)
    this.#byTime.remove(slot)
    for (const [index, tree] of this.#byColumn.entries()) {
      if (this.#isIn(slot, index)) tree.remove(slot)
    }
  }

  /** The event in row `old` is in row `slot` now. */
  replace(old: number, slot: number): void {
    const table = this.#table
    this.#byKey.replace(old, slot)
    if (table.lastSeenOf(old) === table.lastSeenOf(slot)) this.#byTime.replace(old, slot)
    else {
      this.#byTime.remove(old)
      this.#byTime.insert(slot)
    }
    for (const [index, tree] of this.#byColumn.entries()) {
      const { column } = indexAt(index)
      const isIn = this.#isIn(slot, index)
      if (isIn && table.valueOf(old, column) === table.valueOf(slot, column)) {
        tree.replace(old, slot)
        continue
      }
      if (this.#isIn(old, index)) tree.remove(old)
      if (isIn) tree.insert(slot)
    }
  }

  #isIn(slot: number, index: number): boolean {
    const { column, isSparse } = indexAt(index)
    return !isSparse || this.#table.valueOf(slot, column) !== 0
  }

  #compareColumn(slot: number, other: number, column: Column): number {
    const table = this.#table
    return (
      table.valueOf(slot, column) - table.valueOf(other, column) || table.compareKeys(slot, other)
    )
  }
}

function indexAt(index: number): (typeof indexes)[number] {
  const found = indexes[index]
  if (found === undefined) throw new RangeError(`no index ${index}`)
  return found
}
