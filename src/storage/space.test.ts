import assert from 'node:assert/strict'
import { afterEach, beforeEach, mock, test } from 'node:test'
import { type LogFields, silentLog } from '../lib/log.ts'
import { Space } from './space.ts'

beforeEach(() => mock.timers.enable({ apis: ['setInterval'] }))
afterEach(() => mock.timers.reset())

async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** A space whose questions are answered with `etcd.isFull`, and a clock beside it. */
function start() {
  const etcd = { isFull: false as boolean | undefined, bytesInUse: 0, questions: 0 }
  const time = { now: 0 }
  const errors: LogFields[] = []
  const warnings: LogFields[] = []
  const infos: LogFields[] = []
  const hold = { gate: Promise.resolve() }
  const space = new Space({
    ask: async () => {
      etcd.questions++
      const { isFull: hasAlarm, bytesInUse } = etcd
      await hold.gate
      return hasAlarm === undefined ? undefined : { hasAlarm, bytesInUse }
    },
    log: {
      ...silentLog,
      error: (msg, fields) => errors.push({ msg, ...fields }),
      warn: (msg, fields) => warnings.push({ msg, ...fields }),
      info: (msg, fields) => infos.push({ msg, ...fields }),
    },
    clock: { now: () => time.now },
  })
  const ending = new AbortController()
  space.watch(ending.signal)
  const advance = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      time.now += 1_000
      mock.timers.tick(1_000)
      await settle()
    }
  }
  return { space, etcd, hold, errors, warnings, infos, advance, end: () => ending.abort() }
}

test('space: an alarm is noticed without a write, and its end within a second', async () => {
  const { space, etcd, errors, infos, advance, end } = start()
  await advance(10)
  assert.deepEqual([space.isFull, space.refusal(), etcd.questions], [false, undefined, 10])
  etcd.isFull = true
  await advance(1)
  assert.equal(space.isFull, true)
  const { kind, reason, retryAfterMs } = space.refusal() ?? assert.fail()
  assert.deepEqual(
    { kind, reason, retryAfterMs },
    {
      kind: 'unavailable',
      reason: 'etcd is full (its space quota is exceeded) and takes deletes only',
      retryAfterMs: 1_000,
    },
  )
  await advance(20)
  assert.equal(errors.length, 1)
  assert.match(String(errors[0]?.['remedy']), /compact.*defrag.*disarm/)
  etcd.isFull = false
  await advance(1)
  assert.deepEqual([space.isFull, space.refusal()], [false, undefined])
  assert.deepEqual(infos, [{ msg: 'etcd takes writes again', seconds: 21 }])
  end()
  const { questions } = etcd
  await advance(10)
  assert.equal(etcd.questions, questions, 'it looks no more')
})

test('space: where nobody can say it stays as it is', async () => {
  const { space, etcd, advance, end } = start()
  etcd.isFull = undefined
  await advance(10)
  assert.equal(space.isFull, false)
  space.onFull()
  await advance(10)
  assert.equal(space.isFull, true)
  end()
})

test('space: an answer from before a refusal does not count', async () => {
  const { space, hold, advance, end } = start()
  const { promise, resolve } = Promise.withResolvers<void>()
  hold.gate = promise
  await advance(1)
  space.onFull()
  resolve()
  await settle()
  assert.equal(space.isFull, true)
  await advance(1)
  assert.equal(space.isFull, false)
  end()
})

test('space: an alarm that is disarmed without making room is told of once a minute', async () => {
  const { space, errors, infos, advance, end } = start()
  for (let round = 0; round < 100; round++) {
    space.onFull()
    await advance(1)
    assert.equal(space.isFull, false)
  }
  assert.deepEqual([errors.length, infos.length], [2, 2])
  end()
})

test('space: writers get less from half of the quota on, and nothing at four fifths', async () => {
  const { space, etcd, advance, end } = start()
  etcd.bytesInUse = 900
  await advance(1)
  assert.deepEqual([space.usedPart, space.room], [undefined, 1], 'the quota is not known')
  space.quotaBytes = 1000
  const rooms: number[] = []
  for (const bytes of [0, 500, 650, 800, 1200]) {
    etcd.bytesInUse = bytes
    await advance(1)
    rooms.push(Math.round(space.room * 100) / 100)
  }
  assert.deepEqual(rooms, [1, 1, 0.5, 0, 0])
  space.onFull()
  assert.equal(space.room, 1, 'a full etcd is told by the refusal of puts')
  etcd.bytesInUse = 400
  await advance(1)
  space.onWritten(250)
  assert.equal(space.usedPart, 0.65, 'what was written since counts')
  etcd.bytesInUse = 650
  await advance(1)
  assert.equal(space.usedPart, 0.65, 'and counts once')
  end()
})

test('space: the log tells when writers are slowed down, stopped, and free again', async () => {
  const { space, etcd, errors, warnings, infos, advance, end } = start()
  space.quotaBytes = 1000
  for (const bytesInUse of [400, 600, 900]) {
    etcd.bytesInUse = bytesInUse
    await advance(2)
  }
  const slowed = { msg: 'etcd is filling up: writers may write less', usedPercent: 60 }
  const stopped = {
    msg: 'etcd is nearly full: no event is written until there is room',
    usedPercent: 90,
  }
  assert.deepEqual([warnings, errors, infos], [[slowed], [stopped], []])
  // To and fro within a minute is one line.
  for (const bytesInUse of [790, 810, 790, 810]) {
    etcd.bytesInUse = bytesInUse
    await advance(2)
  }
  assert.deepEqual([warnings.length, errors.length], [1, 1])
  etcd.bytesInUse = 100
  await advance(61)
  assert.deepEqual(infos, [
    { msg: 'etcd has room again: writers may write as before', usedPercent: 10 },
  ])
  end()
})
