import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GET, LIST, LimitedServer, SEARCH, WRITE } from '../../support/limited-server.ts'
import { type LoadOrder, type LoadResult, runLoads } from '../../support/request-load.ts'

const POLITE = ['ada', 'bob', 'eve', 'joe', 'kim']
const NOISY = 'noisy'
const POLITE_PER_SECOND = 8
const NOISY_STREAMS = 500
/** So many that a scan of all of them takes a while. */
const EVENTS = 1500
const MS = 5000
const RATE_KEPT_MIN = 0.9

test('limits: one noisy client takes at most a tenth of the rate of others', async () => {
  await using limited = await LimitedServer.start([...POLITE, NOISY])
  const { port, ca } = limited.server
  const order = (id: string): Omit<LoadOrder, 'connections'> => ({
    port,
    ca,
    id,
    tokens: [id],
    ms: MS,
    deadlineMs: 3000,
    requests: [WRITE, LIST, WRITE, GET],
  })
  const polite = POLITE.map((user) => ({
    ...order(user),
    connections: 1,
    perSecond: POLITE_PER_SECOND,
    countsLate: true,
  }))
  const noisy = {
    ...order(NOISY),
    connections: 5,
    concurrency: NOISY_STREAMS,
    requests: [SEARCH, WRITE],
  }
  await runLoads([{ ...noisy, concurrency: 100, requests: [WRITE], names: EVENTS, ms: 4000 }])

  const alone = await runLoads(polite)
  const [noise, ...beside] = await runLoads([noisy, ...polite])
  const ratios = beside.map((result, at) => rate(result) / rate(alone[at]))
  const summary = JSON.stringify({ alone, beside, noise })
  assert.ok(
    ratios.every((ratio) => ratio >= RATE_KEPT_MIN),
    `${ratios} of ${summary}`,
  )
  assert.ok(
    beside.every(({ refused }) => refused === 0),
    summary,
  )
  assert.ok((noise?.ok ?? 0) > 0, summary)
  assert.ok((noise?.refused ?? 0) > 0, summary)
  assert.equal(noise?.refusedWithoutDate, 0, summary)
})

function rate(result: LoadResult | undefined): number {
  return result === undefined ? 0 : result.ok / result.seconds
}
