import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Unidentified, UnidentifiedConnections } from './unidentified.ts'

const MAX = 16

function start() {
  const cut: string[] = []
  let counted = 0
  const all = new UnidentifiedConnections(MAX, () => {
    counted += 1
  })
  const open = (address: string, since: number): Unidentified => {
    const connection = { address, since, cut: () => cut.push(`${address} ${since}`) }
    all.add(connection)
    return connection
  }
  return { all, open, cut, counted: () => counted }
}

describe('unidentified connections', () => {
  test('have room while they are few', () => {
    const { all, open, cut } = start()
    for (let n = 0; n < MAX; n++) {
      assert.ok(all.hasRoom('a', n))
      open(`${n}`, n)
    }
    assert.equal(all.hasRoom('a', MAX), false)
    assert.deepEqual([all.size, cut], [MAX, []])
  })

  test('give way when they are not new any more, the oldest first', () => {
    const { all, open, cut, counted } = start()
    for (let n = 0; n < MAX; n++) open(`${n}`, n)
    assert.equal(all.hasRoom('a', 1999), false)
    assert.equal(all.hasRoom('a', 2000), true)
    open('a', 2000)
    assert.equal(all.hasRoom('a', 2000), false)
    assert.equal(all.hasRoom('a', 2001), true)
    assert.deepEqual([cut, counted()], [['0 0', '1 1'], 2])
  })

  test('give way at once to an address that has few when one address has most', () => {
    const { all, open, cut } = start()
    open('other', 0)
    for (let n = 1; n < MAX; n++) open('crowd', n)
    assert.equal(all.hasRoom('crowd', 20), false)
    assert.equal(all.hasRoom('probe', 20), true)
    open('probe', 20)
    assert.equal(all.hasRoom('probe', 20), true)
    open('probe', 20)
    assert.equal(all.hasRoom('probe', 20), false, 'it has its part')
    assert.deepEqual(cut, ['crowd 1', 'crowd 2'])
  })

  test('do not give way while they are new and no address has most', () => {
    const { all, open, cut } = start()
    for (let n = 0; n < MAX; n++) open(n % 2 === 0 ? 'a' : 'b', n)
    assert.equal(all.hasRoom('probe', 20), false)
    assert.deepEqual(cut, [])
  })

  test('that are deleted leave nothing behind', () => {
    const { all, open } = start()
    const some = Array.from({ length: MAX }, (_, n) => open('a', n))
    for (const one of [...some, ...some]) all.delete(one)
    assert.equal(all.size, 0)
    for (let n = 0; n < MAX; n++) open('b', n)
    assert.equal(all.hasRoom('b', 0), false, 'nothing of the first is counted')
    assert.equal(all.hasRoom('a', 0), true)
  })
})
