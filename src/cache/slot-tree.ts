/**
 * A sorted set of slots (small numbers that stand for events; what they sort by is for the
 * comparison to look up), as a B+ tree that knows how many slots lie before any position.
 *
 * A view of it costs nothing to take and never changes: nodes belong to the generation that made
 * them, a view begins a new generation, and a writer copies what belongs to an earlier one before
 * it changes it. Without views nothing is copied.
 */

/** Below 0 when the slot comes before what is looked for, above 0 when after, 0 when it is it. */
export type Probe = (slot: number) => number

export type Compare = (slot: number, other: number) => number

/** Three levels hold two million; a copied path is three kilobytes. */
const nodeMax = 128
/** A node with fewer is joined to its neighbour where the two leave room to grow. */
const nodeMin = nodeMax / 4
const joinedMax = (nodeMax * 3) / 4
/** What a slot or a pointer takes in an array. */
const wordBytes = 8

interface Leaf {
  readonly generation: number
  readonly slots: number[]
  isPast: boolean
  readonly size?: never
}

/** Neighbours in the set. */
export interface SlotRun {
  readonly slots: readonly number[]
  /** The present has not got this one any more. */
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

/** The set as it was when the view was taken. */
export class TreeView {
  readonly #root: Node

  constructor(root: Node) {
    this.#root = root
  }

  get size(): number {
    return sizeOf(this.#root)
  }

  /** How many slots come before what is looked for. */
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

  /** The slot that the probe is 0 for. */
  find(probe: Probe): number | undefined {
    let node = this.#root
    while (node.slots === undefined) {
      node = nth(node.children, Math.max(0, countUpTo(node.firsts, probe) - 1))
    }
    const slot = node.slots[countBefore(node.slots, probe)]
    return slot !== undefined && probe(slot) === 0 ? slot : undefined
  }

  /**
   * A run of slots that has the one at `index`, which must be there, at `offset`. In a view that was
   * taken for good it never changes, and later views have the same one until a slot in it does.
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

export class SlotTree {
  readonly #compare: Compare
  #root: Node
  #generation = 0
  #bytesCopied = 0

  constructor(compare: Compare) {
    this.#compare = compare
    this.#root = { generation: 0, slots: [], isPast: false }
  }

  /** About how much was copied so far for the sake of views. */
  get bytesCopied(): number {
    return this.#bytesCopied
  }

  /** The set as it is. Good until the next change, which it may or may not show. */
  peek(): TreeView {
    return new TreeView(this.#root)
  }

  /** The set as it is, for good. */
  view(): TreeView {
    this.#generation++
    return new TreeView(this.#root)
  }

  /** `slot` must not be there, nor one that compares as equal. */
  insert(slot: number): void {
    const root = this.#own(this.#root)
    const right = this.#insertInto(root, slot)
    this.#root = right === undefined ? root : this.#parentOf(root, right)
  }

  remove(slot: number): void {
    let root = this.#own(this.#root)
    this.#removeFrom(root, slot)
    while (root.slots === undefined && root.children.length === 1) root = nth(root.children, 0)
    this.#root = root
  }

  /** Puts `next` where `slot` is; the two must compare as equal. */
  replace(slot: number, next: number): void {
    this.#root = this.#own(this.#root)
    let node = this.#root
    while (node.slots === undefined) {
      const index = this.#childFor(node, slot)
      if (node.firsts[index] === slot) node.firsts[index] = next
      node = this.#ownChild(node, index)
    }
    node.slots[this.#indexOf(node, slot)] = next
  }

  /** Answers what did not fit any more: a new neighbour to the right. */
  #insertInto(node: Node, slot: number): Node | undefined {
    if (node.slots !== undefined) {
      const index = countBefore(node.slots, (other) => this.#compare(other, slot))
      node.slots.splice(index, 0, slot)
      if (node.slots.length <= nodeMax) return undefined
      const slots = node.slots.splice(splitIndex(index, node.slots.length))
      return { generation: this.#generation, slots, isPast: false }
    }
    const index = this.#childFor(node, slot)
    const child = this.#ownChild(node, index)
    const right = this.#insertInto(child, slot)
    node.firsts[index] = firstOf(child)
    node.size++
    if (right === undefined) return undefined
    node.children.splice(index + 1, 0, right)
    node.firsts.splice(index + 1, 0, firstOf(right))
    return node.children.length <= nodeMax ? undefined : this.#split(node, index + 1)
  }

  #removeFrom(node: Node, slot: number): void {
    if (node.slots !== undefined) {
      node.slots.splice(this.#indexOf(node, slot), 1)
      return
    }
    const index = this.#childFor(node, slot)
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
    if (!this.#join(node, index)) this.#join(node, index - 1)
  }

  /** Moves all of the child after `index` into the one at `index`, if that leaves room. */
  #join(node: Inner, index: number): boolean {
    const [left, right] = [node.children[index], node.children[index + 1]]
    if (left === undefined || right === undefined) return false
    if (widthOf(left) + widthOf(right) > joinedMax) return false
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

  #childFor(node: Inner, slot: number): number {
    return Math.max(0, countUpTo(node.firsts, (other) => this.#compare(other, slot)) - 1)
  }

  #indexOf(leaf: Leaf, slot: number): number {
    const index = countBefore(leaf.slots, (other) => this.#compare(other, slot))
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

/** What is loaded in order leaves full nodes behind instead of halves. */
function splitIndex(inserted: number, length: number): number {
  return inserted === length - 1 ? length - 1 : length >> 1
}

function sizeOf(node: Node): number {
  return node.slots === undefined ? node.size : node.slots.length
}

function widthOf(node: Node): number {
  return node.slots === undefined ? node.children.length : node.slots.length
}

/** Of an empty leaf, which only the root can be, a slot that nobody looks at. */
function firstOf(node: Node): number {
  return (node.slots === undefined ? node.firsts[0] : node.slots[0]) ?? 0
}

function nth(children: readonly Node[], index: number): Node {
  const child = children[index]
  if (child === undefined) throw new RangeError(`no child ${index}`)
  return child
}

/** How many of the sorted slots come before what is looked for. */
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

/** How many of the sorted slots come before what is looked for, or are it. */
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
