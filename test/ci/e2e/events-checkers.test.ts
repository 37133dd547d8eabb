import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CrowdRecord, Delays } from '../../support/crowd-record.ts'
import { type Change, replay, sequenceFaults } from '../../support/watch-sequence.ts'

/** Tests of the checkers that the Event API tests rely on. */

const owed: readonly Change[] = [10, 20, 30].map((version) => ({
  type: 'ADDED',
  key: `n/e${version}`,
  version,
}))
const [one, two, three] = owed
assert.ok(one !== undefined && two !== undefined && three !== undefined)

describe('the checker of sequences', () => {
  test('accepts a correct sequence', () => {
    assert.deepEqual(sequenceFaults(owed, owed), [])
  })

  const planted: Record<string, readonly [readonly Change[], readonly string[]]> = {
    'a gap': [[one, three], ['1 missing: ADDED n/e20 20']],
    'a duplicate': [[one, two, two, three], ['1 doubled: ADDED n/e20 20']],
    'a swap': [[two, one, three], ['1 out of order: ADDED n/e10 10 after 20']],
    'an unknown event': [
      [one, two, { ...three, key: 'n/x' }],
      ['1 missing: ADDED n/e30 30', '1 not owed: ADDED n/x 30'],
    ],
    'a wrong type': [
      [one, two, { ...three, type: 'MODIFIED' }],
      ['1 missing: ADDED n/e30 30', '1 not owed: MODIFIED n/e30 30'],
    ],
    'a wrong version': [
      [one, two, { ...three, version: 31 }],
      ['1 missing: ADDED n/e30 30', '1 not owed: ADDED n/e30 31'],
    ],
    silence: [[], ['3 missing: ADDED n/e10 10, ADDED n/e20 20, ADDED n/e30 30']],
  }
  for (const [what, [seen, faults]] of Object.entries(planted)) {
    test(`finds ${what}`, () => assert.deepEqual(sequenceFaults(owed, seen), faults))
  }

  test('replay returns the state after the changes', () => {
    const changes: Change[] = [
      one,
      two,
      { type: 'MODIFIED', key: one.key, version: 25 },
      { type: 'DELETED', key: two.key, version: 26 },
      { type: 'BOOKMARK', key: '/', version: 40 },
    ]
    assert.deepEqual(replay(changes), ['n/e10 25'])
  })
})

describe('the record of a crowd', () => {
  const text = Buffer.from('first\nsecond\nthird\n')

  /** Sends the chunks to a watcher after another one has received everything. */
  function second(...pieces: readonly Buffer[]): { isAstray: boolean; frames: number } {
    const record = new CrowdRecord(() => {})
    record.watcher().take(text, () => {})
    const watcher = record.watcher()
    for (const piece of pieces) watcher.take(piece, () => {})
    return { isAstray: watcher.isAstray, frames: watcher.frames }
  }

  test('follows watchers whose bytes arrive in different chunks', () => {
    const lines: string[] = []
    const record = new CrowdRecord((line) => lines.push(line))
    const [left, right] = [record.watcher(), record.watcher()]
    const completed: string[] = []
    for (let offset = 0; offset < text.length; offset += 4) {
      left.take(text.subarray(offset, offset + 4), (first, end) =>
        completed.push(`${first}-${end}`),
      )
      if (offset === 8) right.take(text.subarray(0, 17), () => {})
    }
    right.take(text.subarray(17), () => {})
    assert.deepEqual(lines, ['first', 'second', 'third'])
    assert.deepEqual(completed, ['0-1', '1-2', '2-3'])
    assert.deepEqual([left.frames, right.frames], [3, 3])
    assert.deepEqual([left.isAstray, right.isAstray], [false, false])
  })

  test('finds a gap, a duplicate and a missing end', () => {
    assert.deepEqual(second(text), { isAstray: false, frames: 3 })
    assert.equal(second(text.subarray(0, 6), text.subarray(13)).isAstray, true)
    assert.equal(second(text.subarray(0, 6), text.subarray(0, 6)).isAstray, true)
    assert.deepEqual(second(text.subarray(0, 15)), { isAstray: false, frames: 2 })
  })

  test('grows with its data', () => {
    const record = new CrowdRecord(() => {})
    const long = Buffer.alloc(3 * 1024 * 1024, `${'x'.repeat(1023)}\n`)
    const [left, right] = [record.watcher(), record.watcher()]
    left.take(long, () => {})
    right.take(long.subarray(0, -1), () => {})
    assert.deepEqual([left.frames, right.frames], [3072, 3071])
  })

  test('percentiles of delays are computed', () => {
    const delays = new Delays()
    for (let us = 0; us < 100_000; us += 100) delays.add(us)
    assert.equal(delays.percentile(0.5), 50)
    assert.equal(delays.percentile(0.99), 99)
    delays.add(60_000_000)
    assert.equal(delays.percentile(1), 10_000)
  })
})
