/** A flood of requests for the files of the page leaves room for probes and users. */
import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { connect } from 'node:http2'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { builtScript } from '../../support/built-page.ts'
import { eventually } from '../../support/eventually.ts'
import { HealthProbe, LimitedServer } from '../../support/limited-server.ts'

const SLOTS = 40
const CONNECTIONS = 8
const STREAMS = 100
const EVENTS = '/apis/events.k8s.io/v1/namespaces/default/events'
const FLOOD_MS = 6_000
const MIB = 1024 * 1024

/** Requests the script on many streams and reads none of it: no window for any byte. */
function flooding(port: number): ClientHttp2Session {
  const session = connect(`https://127.0.0.1:${port}`, {
    rejectUnauthorized: false,
    settings: { initialWindowSize: 0 },
  })
  session.on('error', () => {})
  for (let stream = 0; stream < STREAMS; stream++) {
    session.request({ ':path': builtScript().path }).on('error', () => {})
  }
  return session
}

describe('a flood of requests for the page', { timeout: 90_000 }, () => {
  test('takes no slots from probes and users, and ends with its clients', async (t) => {
    await using limited = await LimitedServer.start(
      ['ada'],
      [`--max-requests-inflight=${SLOTS}`, '--anonymous-auth=false'],
    )
    const { server } = limited
    const headers = { authorization: 'Bearer ada' }
    const before = await limited.memoryBytes()
    const probe = new HealthProbe(server)
    const sessions = Array.from({ length: CONNECTIONS }, () => flooding(server.port))
    const latencies: number[] = []
    const endsAt = performance.now() + FLOOD_MS
    while (performance.now() < endsAt) {
      const askedAt = performance.now()
      const { status } = await server.ask(EVENTS, { headers, protocol: 'h2' })
      latencies.push(performance.now() - askedAt)
      assert.equal(status, 200)
      await sleep(20)
    }
    const { failures, count } = await probe.stop()
    const grown = Math.round(((await limited.memoryBytes()) - before) / MIB)
    const slowest = Math.round(Math.max(...latencies))
    t.diagnostic(`${latencies.length} lists, the slowest in ${slowest} ms; ${grown} MiB more`)
    assert.equal(failures, 0)
    assert.ok(count > 20)
    assert.ok(slowest < 5_000, `a list took ${slowest} ms`)
    assert.ok(grown < 100, `${grown} MiB more`)
    for (const session of sessions) session.destroy()
    const isServed = async (): Promise<boolean> => (await server.ask('/ui/')).status === 200
    await eventually('the page is served again', isServed, 15_000)
  })
})
