import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Request, Response } from '../../http/exchange.ts'
import { aLane } from '../../lib/run-queue.fixture.ts'
import { HandlerStillRuns, inTime } from './timeout.ts'

const response: Response = { status: 200, headers: {}, body: 'x' }
const never = (): Promise<Response> => new Promise(() => {})

function request(query: string, method = 'GET'): Request {
  const { signal } = new AbortController()
  return { method, query: new URLSearchParams(query), signal } as Request
}

describe('inTime', () => {
  test('an endpoint within the timeout responds', async () => {
    for (const query of ['', 'timeout=', 'timeout=0', 'timeout=-5s', 'timeout=1h']) {
      assert.equal(await inTime(async () => response)(request(query)), response, query)
    }
  })

  test('a timeout beyond the longest delay of a timer does not fire at once', async () => {
    const slow = async (): Promise<Response> => {
      await new Promise((resolve) => setImmediate(resolve))
      return response
    }
    assert.equal(await inTime(slow)(request('timeout=2562047h')), response)
  })

  test('the endpoint runs in the lane of its user', async () => {
    const lane = aLane()
    const handled = inTime(async (limited) => {
      assert.equal(limited.lane, lane)
      return response
    })
    await handled({ ...request('timeout=1m'), lane })
  })

  test('an invalid timeout is refused before the endpoint is called', () => {
    const refuse = () =>
      inTime(() => assert.fail('the endpoint was called'))(request('timeout=soon'))
    assert.throws(refuse, { reason: 'BadRequest' })
  })

  test('an error within the timeout is passed on', async () => {
    const error = new Error('no')
    const failing = inTime(() => Promise.reject(error))
    await assert.rejects(failing(request('timeout=1m')), error)
  })

  test('sends Retry-After for a late read, but not for a late write', async () => {
    const late = (method: string): Promise<unknown> =>
      inTime(never)(request('timeout=1ms', method)).catch((error: unknown) => error)
    for (const [method, seconds] of [
      ['GET', 1],
      ['POST', undefined],
      ['DELETE', undefined],
    ] as const) {
      const error = await late(method)
      assert.ok(error instanceof HandlerStillRuns)
      assert.equal(error.status.code, 504)
      assert.equal(error.status.details?.retryAfterSeconds, seconds, method)
    }
  })

  test('an error after the timeout is ignored', async () => {
    const failing = Promise.withResolvers<Response>()
    const late = inTime(() => failing.promise)(request('timeout=1ms'))
    await assert.rejects(late, HandlerStillRuns)
    failing.reject(new Error('too late'))
    await new Promise((resolve) => setImmediate(resolve))
  })

  test('a handler that is late is cancelled, and its end can be awaited', async () => {
    const responding = Promise.withResolvers<Response>()
    let signal: AbortSignal | undefined
    const endpoint = inTime((received) => {
      signal = received.signal
      return responding.promise
    })
    const error = await endpoint(request('timeout=1ms')).catch((late: unknown) => late)
    assert.ok(signal?.aborted)
    assert.ok(error instanceof HandlerStillRuns)
    const work = error.ended
    let isOver = false
    void work.then(() => {
      isOver = true
    })
    await new Promise((resolve) => setImmediate(resolve))
    assert.ok(!isOver)
    let isAbandoned = false
    const body: AsyncIterable<string> = {
      [Symbol.asyncIterator]: () => ({
        next: () => assert.fail('the body was read'),
        return: async () => {
          isAbandoned = true
          return { done: true, value: undefined }
        },
      }),
    }
    responding.resolve({ ...response, body })
    await work
    assert.ok(isAbandoned)
  })

  test('after a response within the timeout, only the request aborts the signal', async () => {
    const gone = new AbortController()
    let signal: AbortSignal | undefined
    const endpoint = inTime(async (received) => {
      signal = received.signal
      return response
    })
    await endpoint({ ...request('timeout=1h'), signal: gone.signal })
    assert.equal(signal?.aborted, false)
    gone.abort()
    assert.equal(signal?.aborted, true)
  })
})

test('passes on the memory of the request', async () => {
  const memory = {} as NonNullable<Request['memory']>
  let passed: unknown
  const endpoint = inTime(async (sent) => {
    passed = sent.memory
    return { status: 200, headers: {}, body: '' }
  })
  await endpoint({ ...request('timeout=1h'), memory })
  assert.equal(passed, memory)
})
