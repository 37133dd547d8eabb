import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { assignSlots } from './slots.ts'

test('keeps the slots of remaining keys, and reuses free slots', () => {
  const keys = fc.uniqueArray(fc.constantFrom(...'abcdefghij'), { maxLength: 6 })
  fc.assert(
    fc.property(fc.array(keys, { maxLength: 12 }), (lists) => {
      let slots: ReadonlyMap<string, number> = new Map()
      for (const list of lists) {
        const after = assignSlots(slots, list)
        assert.deepEqual([...after.keys()], list)
        assert.equal(new Set(after.values()).size, list.length)
        assert.ok(Math.max(0, ...after.values()) < 10)
        for (const key of list) if (slots.has(key)) assert.equal(after.get(key), slots.get(key))
        slots = after
      }
    }),
  )
  let slots: ReadonlyMap<string, number> = new Map()
  for (let n = 0; n < 1_000; n++) slots = assignSlots(slots, [n, n + 1, n + 2].map(String))
  assert.deepEqual([...slots.values()].toSorted(), [0, 1, 2])
})
