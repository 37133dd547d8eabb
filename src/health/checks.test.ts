import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { datastoreCheck, datastoreClientCheck, logCheck } from './checks.ts'
import { runCheck } from './probe.ts'

const signal = new AbortController().signal

describe('the log check', () => {
  test('the check fails when no line has been flushed for two minutes', async () => {
    let now = 0
    const check = logCheck({ lastFlushedAt: () => 1000 }, { now: () => now })
    now = 120_999
    assert.equal((await runCheck(check, signal)).result, 'ok')
    now = 121_000
    await assert.rejects(check.run(signal), { message: 'logging blocked' })
  })
})

describe('the datastore check of livez', () => {
  test('the check fails when a call is long past its deadline, and names the delay', async () => {
    let overdueMs = 9_999
    const check = datastoreClientCheck(() => overdueMs)
    await check.run(signal)
    overdueMs = 12_400
    await assert.rejects(check.run(signal), {
      message: 'a datastore call is 12s past its deadline',
    })
  })
})

describe('the datastore check of readyz', () => {
  test('the datastore is queried at most once a second and the result is shared', async () => {
    let now = 0
    let queries = 0
    const check = datastoreCheck(
      async () => {
        queries += 1
        if (queries === 2) throw new Error('gone')
      },
      { now: () => now },
    )
    await Promise.all([check.run(signal), check.run(signal)])
    now = 999
    await check.run(signal)
    assert.equal(queries, 1)
    now = 1000
    await assert.rejects(check.run(signal), /gone/)
    now = 1999
    await assert.rejects(check.run(signal), /gone/)
    now = 2000
    await check.run(signal)
    assert.equal(queries, 3)
  })

  test('checks during a query wait for its result', async () => {
    let now = 0
    let queries = 0
    const result = Promise.withResolvers<void>()
    const check = datastoreCheck(
      () => {
        queries += 1
        return result.promise
      },
      { now: () => now },
    )
    const first = check.run(signal)
    now = 1900
    const second = check.run(signal)
    result.reject(new Error('too late'))
    await assert.rejects(first, /too late/)
    await assert.rejects(second, /too late/)
    assert.equal(queries, 1)
  })
})
