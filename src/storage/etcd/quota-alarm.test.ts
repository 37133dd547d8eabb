import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, mock, test } from 'node:test'
import { type LogFields, silentLog } from '../../lib/log/log.ts'
import { QuotaAlarm, type SpaceReport, spaceReport } from './quota-alarm.ts'

async function settle(): Promise<void> {
  for (let tick = 0; tick < 3; tick++) await new Promise((resolve) => setImmediate(resolve))
}

/** A quota alarm that reads its reports from `etcd`, and a fake clock. */
function start() {
  const etcd = {
    isFull: false as boolean | undefined,
    bytesInUse: 0,
    quotaBytes: undefined as SpaceReport['quotaBytes'],
    reports: 0,
  }
  const time = { now: 0 }
  const errors: LogFields[] = []
  const warnings: LogFields[] = []
  const infos: LogFields[] = []
  const hold = { gate: Promise.resolve() }
  const quotaAlarm = new QuotaAlarm({
    readReport: async () => {
      etcd.reports++
      const { isFull: hasAlarm, bytesInUse, quotaBytes } = etcd
      await hold.gate
      return hasAlarm === undefined ? undefined : { hasAlarm, bytesInUse, quotaBytes }
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
  quotaAlarm.watch(ending.signal)
  const advance = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      time.now += 1_000
      mock.timers.tick(1_000)
      await settle()
    }
  }
  return { quotaAlarm, etcd, hold, errors, warnings, infos, advance, end: () => ending.abort() }
}

describe('quota alarm', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setInterval'] }))
  afterEach(() => mock.timers.reset())

  test('an alarm is detected without a write, and its end within a second', async () => {
    const { quotaAlarm, etcd, errors, infos, advance, end } = start()
    await advance(10)
    assert.deepEqual(
      [quotaAlarm.isFull, quotaAlarm.refusal(), etcd.reports],
      [false, undefined, 10],
    )
    etcd.isFull = true
    await advance(1)
    assert.equal(quotaAlarm.isFull, true)
    const { kind, reason, retryAfterMs } = quotaAlarm.refusal() ?? assert.fail()
    assert.deepEqual(
      { kind, reason, retryAfterMs },
      {
        kind: 'unavailable',
        reason: 'etcd is full (its space quota is exceeded) and accepts only deletes',
        retryAfterMs: 1_000,
      },
    )
    await advance(20)
    assert.equal(errors.length, 1)
    assert.match(String(errors[0]?.['remedy']), /compact.*defrag.*disarm/)
    etcd.isFull = false
    await advance(1)
    assert.deepEqual([quotaAlarm.isFull, quotaAlarm.refusal()], [false, undefined])
    assert.deepEqual(infos, [{ msg: 'etcd accepts writes again', seconds: 21 }])
    end()
    const { reports } = etcd
    await advance(10)
    assert.equal(etcd.reports, reports, 'polling has ended')
  })

  test('without a report the state does not change', async () => {
    const { quotaAlarm, etcd, advance, end } = start()
    etcd.isFull = undefined
    await advance(10)
    assert.equal(quotaAlarm.isFull, false)
    quotaAlarm.onFull()
    await advance(10)
    assert.equal(quotaAlarm.isFull, true)
    end()
  })

  test('a report requested before a refused put is ignored', async () => {
    const { quotaAlarm, hold, advance, end } = start()
    const { promise, resolve } = Promise.withResolvers<void>()
    hold.gate = promise
    await advance(1)
    quotaAlarm.onFull()
    resolve()
    await settle()
    assert.equal(quotaAlarm.isFull, true)
    await advance(1)
    assert.equal(quotaAlarm.isFull, false)
    end()
  })

  test('an alarm that is disarmed without freeing space is logged once a minute', async () => {
    const { quotaAlarm, errors, infos, advance, end } = start()
    for (let round = 0; round < 100; round++) {
      quotaAlarm.onFull()
      await advance(1)
      assert.equal(quotaAlarm.isFull, false)
    }
    assert.deepEqual([errors.length, infos.length], [2, 2])
    end()
  })

  test('write rates are reduced from half of the quota, and zero at four fifths', async () => {
    const { quotaAlarm, etcd, advance, end } = start()
    etcd.bytesInUse = 900
    await advance(1)
    assert.deepEqual([quotaAlarm.usedFraction, quotaAlarm.writeFraction], [undefined, 1])
    etcd.quotaBytes = 1000
    const fractions: number[] = []
    for (const bytes of [0, 500, 650, 800, 1200]) {
      etcd.bytesInUse = bytes
      await advance(1)
      fractions.push(Math.round(quotaAlarm.writeFraction * 100) / 100)
    }
    assert.deepEqual(fractions, [1, 1, 0.5, 0, 0])
    quotaAlarm.onFull()
    assert.equal(quotaAlarm.writeFraction, 1, 'a full etcd is handled by refusing puts')
    etcd.bytesInUse = 400
    await advance(1)
    quotaAlarm.onWritten(250)
    assert.equal(quotaAlarm.usedFraction, 0.65, 'bytes written since the report count')
    etcd.bytesInUse = 650
    await advance(1)
    assert.equal(quotaAlarm.usedFraction, 0.65, 'written bytes count once')
    end()
  })

  test('reduced, rejected and normal write rates are logged', async () => {
    const { etcd, errors, warnings, infos, advance, end } = start()
    etcd.quotaBytes = 1000
    for (const bytesInUse of [400, 600, 900]) {
      etcd.bytesInUse = bytesInUse
      await advance(2)
    }
    const reduced = { msg: 'etcd is filling up: write rate limits are reduced', usedPercent: 60 }
    const rejected = {
      msg: 'etcd is nearly full: writes of events are rejected until space is freed',
      usedPercent: 90,
    }
    assert.deepEqual([warnings, errors, infos], [[reduced], [rejected], []])
    // Changes back and forth within a minute are logged once.
    for (const bytesInUse of [790, 810, 790, 810]) {
      etcd.bytesInUse = bytesInUse
      await advance(2)
    }
    assert.deepEqual([warnings.length, errors.length], [1, 1])
    etcd.bytesInUse = 100
    await advance(61)
    assert.deepEqual(infos, [
      {
        msg: 'etcd has free space again: write rate limits are back to normal',
        usedPercent: 10,
      },
    ])
    end()
  })

  test('a quota that is unknown for a moment still applies, and a removed one does not', async () => {
    const { quotaAlarm, etcd, errors, infos, advance, end } = start()
    etcd.quotaBytes = 1000
    etcd.bytesInUse = 900
    await advance(1)
    etcd.quotaBytes = undefined
    await advance(1)
    assert.deepEqual([quotaAlarm.usedFraction, quotaAlarm.writeFraction], [0.9, 0])
    etcd.quotaBytes = 'none'
    await advance(1)
    assert.deepEqual([quotaAlarm.usedFraction, quotaAlarm.writeFraction], [undefined, 1])
    assert.equal(quotaAlarm.space, undefined)
    await advance(60)
    assert.equal(errors.length, 1)
    const msg = 'etcd has free space again: write rate limits are back to normal'
    assert.deepEqual(infos, [{ msg }])
    end()
  })
})

describe('the space that members report', () => {
  const member = { errors: [], dbBytesInUse: 1, quotaBytes: 10 }

  test('is that of the fullest member, with the smallest quota that is known', () => {
    const full = {
      ...member,
      errors: ['memberID:7 alarm:NOSPACE'],
      dbBytesInUse: 5,
      quotaBytes: 20,
    }
    const none = { ...member, quotaBytes: -1 }
    const report = { hasAlarm: true, bytesInUse: 5, quotaBytes: 10 }
    assert.deepEqual(spaceReport([member, full, none]), report)
    const unknown = { ...member, quotaBytes: 0 }
    assert.equal(spaceReport([none, none])?.quotaBytes, 'none')
    assert.equal(spaceReport([none, unknown])?.quotaBytes, undefined)
    assert.equal(spaceReport([]), undefined)
  })
})
