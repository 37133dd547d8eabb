import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { StorageError } from '../storage/errors.ts'
import { type Version, versionOfState } from '../storage/resource-version.ts'
import { Timeline } from './timeline.ts'

/** A process whose clock shows `time.now`. */
function makeTimeline() {
  const time = { now: 0 }
  const timeline = new Timeline({ now: () => time.now })
  const note = (revision: number, at = time.now) =>
    timeline.note(versionOfState(revision), { requestedAt: at - 1, respondedAt: at + 1 })
  return { time, timeline, note }
}

/** An event that was written in this revision. */
const written = (revision: number) => ({ version: (revision * 1000) as Version })

test('timeline: dates an event to now when there are no notes', () => {
  const { time, timeline } = makeTimeline()
  time.now = 10_000
  assert.equal(timeline.writtenAt(written(5)), 10_000)
  assert.equal(timeline.versionAt(10_000), undefined)
})

test('timeline: dates an event to the first note that covers it', () => {
  const { time, timeline, note } = makeTimeline()
  note(10, 1_000)
  note(20, 2_000)
  note(30, 3_000)
  time.now = 9_000
  const times = [1, 10, 15, 20, 30, 31].map((revision) => timeline.writtenAt(written(revision)))
  assert.deepEqual(times, [1_001, 1_001, 2_001, 2_001, 3_001, 9_000])
})

test('timeline: ignores a response to a read from before a reset', async () => {
  const { time, timeline, note } = makeTimeline()
  note(10, 1_000)
  const response = Promise.withResolvers<Version>()
  const ending = new AbortController()
  const storage = { currentVersion: () => response.promise }
  const running = timeline.run(storage, { everyMs: () => 1, signal: ending.signal })
  timeline.forget()
  ending.abort()
  response.resolve(versionOfState(20))
  await running
  time.now = 9_000
  assert.equal(timeline.writtenAt(written(5)), 9_000)
})

test('timeline: proves a version that stays current from its first note on', () => {
  const { time, timeline, note } = makeTimeline()
  for (let at = 1_000; at <= 100_000; at += 1_000) note(10, at)
  time.now = 200_000
  assert.equal(timeline.writtenAt(written(10)), 1_001)
  assert.equal(timeline.writtenAt(written(11)), 200_000)
  assert.equal(timeline.versionAt(1_000), undefined)
  assert.equal(timeline.versionAt(1_001), versionOfState(10))
  assert.equal(timeline.versionAt(200_000), versionOfState(10))
  assert.equal(timeline.summary().length, 1)
})

test('timeline: makes events older, never younger, with notes of other replicas', () => {
  const { time, timeline, note } = makeTimeline()
  note(20, 2_000)
  note(30, 3_000)
  time.now = 9_000
  timeline.learn([
    { version: versionOfState(10), at: -60_000 },
    { version: versionOfState(15), at: -30_000 },
    // Proves less than is already known.
    { version: versionOfState(25), at: 8_000 },
    // Proves more: revision 30 existed at 2,500.
    { version: versionOfState(31), at: 2_500 },
  ])
  const times = [10, 12, 16, 25, 30, 31, 32].map((each) => timeline.writtenAt(written(each)))
  assert.deepEqual(times, [-60_000, -30_000, 2_001, 2_500, 2_500, 2_500, 9_000])
  assert.equal(timeline.versionAt(-30_000), versionOfState(15))
  assert.equal(timeline.versionAt(2_400), versionOfState(20))
  assert.equal(timeline.versionAt(2_500), versionOfState(31))
})

test('timeline: bounds the number of notes, and thinning makes no event older', () => {
  const { time, timeline, note } = makeTimeline()
  const count = 8_000
  for (let at = 1; at <= count; at++) {
    time.now = at * 1_000
    note(at * 10)
  }
  const notes = timeline.summary().length
  assert.ok(notes < 2_000, `${notes} notes`)
  const copy = new Timeline({ now: () => time.now })
  copy.learn(timeline.summary())
  for (const each of [timeline, copy]) {
    for (let at = 1; at < count; at += 7) {
      // Written halfway between two notes.
      const actual = at * 1_000 + 500
      const late = each.writtenAt(written(at * 10 + 5)) - actual
      assert.ok(late >= 0, `${late} ms too old`)
      assert.ok(late <= 1_000 + (time.now - actual) / 200, `${late} of ${time.now - actual} ms`)
    }
  }
  assert.equal(timeline.versionAt(time.now + 1), versionOfState(count * 10))
})

