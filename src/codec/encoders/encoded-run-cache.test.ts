import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EncodedRunCache } from './encoded-run-cache.ts'
import type { ResponseEncoder } from './response-encoder.ts'

const encoder = { contentType: 'a' } as ResponseEncoder
const otherEncoder = { contentType: 'b' } as ResponseEncoder
const lengthPrefixed = { contentType: 'c', isLengthPrefixed: true } as ResponseEncoder
const entries = Buffer.from('0123456789')

/** The cache stores a run when it is added for the second time. */
function addTwice(runCache: EncodedRunCache, run: { readonly isPast: boolean }): void {
  runCache.add(encoder, run, entries)
  runCache.add(encoder, run, entries)
}

describe('EncodedRunCache', () => {
  test('a run is cached when it is added for the second time, as a copy', () => {
    const runCache = new EncodedRunCache()
    const run = { isPast: false }
    const lent = Buffer.from(entries)
    runCache.add(encoder, run, lent)
    assert.equal(runCache.find(encoder, run), undefined)
    assert.equal(runCache.bytes, 0)
    runCache.add(encoder, run, lent)
    lent.fill('x')
    assert.deepEqual(runCache.find(encoder, run), entries)
    assert.equal(runCache.bytes, 10)
  })

  test('each encoder has its own entries', () => {
    const runCache = new EncodedRunCache()
    const run = { isPast: false }
    addTwice(runCache, run)
    runCache.add(otherEncoder, run, Buffer.from('abc'))
    assert.equal(
      runCache.find(otherEncoder, run),
      undefined,
      'added for the first time with this encoder',
    )
    runCache.add(otherEncoder, run, Buffer.from('abc'))
    assert.equal(String(runCache.find(otherEncoder, run)), 'abc')
    assert.deepEqual(runCache.find(encoder, run), entries)
    runCache.add(encoder, run, entries)
    assert.equal(runCache.bytes, 13, 'no entry is counted twice')
  })

  test('a full cache does not evict entries in use', () => {
    let nowMs = 0
    const runCache = new EncodedRunCache({ bytesMax: 30, clock: { now: () => nowMs } })
    const runs = Array.from({ length: 4 }, () => ({ isPast: false }))
    for (const run of runs) addTwice(runCache, run)
    nowMs = 50_000
    for (const run of runs) addTwice(runCache, run)
    const found = () => runs.map((run) => runCache.find(encoder, run) !== undefined)
    assert.deepEqual(found(), [true, true, true, false])
    assert.equal(runCache.bytes, 30)
  })

  test('a full cache evicts stale and idle entries', () => {
    let nowMs = 0
    const runCache = new EncodedRunCache({ bytesMax: 30, clock: { now: () => nowMs } })
    const made = () => ({ isPast: false })
    const [first, second, third, fourth, fifth] = [made(), made(), made(), made(), made()]
    for (const run of [first, second, third]) addTwice(runCache, run)
    second.isPast = true
    addTwice(runCache, fourth)
    assert.equal(runCache.find(encoder, second), undefined)
    assert.ok(runCache.find(encoder, fourth))
    nowMs = 40_000
    runCache.find(encoder, third)
    runCache.find(encoder, fourth)
    nowMs = 61_000
    addTwice(runCache, fifth)
    assert.equal(runCache.find(encoder, first), undefined)
    assert.ok(runCache.find(encoder, third))
    assert.ok(runCache.find(encoder, fifth))
    assert.equal(runCache.bytes, 30)
  })

  test('a length-prefixed run is cached at once, but evicted soon if only its own list used it', () => {
    let nowMs = 0
    const runCache = new EncodedRunCache({ bytesMax: 30, clock: { now: () => nowMs } })
    const made = () => ({ isPast: false })
    const [first, second, third, fourth, fifth] = [made(), made(), made(), made(), made()]
    for (const run of [first, second, third]) {
      runCache.add(lengthPrefixed, run, entries)
      assert.deepEqual(runCache.find(lengthPrefixed, run), entries, 'for the list that measured it')
    }
    runCache.find(lengthPrefixed, second)
    addTwice(runCache, fourth)
    assert.equal(runCache.find(encoder, fourth), undefined)
    nowMs = 6_000
    addTwice(runCache, fourth)
    nowMs = 59_000
    addTwice(runCache, fifth)
    const found = [first, second, third].map(
      (run) => runCache.find(lengthPrefixed, run) !== undefined,
    )
    assert.deepEqual(found, [false, true, false])
    assert.ok(runCache.find(encoder, fourth), 'it was added before, so another list used it')
    assert.ok(runCache.find(encoder, fifth))
  })

  test('hits are counted', () => {
    const runCache = new EncodedRunCache()
    const run = { isPast: false }
    addTwice(runCache, run)
    runCache.find(otherEncoder, run)
    assert.equal(runCache.hits, 0)
    runCache.find(encoder, run)
    runCache.find(encoder, run)
    assert.equal(runCache.hits, 2)
  })

  test('a stale run is not cached', () => {
    const runCache = new EncodedRunCache()
    addTwice(runCache, { isPast: true })
    assert.equal(runCache.bytes, 0)
  })

  test('one timer evicts idle entries, and runs only while there are entries', (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    let nowMs = 0
    const runCache = new EncodedRunCache({ clock: { now: () => nowMs } })
    const pass = (ms: number): void => {
      nowMs += ms
      t.mock.timers.tick(ms)
    }
    const [used, unused] = [{ isPast: false }, { isPast: false }]
    addTwice(runCache, used)
    addTwice(runCache, unused)
    pass(60_000)
    runCache.find(encoder, used)
    pass(60_000)
    assert.equal(runCache.bytes, 10)
    assert.deepEqual(runCache.find(encoder, used), entries)
    pass(120_000)
    assert.equal(runCache.bytes, 0)
    runCache.add(encoder, used, entries)
    assert.equal(runCache.bytes, 10, 'it was added before')
    pass(120_000)
    assert.equal(runCache.bytes, 0)
  })
})
