import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Placed, PlacedSet } from './placed-set.ts'

function members(count: number): Placed[] {
  return Array.from({ length: count }, () => ({ place: -1 }))
}

describe('PlacedSet', () => {
  test('has the same members as a Set after the same changes', () => {
    const all = members(50)
    const placed = new PlacedSet<Placed>()
    const model = new Set<Placed>()
    let random = 1
    for (let step = 0; step < 5_000; step++) {
      random = (random * 48_271) % 2_147_483_647
      const member = all[random % all.length] as Placed
      if ((random >> 8) % 2 === 0) {
        placed.add(member)
        model.add(member)
      } else assert.equal(placed.delete(member), model.delete(member))
      assert.equal(placed.size, model.size)
      assert.equal(placed.has(member), model.has(member))
    }
    assert.deepEqual(new Set(placed), model)
  })

  test('does not have a member of another set', () => {
    const [one, other] = [new PlacedSet<Placed>(), new PlacedSet<Placed>()]
    const [member] = members(1) as [Placed]
    one.add(member)
    assert.equal(other.delete(member), false)
    assert.equal(one.delete(member), true)
    assert.equal(one.delete(member), false)
  })

  test('lets members leave while they are visited', () => {
    const placed = new PlacedSet<Placed>()
    for (const member of members(10)) placed.add(member)
    let visited = 0
    for (const member of placed) {
      placed.delete(member)
      visited += 1
    }
    assert.deepEqual([visited, placed.size], [10, 0])
  })
})
