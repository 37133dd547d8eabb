import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { StorageError } from '../storage/errors.ts'
import { type Version, versionOfState } from '../storage/resource-version.ts'
import { Timeline } from './timeline.ts'

const wallStart = 1_700_000_000_000

/** A process whose clock shows `now`, and whose wall clock is off by `wallError`. */
function makeTimeline(wallError = 0) {
  const time = { now: 0 }
  const skews: number[] = []
  const timeline = new Timeline({
    clock: { now: () => time.now },
    wallTime: () => wallStart + time.now + wallError,
    onSkew: (skewMs) => skews.push(skewMs),
  })
  const note = (revision: number, at = time.now) =>
    timeline.note(versionOfState(revision), { askedAt: at - 1, answeredAt: at + 1 })
  /** Written at this time of ours, by a clock that is off by so much. */
  const written = (revision: number, at: number, writerError = 0) => ({
    version: (revision * 1000) as Version,
    writtenAtMs: wallStart + at + writerError,
  })
  return { time, timeline, note, written, skews }
}

const hour = 3_600_000

test('timeline: with nothing known, the written time is believed', () => {
  const { time, timeline, written, skews } = makeTimeline()
  time.now = 10_000
  assert.equal(timeline.writtenAt(written(5, 4_000)), 4_000)
  assert.equal(timeline.writtenAt(written(5, -2 * hour)), -2 * hour)
  assert.deepEqual(skews, [])
})

test('timeline: nothing was written in the future', () => {
  const { time, timeline, written, skews } = makeTimeline()
  time.now = 10_000
  assert.equal(timeline.writtenAt(written(5, 4_000, hour)), 10_000)
  assert.deepEqual(skews, [hour - 6_000])
})

test('timeline: between two notes the written time is believed, beyond them corrected', () => {
  const { time, timeline, note, written, skews } = makeTimeline()
  note(10, 1_000)
  note(20, 2_000)
  note(30, 3_000)
  time.now = 9_000
  assert.equal(timeline.writtenAt(written(15, 1_500)), 1_500)
  assert.equal(timeline.writtenAt(written(20, 1_999)), 1_999)
  assert.deepEqual(skews, [])
  assert.equal(timeline.writtenAt(written(15, 1_500, hour)), 2_001)
  assert.equal(timeline.writtenAt(written(15, 1_500, -hour)), 999)
  assert.equal(timeline.writtenAt(written(10, 500, hour)), 1_001)
  assert.equal(timeline.writtenAt(written(10, 500, -hour)), 500 - hour)
  assert.equal(timeline.writtenAt(written(31, 5_000, -hour)), 2_999)
  assert.equal(timeline.writtenAt(written(31, 5_000, hour)), 9_000)
  assert.equal(skews.length, 5)
})

test('timeline: a wall clock of our own that is wrong, or set, does not make events older', () => {
  const { time, timeline, note, written } = makeTimeline(hour)
  note(10, 1_000)
  time.now = 1_500
  note(11)
  time.now = 2_000
  assert.equal(timeline.writtenAt(written(11, 1_400)), 999)
})

test('timeline: a version that stays the current one is one note, known from first to last', () => {
  const { time, timeline, note, written } = makeTimeline()
  for (let at = 1_000; at <= 100_000; at += 1_000) note(10, at)
  time.now = 200_000
  assert.equal(timeline.writtenAt(written(10, 50_000)), 1_001)
  assert.equal(timeline.writtenAt(written(11, 0)), 99_999)
  assert.equal(timeline.versionAt(1_000), undefined)
  assert.equal(timeline.versionAt(1_001), versionOfState(10))
  assert.equal(timeline.versionAt(200_000), versionOfState(10))
})

test('timeline: however many notes are taken, few are kept and what they say stays true', () => {
  const { time, timeline, note, written } = makeTimeline()
  const count = 5_000
  for (let at = 1; at <= count; at++) note(at * 10, at * 1_000)
  time.now = count * 1_000 + 500
  for (const wrong of [-hour, 0, hour]) {
    for (let at = 1; at < count; at += 7) {
      // Written in the middle between two notes.
      const actual = at * 1_000 + 500
      const error = Math.abs(timeline.writtenAt(written(at * 10 + 5, actual, wrong)) - actual)
      const tolerated = wrong === 0 ? 0 : 1_000 + (time.now - actual) / 30
      assert.ok(error <= tolerated, `${error} ms after ${time.now - actual} ms`)
    }
  }
  const newest = timeline.versionAt(time.now)
  assert.equal(newest, versionOfState(count * 10))
})

test('timeline: when the store is set back to an older state, what was known is forgotten', () => {
  const { time, timeline, note, written } = makeTimeline()
  note(100, 1_000)
  note(50, 2_000)
  time.now = 3_000
  assert.equal(timeline.versionAt(3_000), versionOfState(50))
  assert.equal(timeline.writtenAt(written(101, 0)), 1_999)
})

test('timeline: asks again and again, and a storage that fails is asked again', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    const { time, timeline } = makeTimeline()
    const ending = new AbortController()
    let asked = 0
    const storage = {
      currentVersion: async () => {
        asked++
        if (asked === 2) throw new StorageError({ kind: 'timeout', message: 'no answer' })
        return versionOfState(asked)
      },
    }
    const running = timeline.run(storage, { everyMs: 1_000, signal: ending.signal })
    for (let step = 0; step < 3; step++) {
      await new Promise((resolve) => setImmediate(resolve))
      time.now += 1_000
      mock.timers.tick(1_000)
    }
    ending.abort()
    await running
    assert.equal(asked, 3)
    assert.deepEqual(
      [0, 1_500, 2_500].map((at) => timeline.versionAt(at)),
      [versionOfState(1), versionOfState(1), versionOfState(3)],
    )
  } finally {
    mock.timers.reset()
  }
})
