import { COLUMNS, indexes } from './columns.ts'
import type { EventTable } from './event-table.ts'
import { ColumnOrder, KeyOrder, TimeOrder } from './row-orders.ts'
import { SlotTree, type TreeView } from './slot-tree.ts'

/** All sorted sets of one state. */
export interface IndexViews {
  readonly byKey: TreeView
  /** Sorted by when events were last seen, then by key. */
  readonly byTime: TreeView
  /** One set for each of `indexes`, sorted by the number in its column, then by key. */
  readonly byColumn: readonly TreeView[]
}

/** The rows of the present, sorted by key, by time and by each indexed column. */
export class EventIndexes {
  readonly #table: EventTable
  readonly #keyOrder: KeyOrder
  readonly #byKey: SlotTree
  readonly #byTime: SlotTree
  readonly #byColumn: readonly SlotTree[]

  constructor(table: EventTable) {
    this.#table = table
    this.#keyOrder = new KeyOrder(table)
    this.#byKey = new SlotTree(this.#keyOrder)
    this.#byTime = new SlotTree(new TimeOrder(table))
    this.#byColumn = indexes.map(({ column }) => new SlotTree(new ColumnOrder(table, column)))
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

  /** Immutable snapshots of all sets. */
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

  /** The set by regarded object. Valid until the next change. */
  peekRegarding(): TreeView {
    const tree = this.#byColumn[indexes.findIndex(({ column }) => column === COLUMNS.regarding)]
    if (tree === undefined) throw new RangeError('regarded objects have no index')
    return tree.peek()
  }

  /** Returns the row in which the event was before, if it was in one: it is replaced. */
  put(slot: number): number | undefined {
    const old = this.#byKey.put(slot)
    if (old !== undefined) {
      this.#table.setKeyRank(slot, this.#table.keyRankOf(old))
      this.#replaceByValue(old, slot)
    } else {
      this.#keyOrder.rank(slot)
      this.#byTime.insert(slot)
      this.#byColumn.forEach((tree, index) => {
        if (this.#isIn(slot, index)) tree.insert(slot)
      })
    }
    return old
  }

  remove(slot: number): void {
    this.#byKey.remove(slot)
    this.#byTime.remove(slot)
    this.#byColumn.forEach((tree, index) => {
      if (this.#isIn(slot, index)) tree.remove(slot)
    })
  }

  /** The event in row `old` is in row `slot` now. */
  #replaceByValue(old: number, slot: number): void {
    const table = this.#table
    if (table.lastSeenOf(old) === table.lastSeenOf(slot)) this.#byTime.replace(old, slot)
    else {
      this.#byTime.remove(old)
      this.#byTime.insert(slot)
    }
    this.#byColumn.forEach((tree, index) => {
      const { column } = indexAt(index)
      const isIn = this.#isIn(slot, index)
      if (isIn && table.valueOf(old, column) === table.valueOf(slot, column)) {
        tree.replace(old, slot)
        return
      }
      if (this.#isIn(old, index)) tree.remove(old)
      if (isIn) tree.insert(slot)
    })
  }

  #isIn(slot: number, index: number): boolean {
    const { column, isSparse } = indexAt(index)
    return !isSparse || this.#table.valueOf(slot, column) !== 0
  }
}

function indexAt(index: number): (typeof indexes)[number] {
  const found = indexes[index]
  if (found === undefined) throw new RangeError(`no index ${index}`)
  return found
}
