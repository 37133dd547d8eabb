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
  test('are accepted up to the limit', () => {
    const { all, open, cut } = start()
    for (let n = 0; n < MAX; n++) {
      assert.ok(all.canAccept('a', n))
      open(`${n}`, n)
    }
    assert.equal(all.canAccept('a', MAX), false)
    assert.deepEqual([all.size, cut], [MAX, []])
  })

  test('are closed for new ones when they are old, oldest first', () => {
    const { all, open, cut, counted } = start()
    for (let n = 0; n < MAX; n++) open(`${n}`, n)
    assert.equal(all.canAccept('a', 1999), false)
    assert.equal(all.canAccept('a', 2000), true)
    open('a', 2000)
    assert.equal(all.canAccept('a', 2000), false)
    assert.equal(all.canAccept('a', 2001), true)
    assert.deepEqual([cut, counted()], [['0 0', '1 1'], 2])
  })

  test('are closed while young if their address has most of them and the new one has few', () => {
    const { all, open, cut } = start()
    open('other', 0)
    for (let n = 1; n < MAX; n++) open('large', n)
    assert.equal(all.canAccept('large', 20), false)
    assert.equal(all.canAccept('probe', 20), true)
    open('probe', 20)
    assert.equal(all.canAccept('probe', 20), true)
    open('probe', 20)
    assert.equal(all.canAccept('probe', 20), false, 'its share is used up')
    assert.deepEqual(cut, ['large 1', 'large 2'])
  })

  test('stay open while young if no address has most of them', () => {
    const { all, open, cut } = start()
    for (let n = 0; n < MAX; n++) open(n % 2 === 0 ? 'a' : 'b', n)
    assert.equal(all.canAccept('probe', 20), false)
    assert.deepEqual(cut, [])
  })

  test('are no longer counted when deleted', () => {
    const { all, open } = start()
    const opened = Array.from({ length: MAX }, (_, n) => open('a', n))
    for (const connection of [...opened, ...opened]) all.delete(connection)
    assert.equal(all.size, 0)
    for (let n = 0; n < MAX; n++) open('b', n)
    assert.equal(all.canAccept('b', 0), false, 'the address b has all connections')
    assert.equal(all.canAccept('a', 0), true)
  })
})
