import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { datastoreCheck, datastoreClientCheck, logCheck } from './checks.ts'
import { runCheck } from './probe.ts'

const signal = new AbortController().signal

describe('log', () => {
  test('fails once nothing has been flushed for two minutes', async () => {
    let now = 0
    const check = logCheck({ lastFlushedAt: () => 1000 }, { now: () => now })
    now = 120_999
    assert.equal((await runCheck(check, signal)).result, 'ok')
    now = 121_000
    await assert.rejects(check.run(signal), { message: 'logging blocked' })
  })
})

describe('datastore of livez', () => {
  test('fails when a call is long past its deadline, and says by how much', async () => {
    let overdueMs = 9_999
    const check = datastoreClientCheck(() => overdueMs)
    await check.run(signal)
    overdueMs = 12_400
    await assert.rejects(check.run(signal), {
      message: 'a datastore call is 12s past its deadline',
    })
  })
})

describe('datastore of readyz', () => {
  test('asks at most once a second and shares the answer', async () => {
    let now = 0
    let asked = 0
    const check = datastoreCheck(
      async () => {
        asked += 1
        if (asked === 2) throw new Error('gone')
      },
      { now: () => now },
    )
    await Promise.all([check.run(signal), check.run(signal)])
    now = 999
    await check.run(signal)
    assert.equal(asked, 1)
    now = 1000
    await assert.rejects(check.run(signal), /gone/)
    now = 1999
    await assert.rejects(check.run(signal), /gone/)
    now = 2000
    await check.run(signal)
    assert.equal(asked, 3)
  })

  test('those who come while it is being asked wait for that answer', async () => {
    let now = 0
    let asked = 0
    const answer = Promise.withResolvers<void>()
    const check = datastoreCheck(
      () => {
        asked += 1
        return answer.promise
      },
      { now: () => now },
    )
    const first = check.run(signal)
    now = 1900
    const second = check.run(signal)
    answer.reject(new Error('too late'))
    await assert.rejects(first, /too late/)
    await assert.rejects(second, /too late/)
    assert.equal(asked, 1)
  })
})
