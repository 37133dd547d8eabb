import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { SlotOrder } from './slot-order.ts'
import { SlotTree, type TreeView } from './slot-tree.ts'

/** Sorts by the slot's number, so that a sorted array is the model. */
const byNumber = (slot: number, other: number) => slot - other
const probeFor = (wanted: number) => (slot: number) => slot - wanted

class NumberOrder extends SlotOrder {
  readonly #numberOf: (slot: number) => number
  #sought = 0

  constructor(numberOf: (slot: number) => number = (slot) => slot) {
    super()
    this.#numberOf = numberOf
  }

  override seek(slot: number): void {
    this.#sought = this.#numberOf(slot)
  }

  override compare(slot: number): number {
    return this.#numberOf(slot) - this.#sought
  }
}

function contents(view: TreeView): number[] {
  const all: number[] = []
  while (all.length < view.size) {
    const { run, offset } = view.runAt(all.length)
    all.push(...run.slots.slice(offset))
  }
  return all
}

test('the tree equals a sorted array, whatever is inserted and removed', () => {
  const slots = fc.array(fc.nat(2_000), { minLength: 1, maxLength: 3_000, size: 'max' })
  fc.assert(
    fc.property(slots, (steps) => {
      const tree = new SlotTree(new NumberOrder())
      const model = new Set<number>()
      for (const slot of steps) {
        if (model.delete(slot)) tree.remove(slot)
        else {
          model.add(slot)
          tree.insert(slot)
        }
      }
      const sorted = [...model].sort(byNumber)
      assert.deepEqual(contents(tree.peek()), sorted)
      for (const slot of steps.slice(0, 50)) {
        assert.equal(tree.peek().find(probeFor(slot)), model.has(slot) ? slot : undefined)
        const before = sorted.filter((other) => other < slot).length
        assert.equal(tree.peek().rank(probeFor(slot)), before)
      }
    }),
    { numRuns: 60 },
  )
})

test('a view always shows the set as it was when the view was taken', () => {
  const actions = fc.array(
    fc.oneof(
      { weight: 50, arbitrary: fc.nat(500) },
      { weight: 1, arbitrary: fc.constant('view' as const) },
    ),
    { maxLength: 2_000, minLength: 500, size: 'max' },
  )
  fc.assert(
    fc.property(actions, (steps) => {
      const tree = new SlotTree(new NumberOrder())
      const model = new Set<number>()
      const views: { readonly view: TreeView; readonly expected: readonly number[] }[] = []
      for (const step of steps) {
        if (step === 'view') {
          views.push({ view: tree.view(), expected: [...model].sort(byNumber) })
        } else if (model.delete(step)) tree.remove(step)
        else {
          model.add(step)
          tree.insert(step)
        }
      }
      for (const { view, expected } of views) assert.deepEqual(contents(view), expected)
    }),
    { numRuns: 60 },
  )
})

test('the new slot takes the place of the old one, and views keep the old one', () => {
  // Slots sort by their last four digits: 10_000 + n compares as equal to n.
  const tree = new SlotTree(new NumberOrder((slot) => slot % 10_000))
  for (let slot = 0; slot < 5_000; slot++) tree.insert(slot)
  const before = tree.view()
  for (let slot = 0; slot < 5_000; slot += 7) tree.replace(slot, slot + 10_000)
  const expected = Array.from({ length: 5_000 }, (_, n) => (n % 7 === 0 ? n + 10_000 : n))
  assert.deepEqual(contents(tree.peek()), expected)
  assert.equal(contents(before)[7], 7)
  for (const slot of expected) tree.remove(slot)
  assert.equal(tree.peek().size, 0)
  assert.equal(before.size, 5_000)
})

test('a slot is put in the place of one that compares as equal, or inserted', () => {
  const steps = fc.array(fc.nat(40_000), { minLength: 1, maxLength: 3_000, size: 'max' })
  fc.assert(
    fc.property(steps, (slots) => {
      const tree = new SlotTree(new NumberOrder((slot) => slot % 2_000))
      const model = new Map<number, number>()
      const views: { readonly view: TreeView; readonly expected: readonly number[] }[] = []
      const sorted = () => [...model].sort(([one], [other]) => one - other).map(([, slot]) => slot)
      for (const [step, slot] of slots.entries()) {
        if (step % 100 === 0) views.push({ view: tree.view(), expected: sorted() })
        assert.equal(tree.put(slot), model.get(slot % 2_000))
        model.set(slot % 2_000, slot)
      }
      assert.deepEqual(contents(tree.peek()), sorted())
      for (const { view, expected } of views) assert.deepEqual(contents(view), expected)
      for (const slot of sorted()) tree.remove(slot)
      assert.equal(tree.peek().size, 0)
    }),
    { numRuns: 30 },
  )
})

test('inserting a slot that compares as equal to another throws', () => {
  const tree = new SlotTree(new NumberOrder((slot) => slot % 10))
  tree.insert(1)
  assert.throws(() => tree.insert(11), /slot 11 compares as equal to 1/)
})

test('removing a slot that is not in the tree throws', () => {
  const tree = new SlotTree(new NumberOrder())
  tree.insert(1)
  assert.throws(() => tree.remove(2), /slot 2 is not in the tree/)
})

test('nothing is copied without views; with one, each changed path is copied once', () => {
  const tree = new SlotTree(new NumberOrder())
  for (let slot = 0; slot < 100_000; slot++) tree.insert(slot * 2)
  assert.equal(tree.bytesCopied, 0)
  tree.view()
  tree.insert(501)
  const once = tree.bytesCopied
  assert.ok(once > 0 && once < 8_192, String(once))
  tree.insert(503)
  assert.equal(tree.bytesCopied, once)
})
