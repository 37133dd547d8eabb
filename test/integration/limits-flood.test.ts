import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError } from '../../src/api/status.ts'
import { statusResponse } from '../../src/endpoints/respond.ts'
import { attributesOf } from '../../src/gate/attributes.ts'
import { RequestLimits } from '../../src/gate/limits.ts'
import type { Handler } from '../../src/http/exchange.ts'
import { eventually } from '../support/eventually.ts'
import { startListener, text } from '../support/listener.ts'
import { runLoads } from '../support/request-load.ts'

const noisy = { name: 'noisy', groups: [] }
/** More than half of what may wait, which is what one user gets. */
const CONNECTIONS = 30
const STREAMS = 3000
const WORK_MS = 2
const FLOOD_MS = 8000

/** Keeps the processor busy for each request that it lets in. */
function working(limits: RequestLimits): Handler {
  return async (request) => {
    try {
      const entry = await limits.enter({
        user: noisy,
        attributes: attributesOf(request),
        request,
      })
      for (const until = performance.now() + WORK_MS; performance.now() < until; );
      return { ...text(200, 'done'), onEnd: () => entry[Symbol.dispose]() }
    } catch (error) {
      if (error instanceof StatusError) return statusResponse(request, error)
      return text(500, String(error))
    }
  }
}

test('limits: a crowd that cannot all wait is told no no faster than others are served', async () => {
  const limits = new RequestLimits({
    requestsInFlight: 40,
    mutatingRequestsInFlight: 40,
    watches: 1,
    watchesPerUser: 1,
  })
  await using target = await startListener(working(limits))
  let heldMax = 0
  const look = setInterval(() => {
    heldMax = Math.max(heldMax, limits.turningAway)
  }, 50)
  const [result] = await runLoads([
    {
      port: target.port,
      ca: target.ca,
      id: 'flood',
      tokens: ['none'],
      connections: CONNECTIONS,
      concurrency: STREAMS,
      ms: FLOOD_MS,
      deadlineMs: FLOOD_MS,
      requests: [{ method: 'GET', path: '/apis/events.k8s.io/v1/namespaces/a/events/b' }],
    },
  ])
  clearInterval(look)
  const told = JSON.stringify({ result, heldMax })
  assert.ok(heldMax > 100, told)
  assert.ok((result?.ok ?? 0) > 20, told)
  assert.ok((result?.refused ?? 0) < (result?.ok ?? 0), told)
  assert.equal(result?.refusedWithoutDate, 0, told)
  assert.equal(result?.failed, 0, told)
  // The load has hung up: nobody is left behind.
  const left = (): number =>
    limits.inFlight('readOnly') + limits.inQueue('readOnly') + limits.turningAway
  await eventually('all are forgotten', () => left() === 0, 20_000)
  assert.deepEqual(target.bugs, [])
})
