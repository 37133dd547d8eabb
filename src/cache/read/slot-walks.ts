/** Ways through the slots of a source, some at a time. */
import type { Condition } from '../memory/columns.ts'
import type { Range, Source } from './sources.ts'

/** Some slots, valid until the next ones are asked for. */
export interface SlotBatch {
  readonly slots: ArrayLike<number>
  readonly length: number
  /** Slots that meet one of these were in an earlier batch as well. */
  readonly except?: readonly Condition[] | undefined
}

interface SlotWalk {
  /** Undefined after the last slots. */
  next(): SlotBatch | undefined
}

const batchMax = 1_024

/** The slots of a source, in its order or in reverse; ends after about `passMax` of them. */
export class SourceWalk implements SlotWalk {
  readonly #walks: SlotWalk[]
  readonly #passMax: number
  #passed = 0

  constructor(
    { ranges, rows }: Source,
    options: { readonly isReverse?: boolean | undefined; readonly passMax?: number | undefined },
  ) {
    const { isReverse = false } = options
    this.#passMax = options.passMax ?? Number.POSITIVE_INFINITY
    this.#walks =
      rows === undefined
        ? ranges.map((range) => new RangeWalk(range, isReverse))
        : [new RowScan(rows)]
  }

  next(): SlotBatch | undefined {
    for (;;) {
      const [walk] = this.#walks
      if (walk === undefined || this.#passed >= this.#passMax) return undefined
      const batch = walk.next()
      if (batch === undefined) {
        this.#walks.shift()
        continue
      }
      this.#passed += batch.length
      return batch
    }
  }
}

/** The slots of a range of a sorted set, forwards or backwards: run by run. */
class RangeWalk implements SlotWalk {
  readonly #range: Range
  readonly #isReverse: boolean
  readonly #length: number
  #passed = 0

  constructor(range: Range, isReverse: boolean) {
    this.#range = range
    this.#isReverse = isReverse
    this.#length = Math.max(0, range.to - range.from)
  }

  next(): SlotBatch | undefined {
    const left = this.#length - this.#passed
    if (left === 0) return undefined
    const { view, from, to, except } = this.#range
    const { run, offset } = view.runAt(
      this.#isReverse ? to - 1 - this.#passed : from + this.#passed,
    )
    const first = this.#isReverse ? Math.max(0, offset + 1 - left) : offset
    const end = this.#isReverse ? offset + 1 : Math.min(run.slots.length, offset + left)
    const slots = run.slots.slice(first, end)
    if (this.#isReverse) slots.reverse()
    this.#passed += slots.length
    return { slots, length: slots.length, except }
  }
}

/** The slots whose bits are set, in their order. */
class RowScan implements SlotWalk {
  readonly #bits: Uint32Array
  readonly #slots = new Uint32Array(batchMax)
  #word = 0

  constructor(rows: Uint32Array) {
    this.#bits = rows
  }

  next(): SlotBatch | undefined {
    const slots = this.#slots
    const bits = this.#bits
    let length = 0
    while (this.#word < bits.length && length <= batchMax - 32) {
      const first = this.#word * 32
      for (let word = bits[this.#word++] ?? 0; word !== 0; word &= word - 1) {
        slots[length++] = first + 31 - Math.clz32(word & -word)
      }
    }
    return length === 0 ? undefined : { slots, length }
  }
}
