/**
 * A sorted set of slots, as a counted B+ tree: it knows how many slots are before any position. A
 * slot is a small number that stands for an event; the order looks up what it is sorted by.
 *
 * A view is an immutable snapshot that costs nothing to take (copy on write): nodes belong to the
 * generation that made them, taking a view begins a new generation, and a writer copies nodes of
 * earlier generations before it changes them. Without views nothing is copied.
 */
import type { SlotOrder } from './slot-order.ts'

/** Three levels hold two million slots; a copied path is three kilobytes. */
const nodeMax = 128
/** A smaller node is merged with its neighbour if the result has space to grow. */
const nodeMin = nodeMax / 4
const mergedMax = (nodeMax * 3) / 4
/** The size of a slot or a pointer in an array. */
const wordBytes = 8

/** Below 0 when the slot is before the wanted position, above 0 when after, 0 when it is there. */
export type Probe = (slot: number) => number

interface Leaf {
  readonly generation: number
  readonly slots: number[]
  isPast: boolean
  readonly size?: never
}

/** Neighbouring slots. */
export interface SlotRun {
  readonly slots: readonly number[]
  /** The present tree no longer contains this run. */
  readonly isPast: boolean
}

interface Inner {
  readonly generation: number
  readonly children: Node[]
  /** The first slot under each child. */
  readonly firsts: number[]
  size: number
  readonly slots?: never
}

type Node = Leaf | Inner

export class SlotTree {
  readonly #order: SlotOrder
  #root: Node
  #generation = 0
  #bytesCopied = 0
  /** The slot that `put` has replaced. */
  #replaced: number | undefined

  constructor(order: SlotOrder) {
    this.#order = order
    this.#root = { generation: 0, slots: [], isPast: false }
  }

  /** Roughly how much has been copied on write because of views. */
  get bytesCopied(): number {
    return this.#bytesCopied
  }

  /** The present set. Valid until the next change, which it may or may not show. */
  peek(): TreeView {
    return new TreeView(this.#root)
  }

  /** An immutable snapshot of the present set. */
  view(): TreeView {
    this.#generation++
    return new TreeView(this.#root)
  }

  /** The set must not contain `slot`, nor one that compares as equal. */
  insert(slot: number): void {
    const equal = this.put(slot)
    if (equal !== undefined) throw new Error(`slot ${slot} compares as equal to ${equal}`)
  }

  /** Returns the slot that compares as equal, if there was one: it is replaced. */
  put(slot: number): number | undefined {
    this.#order.seek(slot)
    this.#replaced = undefined
    const root = this.#own(this.#root)
    const right = this.#putInto(root, slot)
    this.#root = right === undefined ? root : this.#parentOf(root, right)
    return this.#replaced
  }

  remove(slot: number): void {
    this.#order.seek(slot)
    let root = this.#own(this.#root)
    this.#removeFrom(root, slot)
    while (root.slots === undefined && root.children.length === 1) root = nth(root.children, 0)
    this.#root = root
  }

  /** Replaces `slot` by `next`; the two must compare as equal. */
  replace(slot: number, next: number): void {
    this.#order.seek(slot)
    this.#root = this.#own(this.#root)
    let node = this.#root
    while (node.slots === undefined) {
      const index = this.#childFor(node)
      if (node.firsts[index] === slot) node.firsts[index] = next
      node = this.#ownChild(node, index)
    }
    node.slots[this.#indexOf(node, slot)] = next
  }

  /** Returns the new right neighbour if the node had to be split. */
  #putInto(node: Node, slot: number): Node | undefined {
    if (node.slots !== undefined) return this.#putIntoLeaf(node, slot)
    const index = this.#childFor(node)
    const child = this.#ownChild(node, index)
    const right = this.#putInto(child, slot)
    node.firsts[index] = firstOf(child)
    if (this.#replaced === undefined) node.size++
    if (right === undefined) return undefined
    node.children.splice(index + 1, 0, right)
    node.firsts.splice(index + 1, 0, firstOf(right))
    return node.children.length <= nodeMax ? undefined : this.#split(node, index + 1)
  }

  #putIntoLeaf({ slots }: Leaf, slot: number): Leaf | undefined {
    const index = this.#order.countBefore(slots)
    const next = slots[index]
    if (next !== undefined && this.#order.compare(next) === 0) {
      this.#replaced = next
      slots[index] = slot
      return undefined
    }
    slots.splice(index, 0, slot)
    if (slots.length <= nodeMax) return undefined
    const moved = slots.splice(splitIndex(index, slots.length))
    return { generation: this.#generation, slots: moved, isPast: false }
  }

  #removeFrom(node: Node, slot: number): void {
    if (node.slots !== undefined) {
      node.slots.splice(this.#indexOf(node, slot), 1)
      return
    }
    const index = this.#childFor(node)
    const child = this.#ownChild(node, index)
    this.#removeFrom(child, slot)
    node.size--
    const width = widthOf(child)
    if (width === 0) {
      node.children.splice(index, 1)
      node.firsts.splice(index, 1)
      return
    }
    node.firsts[index] = firstOf(child)
    if (width >= nodeMin) return
    if (!this.#merge(node, index)) this.#merge(node, index - 1)
  }

  /** Merges the child after `index` into the one at `index`, if that leaves space to grow. */
  #merge(node: Inner, index: number): boolean {
    const [left, right] = [node.children[index], node.children[index + 1]]
    if (left === undefined || right === undefined) return false
    if (widthOf(left) + widthOf(right) > mergedMax) return false
    const target = this.#ownChild(node, index)
    if (target.slots !== undefined && right.slots !== undefined) {
      target.slots.push(...right.slots)
      right.isPast = true
    } else if (target.slots === undefined && right.slots === undefined) {
      target.children.push(...right.children)
      target.firsts.push(...right.firsts)
      target.size += right.size
    }
    node.children.splice(index + 1, 1)
    node.firsts.splice(index + 1, 1)
    return true
  }

  #split(node: Inner, inserted: number): Inner {
    const at = splitIndex(inserted, node.children.length)
    const children = node.children.splice(at)
    const right = this.#inner(children, node.firsts.splice(at))
    node.size -= right.size
    return right
  }

  #parentOf(left: Node, right: Node): Inner {
    return this.#inner([left, right], [firstOf(left), firstOf(right)])
  }

  #inner(children: Node[], firsts: number[]): Inner {
    const size = children.reduce((sum, child) => sum + sizeOf(child), 0)
    return { generation: this.#generation, children, firsts, size }
  }

  #childFor(node: Inner): number {
    return Math.max(0, this.#order.countUpTo(node.firsts) - 1)
  }

  #indexOf(leaf: Leaf, slot: number): number {
    const index = this.#order.countBefore(leaf.slots)
    if (leaf.slots[index] !== slot) throw new Error(`slot ${slot} is not in the tree`)
    return index
  }

