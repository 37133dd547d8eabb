import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { Largest, levelled, type Measured } from './levelling.ts'

const named = (amounts: readonly number[]): readonly Measured[] =>
  amounts
    .map((amount, at) => ({ namespace: `n${at}`, amount }))
    .sort((one, other) => other.amount - one.amount)
const amountsOf = (shares: readonly Measured[]): readonly number[] =>
  shares.map(({ amount }) => amount)

describe('levelling of namespaces', () => {
  test('takes everything from the largest namespace as long as it stays the largest', () => {
    assert.deepEqual(amountsOf(levelled(named([1000, 600]), 400)), [400])
    assert.deepEqual(amountsOf(levelled(named([1000, 600]), 500)), [450, 50])
  })

  test('takes equal parts from equal namespaces', () => {
    assert.deepEqual(amountsOf(levelled(named([10, 10, 10]), 6)), [2, 2, 2])
    assert.deepEqual(amountsOf(levelled(named([1, 1, 1, 1]), 2)), [1, 1])
  })

  test('takes exactly the excess, and nothing from a namespace smaller than what another retains', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 1, maxLength: 30 }),
        fc.nat(1000),
        (amounts, part) => {
          const total = amounts.reduce((sum, amount) => sum + amount, 0)
          const excess = Math.min(total, part + 1)
          const all = named(amounts)
          const shares = levelled(all, excess)
          assert.equal(
            amountsOf(shares).reduce((sum, amount) => sum + amount, 0),
            excess,
          )
          const given = new Map(shares.map(({ namespace, amount }) => [namespace, amount]))
          const kept = all.map(({ namespace, amount }) => amount - (given.get(namespace) ?? 0))
          const most = Math.max(...kept)
          for (const [at, { namespace }] of all.entries()) {
            if (given.has(namespace)) assert.ok((kept[at] ?? 0) >= most - 1)
          }
        },
      ),
    )
  })

  test('finds the largest of many', () => {
    const largest = new Largest(3)
    for (let n = 0; n < 1000; n++) largest.add({ namespace: `n${n}`, amount: (n * 7) % 1000 })
    assert.deepEqual(amountsOf(largest.sorted()), [999, 998, 997])
  })
})
