/** A block of this length is split in two. */
const blockLengthMax = 512

/**
 * Items in the order of their names: an array of sorted blocks. Insertion moves at most one block,
 * which is fast for the numbers of keys in a test. Names are compared by UTF-16 code units: use
 * latin1 strings to compare bytes.
 */
export class SortedKeys<Item extends { readonly name: string }> {
  readonly #blocks: Item[][] = []

  insert(item: Item): void {
    const blocks = this.#blocks
    const index = this.#blockOf(item.name)
    const block = blocks[index]
    if (block === undefined) {
      blocks.push([item])
      return
    }
    block.splice(positionIn(block, item.name), 0, item)
    if (block.length > blockLengthMax) {
      blocks.splice(index + 1, 0, block.splice(blockLengthMax / 2))
    }
  }

  remove(item: Item): void {
    const index = this.#blockOf(item.name)
    const block = this.#blocks[index]
    if (block === undefined) return
    const position = positionIn(block, item.name)
    if (block[position] !== item) return
    block.splice(position, 1)
    if (block.length === 0) this.#blocks.splice(index, 1)
  }

  /** Visits the items from `start` up to `end`, which is not included; '' means no end. */
  visit(start: string, end: string, visit: (item: Item) => void): void {
    const blocks = this.#blocks
    let index = this.#blockOf(start)
    let position = positionIn(blocks[index] ?? [], start)
    for (; index < blocks.length; index++) {
      const block = blocks[index] as Item[]
      for (; position < block.length; position++) {
        const item = block[position] as Item
        if (end !== '' && item.name >= end) return
        visit(item)
      }
      position = 0
    }
  }

  /** The last block whose first name is not after `name`; 0 when there is none. */
  #blockOf(name: string): number {
    const blocks = this.#blocks
    let low = 0
    let high = blocks.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (((blocks[middle] as Item[])[0] as Item).name <= name) low = middle
      else high = middle - 1
    }
    return low
  }
}

/** The index of the first item whose name is not before `name`. */
function positionIn<Item extends { readonly name: string }>(
  block: readonly Item[],
  name: string,
): number {
  let low = 0
  let high = block.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((block[middle] as Item).name < name) low = middle + 1
    else high = middle
  }
  return low
}