  #ownChild(node: Inner, index: number): Node {
    const child = this.#own(nth(node.children, index))
    node.children[index] = child
    return child
  }

  #own(node: Node): Node {
    const generation = this.#generation
    if (node.generation === generation) return node
    if (node.slots !== undefined) {
      this.#bytesCopied += node.slots.length * wordBytes
      node.isPast = true
      return { generation, slots: node.slots.slice(), isPast: false }
    }
    this.#bytesCopied += 2 * node.children.length * wordBytes
    const { size } = node
    return { generation, children: node.children.slice(), firsts: node.firsts.slice(), size }
  }
}

/** Appending in order leaves full nodes behind instead of half-full ones. */
function splitIndex(inserted: number, length: number): number {
  return inserted === length - 1 ? length - 1 : length >> 1
}

function widthOf(node: Node): number {
  return node.slots === undefined ? node.children.length : node.slots.length
}

/** Returns an arbitrary slot, which is never used, for an empty leaf; only the root can be one. */
function firstOf(node: Node): number {
  return (node.slots === undefined ? node.firsts[0] : node.slots[0]) ?? 0
}

/** The set as it was when the view was taken. */
export class TreeView {
  readonly #root: Node

  constructor(root: Node) {
    this.#root = root
  }

  get size(): number {
    return sizeOf(this.#root)
  }

  /** The number of slots before the wanted position. */
  rank(probe: Probe): number {
    let node = this.#root
    let before = 0
    while (node.slots === undefined) {
      const index = countBefore(node.firsts, probe) - 1
      if (index < 0) return before
      for (let left = 0; left < index; left++) before += sizeOf(nth(node.children, left))
      node = nth(node.children, index)
    }
    return before + countBefore(node.slots, probe)
  }

  /** The slot for which the probe returns 0. */
  find(probe: Probe): number | undefined {
    let node = this.#root
    while (node.slots === undefined) {
      node = nth(node.children, Math.max(0, countUpTo(node.firsts, probe) - 1))
    }
    const slot = node.slots[countBefore(node.slots, probe)]
    return slot !== undefined && probe(slot) === 0 ? slot : undefined
  }

  /**
   * The run that contains the slot at `index`, which must exist, and its offset in the run. A run
   * of a view that `SlotTree.view` returned never changes, and later views return the same object
   * until a slot in the run changes.
   */
  runAt(index: number): { readonly run: SlotRun; readonly offset: number } {
    let node = this.#root
    let offset = index
    while (node.slots === undefined) {
      let child = 0
      for (;;) {
        const size = sizeOf(nth(node.children, child))
        if (offset < size) break
        offset -= size
        child++
      }
      node = nth(node.children, child)
    }
    return { run: node, offset }
  }
}

function sizeOf(node: Node): number {
  return node.slots === undefined ? node.size : node.slots.length
}

function nth(children: readonly Node[], index: number): Node {
  const child = children[index]
  if (child === undefined) throw new RangeError(`no child ${index}`)
  return child
}

/** How many of the sorted slots are before the wanted position. */
function countBefore(slots: readonly number[], probe: Probe): number {
  let low = 0
  let high = slots.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (probe(slots[middle] ?? 0) < 0) low = middle + 1
    else high = middle
  }
  return low
}

/** How many of the sorted slots are before or at the wanted position. */
function countUpTo(slots: readonly number[], probe: Probe): number {
  let low = 0
  let high = slots.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (probe(slots[middle] ?? 0) <= 0) low = middle + 1
    else high = middle
  }
  return low
}
