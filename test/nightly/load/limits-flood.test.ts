import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError } from '../../../src/api/status.ts'
import { statusResponse } from '../../../src/endpoints/response/respond.ts'
import { RequestLimits } from '../../../src/gate/limits/limits.ts'
import { readTarget } from '../../../src/gate/target.ts'
import type { Handler } from '../../../src/http/exchange.ts'
import { eventually } from '../../support/eventually.ts'
import { startListener, text } from '../../support/listener.ts'
import { FRAME, frame, postFrame, RawHttp2 } from '../../support/raw-http2.ts'
import { runLoads } from '../../support/request-load.ts'

const noisy = { name: 'noisy', groups: [] }
/** Together more than half of the queue, which is the share of one user. */
const CONNECTIONS = 30
const STREAMS = 3000
const WORK_MS = 2
const FLOOD_MS = 8000

/** Keeps the CPU busy for each request that it admits. */
function working(limits: RequestLimits): Handler {
  return async (request) => {
    try {
      const entry = await limits.enter({
        user: noisy,
        target: readTarget(request, 'local'),
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

test('limits: a crowd that exceeds the queue gets 429 no faster than others are served', async () => {
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
  const summary = JSON.stringify({ result, heldMax })
  assert.ok(heldMax > 100, summary)
  assert.ok((result?.ok ?? 0) > 20, summary)
  assert.ok((result?.refused ?? 0) < (result?.ok ?? 0), summary)
  assert.equal(result?.refusedWithoutDate, 0, summary)
  assert.equal(result?.failed, 0, summary)
  // The load has disconnected, and no request of it is left.
  const left = (): number =>
    limits.inFlight('readOnly') + limits.inQueue('readOnly') + limits.turningAway
  await eventually('all are forgotten', () => left() === 0, 20_000)
  assert.deepEqual(target.bugs, [])
})

test('limits: unread bodies are held only while there is headroom', async () => {
  const BODIES = 3000
  const limits = new RequestLimits({
    requestsInFlight: 1,
    mutatingRequestsInFlight: 1,
    watches: 1,
    watchesPerUser: 1,
  })
  let refused = 0
  await using target = await startListener(async (request) => {
    try {
      const entry = await limits.enter({
        user: noisy,
        target: readTarget(request, 'local'),
        request,
      })
      await new Promise((resolve) => request.signal.addEventListener('abort', resolve))
      entry[Symbol.dispose]()
    } catch {
      refused += 1
    }
    return text(429, 'no')
  })
  const before = process.memoryUsage().arrayBuffers
  const clients = await Promise.all(
    Array.from({ length: BODIES / 100 }, () => RawHttp2.open(target.port)),
  )
  const most = Buffer.alloc(16 * 1024)
  const body = (stream: number): Buffer[] => [0, 1, 2].map(() => frame(FRAME.data, 0, stream, most))
  for (const client of clients) {
    await client.settled()
    for (let n = 0; n < 100; n++) {
      const stream = 2 * n + 1
      client.send(postFrame(stream, '/apis/events.k8s.io/v1/namespaces/a/events'), ...body(stream))
    }
  }
  const held = (): number => limits.inQueue('mutating') + limits.turningAway
  await eventually('all have come', () => held() + refused > BODIES - 10, 20_000)
  const heldMiB = (process.memoryUsage().arrayBuffers - before) / 1024 / 1024
  assert.ok(held() > 500 && held() <= 1024, `${held()} are held, ${refused} refused`)
  assert.ok(heldMiB < 120, `${heldMiB} MiB`)
  for (const client of clients) client.close()
  await eventually('all are forgotten', () => held() === 0, 20_000)
})
