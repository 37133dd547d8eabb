import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { versionOfChange } from '../../storage/resource-version.ts'
import { indexes } from './columns.ts'
import { EventIndexes } from './event-indexes.ts'
import { EventTable } from './event-table.ts'
import { madeEvent } from './made-events.fixture.ts'
import { orderKey } from './order-key.ts'
import type { TreeView } from './slot-tree.ts'

function slotsOf(view: TreeView): readonly number[] {
  const slots: number[] = []
  while (slots.length < view.size) {
    const { run, offset } = view.runAt(slots.length)
    slots.push(...run.slots.slice(offset))
  }
  return slots
}

/** Keys in ascending, descending and any order, far more than there are numbers between two ranks. */
const names = fc.oneof(
  fc.integer({ min: 1, max: 300 }).map((count) => numbered(count)),
  fc.integer({ min: 1, max: 300 }).map((count) => numbered(count).reverse()),
  fc.array(
    fc.nat(9_999).map((n) => String(n)),
    { maxLength: 300, size: 'max' },
  ),
)

function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, n) => `5-${String(n).padStart(4, '0')}`)
}

test('each is sorted by its number and then by key, in whatever order events come', () => {
  fc.assert(
    fc.property(fc.array(names, { minLength: 1, maxLength: 6 }), (parts) => {
      const table = new EventTable()
      const all = new EventIndexes(table)
      const present = new Map<string, number>()
      for (const [step, name] of parts.flat().entries()) {
        const key = { cluster: 'local', namespace: 'a', name }
        const old = present.get(name)
        if (old !== undefined && step % 3 === 0) {
          all.remove(old)
          table.free(old)
          present.delete(name)
          continue
        }
        const made = { reason: `r-${step % 2}`, uid: 'one', lastSeenMs: 1_000 * (step % 3) }
        const slot = table.add(orderKey(key), madeEvent(key, versionOfChange(1, 0), made))
        assert.equal(all.put(slot), old)
        if (old !== undefined) table.free(old)
        present.set(name, slot)
      }
      const { byKey, byTime, byColumn } = all.peek()
      const byKeys = [...present].sort(([one], [other]) => (one < other ? -1 : 1))
      const sorted = byKeys.map(([, slot]) => slot)
      assert.deepEqual(slotsOf(byKey), sorted)
      const by = (numberOf: (slot: number) => number) =>
        sorted.toSorted((one, other) => numberOf(one) - numberOf(other))
      assert.deepEqual(
        slotsOf(byTime),
        by((slot) => table.lastSeenOf(slot)),
      )
      for (const [index, { column, isSparse }] of indexes.entries()) {
        const expected = isSparse ? [] : by((slot) => table.valueOf(slot, column))
        assert.deepEqual(slotsOf(byColumn[index] ?? byKey), expected)
      }
    }),
    { numRuns: 60 },
  )
})
