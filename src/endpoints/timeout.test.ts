import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { StatusError } from '../api/status.ts'
import type { Caller } from '../gate/gate.ts'
import type { Request, Response } from '../http/exchange.ts'
import type { EventPath } from './event-routes.ts'
import { inTime, workBehind } from './timeout.ts'

const path: EventPath = { kind: 'everything', isWatchPath: false }
const answer: Response = { status: 200, headers: {}, body: 'x' }
const never = (): Promise<Response> => new Promise(() => {})

function request(query: string, method = 'GET'): Request {
  const { signal } = new AbortController()
  return { method, query: new URLSearchParams(query), signal } as Request
}

const caller: Caller = { user: { name: 'ada', groups: [] }, authorize: async () => {} }

describe('inTime', () => {
  test('an endpoint that is quick enough answers', async () => {
    for (const query of ['', 'timeout=', 'timeout=0', 'timeout=-5s', 'timeout=1h']) {
      assert.equal(await inTime(async () => answer)(request(query), path, caller), answer, query)
    }
  })

  test('a longer time than timers know is not taken for none', async () => {
    const slow = async (): Promise<Response> => {
      await new Promise((resolve) => setImmediate(resolve))
      return answer
    }
    assert.equal(await inTime(slow)(request('timeout=2562047h'), path, caller), answer)
  })

  test('what is no duration is refused before anything is done', async () => {
    const refused = inTime(() => assert.fail('it was asked'))(request('timeout=soon'), path, caller)
    await assert.rejects(refused, { reason: 'BadRequest' })
  })

  test('a failure in time comes out as it is', async () => {
    const error = new Error('no')
    const failing = inTime(() => Promise.reject(error))
    await assert.rejects(failing(request('timeout=1m'), path, caller), error)
  })

  test('a late read is told to come back, a late write is not', async () => {
    const late = (method: string): Promise<unknown> =>
      inTime(never)(request('timeout=1ms', method), path, caller).catch((error: unknown) => error)
    for (const [method, seconds] of [
      ['GET', 1],
      ['POST', undefined],
      ['DELETE', undefined],
    ] as const) {
      const error = await late(method)
      assert.ok(error instanceof StatusError)
      assert.equal(error.code, 504)
      assert.equal(error.details?.retryAfterSeconds, seconds, method)
    }
  })

  test('a failure that comes too late troubles nobody', async () => {
    const failing = Promise.withResolvers<Response>()
    const late = inTime(() => failing.promise)(request('timeout=1ms'), path, caller)
    await assert.rejects(late, { reason: 'Timeout' })
    failing.reject(new Error('too late'))
    await new Promise((resolve) => setImmediate(resolve))
  })

  test('what goes on behind a late answer can be waited for, and its reads are stopped', async () => {
    const answering = Promise.withResolvers<Response>()
    let signal: AbortSignal | undefined
    const endpoint = inTime((asked) => {
      signal = asked.signal
      return answering.promise
    })
    const error = await endpoint(request('timeout=1ms'), path, caller).catch(
      (late: unknown) => late,
    )
    assert.ok(signal?.aborted)
    const work = workBehind(error)
    assert.ok(work !== undefined)
    let isOver = false
    void work.then(() => {
      isOver = true
    })
    await new Promise((resolve) => setImmediate(resolve))
    assert.ok(!isOver)
    let isAbandoned = false
    const body: AsyncIterable<string> = {
      [Symbol.asyncIterator]: () => ({
        next: () => assert.fail('it is read'),
        return: async () => {
          isAbandoned = true
          return { done: true, value: undefined }
        },
      }),
    }
    answering.resolve({ ...answer, body })
    await work
    assert.ok(isAbandoned)
    assert.equal(workBehind(new Error('in time')), undefined)
  })

  test('an answer in time leaves its signal to the request', async () => {
    const gone = new AbortController()
    let signal: AbortSignal | undefined
    const endpoint = inTime(async (asked) => {
      signal = asked.signal
      return answer
    })
    await endpoint({ ...request('timeout=1h'), signal: gone.signal }, path, caller)
    assert.equal(signal?.aborted, false)
    gone.abort()
    assert.equal(signal?.aborted, true)
  })
})