test('timeline: makes events of two weeks at most ten seconds younger, even with frequent notes', () => {
  const day = 24 * 3_600_000
  for (const [everyMs, days] of [
    [10_000, 20],
    [1_000, 2],
  ] as const) {
    const time = { now: 0 }
    const timeline = new Timeline({ now: () => time.now }, () => 14 * day)
    for (let at = 1; at * everyMs <= days * day; at++) {
      time.now = at * everyMs
      timeline.note(versionOfState(at * 10), { requestedAt: time.now, respondedAt: time.now })
    }
    const first = Math.max(1, Math.ceil((time.now - 14 * day) / everyMs))
    for (let at = first; at * everyMs < time.now; at += 97) {
      const late = timeline.writtenAt(written(at * 10 + 5)) - at * everyMs
      assert.ok(late >= 0 && late <= 10_000, `${late} ms after ${time.now - at * everyMs} ms`)
    }
  }
})

test('timeline: does not learn notes that prove hardly more than is known', () => {
  const { time, timeline, note } = makeTimeline()
  const hour = 3_600_000
  for (let at = 1; at <= 2 * hour; at += 10_000) note(at, at)
  time.now = 3 * hour
  const count = timeline.summary().length
  timeline.learn(
    Array.from({ length: 100 }, (_, at) => ({
      version: versionOfState(at * 10_000 + 5_000),
      at: at * 10_000 + 7_000,
    })),
  )
  assert.equal(timeline.summary().length, count)
  timeline.learn([{ version: versionOfState(3 * hour), at: 2.5 * hour }])
  assert.equal(timeline.writtenAt(written(3 * hour)), 2.5 * hour)
})

test('timeline: covers everything beyond the horizon with one note', () => {
  const time = { now: 0 }
  const timeline = new Timeline({ now: () => time.now }, () => 10_000)
  for (let at = 1; at <= 100; at++) {
    time.now = at * 1_000
    timeline.note(versionOfState(at), { requestedAt: time.now, respondedAt: time.now })
  }
  const summary = timeline.summary()
  assert.deepEqual(
    summary.map(({ at }) => at),
    [90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100].map((at) => at * 1_000),
  )
  const copy = new Timeline({ now: () => time.now })
  copy.learn(summary)
  assert.equal(copy.writtenAt(written(5)), 90_000)
})

test('timeline: deletes its notes when the store is restored to an older state', () => {
  const { time, timeline, note } = makeTimeline()
  note(100, 1_000)
  time.now = 2_000
  note(50)
  time.now = 3_000
  assert.equal(timeline.versionAt(3_000), versionOfState(50))
  assert.equal(timeline.writtenAt(written(101)), 3_000)
})

test('timeline: does not mistake an overtaken response for a restored store', () => {
  const { time, timeline } = makeTimeline()
  time.now = 1_000
  timeline.learn([{ version: versionOfState(100), at: 500 }])
  timeline.note(versionOfState(50), { requestedAt: 900, respondedAt: 1_100 })
  assert.equal(timeline.writtenAt(written(100)), 500)
})

test('timeline: reads the version periodically, also after a failure', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    const { time, timeline } = makeTimeline()
    const ending = new AbortController()
    let reads = 0
    const storage = {
      currentVersion: async () => {
        reads++
        if (reads === 2) throw new StorageError({ kind: 'timeout', message: 'no response' })
        return versionOfState(reads)
      },
    }
    const running = timeline.run(storage, { everyMs: () => 1_000, signal: ending.signal })
    for (let step = 0; step < 3; step++) {
      await new Promise((resolve) => setImmediate(resolve))
      time.now += 1_000
      mock.timers.tick(1_000)
    }
    ending.abort()
    await running
    assert.equal(reads, 3)
    assert.deepEqual(
      [0, 1_500, 2_500].map((at) => timeline.versionAt(at)),
      [versionOfState(1), versionOfState(1), versionOfState(3)],
    )
  } finally {
    mock.timers.reset()
  }
})
