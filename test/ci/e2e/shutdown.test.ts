import assert from 'node:assert/strict'
import net from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startEtcd } from '../../support/etcd.ts'
import { steadyLoad } from '../../support/steady-load.ts'
import { Stopwatch } from '../../support/stopwatch.ts'
import { Tidings } from '../../support/tidings.ts'

const isGreen = ({ status }: { status: number }): boolean => status === 200

describe('shutdown', () => {
  test('SIGTERM with a delay of 3 s drops no request, under 200 requests/s on each protocol', async () => {
    await using etcd = await startEtcd()
    await using server = await Tidings.start([
      `--etcd-servers=${etcd.endpoints[0]}`,
      '--shutdown-delay-duration=3s',
    ])
    await server.until('/readyz', isGreen, 10_000)
    const loads = (['h1', 'h2'] as const).map((protocol) =>
      steadyLoad(server, { path: '/livez', perSecond: 200, protocol }),
    )
    await sleep(1000)

    server.kill('SIGTERM')
    const signalledAt = performance.now()
    const watch = new Stopwatch(server.process.pid)
    await server.until('/readyz', ({ status }) => status === 500, 2000)
    const redAfterMs = watch.ms
    assert.ok(redAfterMs <= 100, `readyz red after ${redAfterMs} ms`)
    const { body } = await server.ask('/readyz')
    assert.match(body, /^\[-\]shutdown failed: reason withheld\nreadyz check failed\n$/m)
    assert.equal(
      (await server.ask('/readyz/shutdown')).body,
      'internal server error: process is shutting down\n',
    )
    await sleep(2500 - (performance.now() - signalledAt))
    assert.equal((await server.ask('/livez')).status, 200, 'still serving shortly before the end')

    const end = await server.ended
    const endedAfterMs = performance.now() - signalledAt
    const reports = await Promise.all(loads.map((load) => load.stop()))
    for (const report of reports) {
      assert.deepEqual(report.failed, [])
      // A quiet machine sends 800.
      assert.ok(report.answered > 100, `${report.answered} answers`)
      assert.ok(report.refusedAtMs !== undefined, 'the listener must have closed')
      assert.ok(report.refusedAtMs >= 3900, `refused at ${report.refusedAtMs} ms`)
    }
    assert.deepEqual(end, { code: 0, signal: null })
    assert.ok(endedAfterMs < 8000, `ended after ${endedAfterMs} ms`)
    assert.deepEqual(
      server.log.filter(({ msg }) => msg === 'Shutdown event').map((line) => line['name']),
      [
        'ShutdownInitiated',
        'AfterShutdownDelayDuration',
        'NotAcceptingNewRequest',
        'InFlightRequestsDrained',
        'HTTPServerStoppedListening',
      ],
    )
  })

  for (const protocol of ['h1', 'h2'] as const) {
    test(`a request in progress is finished (${protocol})`, async () => {
      await using etcd = await startEtcd()
      await using server = await Tidings.start([`--etcd-servers=${etcd.endpoints[0]}`])
      await server.until('/readyz', isGreen, 10_000)
      etcd.member(0).pause()
      await sleep(1100) // The last result of the datastore check is too old to be shared by now.
      const slow = server.ask('/readyz/datastore', { protocol })
      await sleep(200)
      server.kill('SIGINT')
      const answer = await slow
      assert.equal(answer.status, 500)
      assert.match(answer.body, /^internal server error: error getting data from etcd/)
      assert.deepEqual(await server.ended, { code: 0, signal: null })
      etcd.member(0).resume()
    })
  }

  test('a paused etcd does not delay the end of a server that has not read anything yet', async () => {
    await using etcd = await startEtcd()
    etcd.member(0).pause()
    await using server = await Tidings.start([`--etcd-servers=${etcd.endpoints[0]}`])
    const signalledAt = performance.now()
    server.kill('SIGTERM')
    assert.deepEqual(await server.ended, { code: 0, signal: null })
    const endedAfterMs = performance.now() - signalledAt
    assert.ok(endedAfterMs < 2500, `ended after ${endedAfterMs} ms`)
  })

  test('an etcd that is paused right after the first read does not delay the end', async () => {
    await using etcd = await startEtcd()
    await using server = await Tidings.start([`--etcd-servers=${etcd.endpoints[0]}`])
    await server.logged('Loaded all events into memory, watching etcd for changes')
    etcd.member(0).pause()
    const signalledAt = performance.now()
    server.kill('SIGTERM')
    assert.deepEqual(await server.ended, { code: 0, signal: null })
    const endedAfterMs = performance.now() - signalledAt
    // The lease of a leader is revoked for at most 2 s.
    assert.ok(endedAfterMs < 4500, `ended after ${endedAfterMs} ms`)
  })

  test('a second signal ends the process at once', async () => {
    await using server = await Tidings.start([
      '--etcd-servers=http://127.0.0.1:1',
      '--shutdown-delay-duration=30s',
    ])
    server.kill('SIGTERM')
    await server.logged('Shutdown event')
    server.kill('SIGINT') // A supervisor that also signals the group: still the same shutdown.
    await sleep(700)
    assert.equal((await server.ask('/livez')).status, 200)
    const again = performance.now()
    server.kill('SIGTERM')
    assert.deepEqual(await server.ended, { code: 1, signal: null })
    assert.ok(performance.now() - again < 1000)
  })

  test('an idle or silent connection does not delay the end', async () => {
    await using server = await Tidings.start(['--etcd-servers=http://127.0.0.1:1'])
    const silent = net.connect(server.port, '127.0.0.1')
    silent.on('error', () => {})
    await sleep(200)
    const signalledAt = performance.now()
    server.kill('SIGTERM')
    assert.deepEqual(await server.ended, { code: 0, signal: null })
    assert.ok(performance.now() - signalledAt < 5000)
    silent.destroy()
  })

  test('with --shutdown-send-retry-after new requests get 429 with Retry-After, and probes are served', async () => {
    await using etcd = await startEtcd()
    await using server = await Tidings.start([
      `--etcd-servers=${etcd.endpoints[0]}`,
      '--shutdown-send-retry-after',
      '--request-timeout=10s',
    ])
    await server.until('/readyz', isGreen, 10_000)
    etcd.member(0).pause()
    await sleep(1100)
    const slow = server.ask('/readyz/datastore')
    await sleep(100)
    server.kill('SIGTERM')
    await sleep(300)
    for (const protocol of ['h1', 'h2'] as const) {
      const answer = await server.ask('/version', { protocol })
      assert.equal(answer.status, 429)
      assert.equal(answer.body, 'The apiserver is shutting down, please try again later.\n')
      assert.equal(answer.headers['retry-after'], '5')
      assert.equal((await server.ask('/livez', { protocol })).status, 200)
    }
    const { headers } = await server.ask('/version')
    assert.equal(headers['connection'], 'close')
    assert.equal((await slow).status, 500)
    assert.deepEqual(await server.ended, { code: 0, signal: null })
    etcd.member(0).resume()
  })
})
