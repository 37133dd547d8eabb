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
  test('new connections are accepted up to the limit', () => {
    const { all, open, cut } = start()
    for (let n = 0; n < MAX; n++) {
      assert.ok(all.hasRoom('a', n))
      open(`${n}`, n)
    }
    assert.equal(all.hasRoom('a', MAX), false)
    assert.deepEqual([all.size, cut], [MAX, []])
  })

  test('old connections are closed for new ones, the oldest first', () => {
    const { all, open, cut, counted } = start()
    for (let n = 0; n < MAX; n++) open(`${n}`, n)
    assert.equal(all.hasRoom('a', 1999), false)
    assert.equal(all.hasRoom('a', 2000), true)
    open('a', 2000)
    assert.equal(all.hasRoom('a', 2000), false)
    assert.equal(all.hasRoom('a', 2001), true)
    assert.deepEqual([cut, counted()], [['0 0', '1 1'], 2])
  })

  test('young connections of an address with most of them are closed for an address with few', () => {
    const { all, open, cut } = start()
    open('other', 0)
    for (let n = 1; n < MAX; n++) open('large', n)
    assert.equal(all.hasRoom('large', 20), false)
    assert.equal(all.hasRoom('probe', 20), true)
    open('probe', 20)
    assert.equal(all.hasRoom('probe', 20), true)
    open('probe', 20)
    assert.equal(all.hasRoom('probe', 20), false, 'its share is used up')
    assert.deepEqual(cut, ['large 1', 'large 2'])
  })

  test('young connections are kept while no address has most of them', () => {
    const { all, open, cut } = start()
    for (let n = 0; n < MAX; n++) open(n % 2 === 0 ? 'a' : 'b', n)
    assert.equal(all.hasRoom('probe', 20), false)
    assert.deepEqual(cut, [])
  })

  test('deleted connections are not counted any more', () => {
    const { all, open } = start()
    const opened = Array.from({ length: MAX }, (_, n) => open('a', n))
    for (const connection of [...opened, ...opened]) all.delete(connection)
    assert.equal(all.size, 0)
    for (let n = 0; n < MAX; n++) open('b', n)
    assert.equal(all.hasRoom('b', 0), false, 'the address b has all connections')
    assert.equal(all.hasRoom('a', 0), true)
  })
})
