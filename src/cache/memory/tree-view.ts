/** The nodes of a slot tree, and reading them: lookups by probe, rank and index. */

/** Below 0 when the slot is before the wanted position, above 0 when after, 0 when it is there. */
export type Probe = (slot: number) => number

export interface Leaf {
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

export interface Inner {
  readonly generation: number
  readonly children: Node[]
  /** The first slot under each child. */
  readonly firsts: number[]
  size: number
  readonly slots?: never
}

export type Node = Leaf | Inner

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

export function sizeOf(node: Node): number {
  return node.slots === undefined ? node.size : node.slots.length
}

export function nth(children: readonly Node[], index: number): Node {
  const child = children[index]
  if (child === undefined) throw new RangeError(`no child ${index}`)
  return child
}

/** How many of the sorted slots are before the wanted position. */
export function countBefore(slots: readonly number[], probe: Probe): number {
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
export function countUpTo(slots: readonly number[], probe: Probe): number {
  let low = 0
  let high = slots.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (probe(slots[middle] ?? 0) <= 0) low = middle + 1
    else high = middle
  }
  return low
}
