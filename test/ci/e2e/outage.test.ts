import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startEtcd, startEtcdCluster } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { Stranger } from '../../support/stranger.ts'
import { Tidings } from '../../support/tidings.ts'

const READY_RED_MS = 3000
const READY_GREEN_MS = 5000
const REFUSED_MS = 750
/** Time for a write to reach the watch of the replica. */
const MARK_SEEN_MS = 500
const EVENTS = '/apis/events.k8s.io/v1/events'
const AWAY =
  'etcd does not respond: writes and consistent reads are rejected until it does; watches and reads with resourceVersion=0 continue'
const BACK = 'etcd responds again'
const isGreen = ({ status }: { status: number }): boolean => status === 200
const isRed = ({ status }: { status: number }): boolean => status === 500

/** Polls an endpoint in the background; `stop` returns every status code seen. */
function watchStatus(server: Tidings, path: string): { stop(): Promise<number[]> } {
  const seen: number[] = []
  let isOver = false
  const loop = (async () => {
    while (!isOver) {
      // A failed request is recorded as status 0.
      const status = await server.ask(path).then(
        (answer) => answer.status,
        () => 0,
      )
      seen.push(status)
      await sleep(50)
    }
  })()
  return {
    stop: async () => {
      isOver = true
      await loop
      return seen
    },
  }
}

async function metric(server: Tidings, name: string): Promise<string | undefined> {
  const { body } = await server.ask('/metrics')
  return new RegExp(`^${name} (.*)$`, 'm').exec(body)?.[1]
}

/** These run in parallel, since they mostly wait. */
describe('outages of the datastore', { concurrency: true }, () => {
  test('livez-asks-about-us: with a paused etcd readyz is red within 3 s and green within 5 s after it, livez stays green', async () => {
    await using etcd = await startEtcd()
    await using server = await Tidings.start([`--etcd-servers=${etcd.endpoints[0]}`])
    await server.until('/readyz', isGreen, 10_000)
    const livez = watchStatus(server, '/livez')

    for (let round = 0; round < 3; round++) {
      etcd.member(0).pause()
      const redAfterMs = await server.until('/readyz', isRed, READY_RED_MS + 2000)
      assert.ok(redAfterMs <= READY_RED_MS, `red after ${redAfterMs} ms`)
      const { body } = await server.ask('/readyz')
      assert.equal(
        body,
        [
          '[+]ping ok',
          '[+]log ok',
          '[-]datastore failed: reason withheld',
          '[+]informer-sync ok',
          '[+]poststarthook/generic-apiserver-start-informers ok',
          '[+]poststarthook/rbac/bootstrap-roles ok',
          '[+]poststarthook/apiservice-registration-controller ok',
          '[+]autoregister-completion ok',
          '[+]shutdown ok',
          'readyz check failed\n',
        ].join('\n'),
      )
      etcd.member(0).resume()
      const greenAfterMs = await server.until('/readyz', isGreen, READY_GREEN_MS + 2000)
      assert.ok(greenAfterMs <= READY_GREEN_MS, `green after ${greenAfterMs} ms`)
    }
    assert.deepEqual(new Set(await livez.stop()), new Set([200]))
  })

  test('the responses of all endpoints with a paused etcd are as expected, byte for byte', async () => {
    await using etcd = await startEtcd()
    await using server = await Tidings.start([`--etcd-servers=${etcd.endpoints[0]}`])
    await server.until('/readyz', isGreen, 10_000)
    etcd.member(0).pause()
    await server.until('/readyz', isRed, 5000)

    for (const protocol of ['h1', 'h2'] as const) {
      const single = await server.ask('/readyz/datastore', { protocol })
      assert.equal(single.status, 500)
      assert.match(single.body, /^internal server error: error getting data from etcd: .+\n$/)
      assert.equal(single.headers['x-content-type-options'], 'nosniff')
      const alias = await server.ask('/readyz/etcd', { protocol })
      assert.equal(alias.status, 500)
      const head = await server.ask('/readyz', { protocol, method: 'HEAD' })
      assert.deepEqual([head.status, head.body], [500, ''])

      for (const name of ['datastore', 'etcd']) {
        const excluded = await server.ask(`/readyz?exclude=${name}`, { protocol })
        assert.deepEqual([excluded.status, excluded.body], [200, 'ok'])
      }
      const healthz = await server.ask('/healthz?exclude=nope', { protocol })
      assert.equal(
        healthz.body,
        [
          '[+]ping ok',
          '[+]log ok',
          '[-]datastore failed: reason withheld',
          '[+]poststarthook/generic-apiserver-start-informers ok',
          '[+]poststarthook/rbac/bootstrap-roles ok',
          '[+]poststarthook/apiservice-registration-controller ok',
          '[+]autoregister-completion ok',
          'warn: some health checks cannot be excluded: no matches for "nope"',
          'healthz check failed\n',
        ].join('\n'),
      )
    }
    const reasons = server.log.filter(({ msg }) => msg === 'Health check failed')
    assert.match(JSON.stringify(reasons), /datastore: error getting data from etcd/)
    const { body: metrics } = await server.ask('/metrics/slis')
    assert.match(metrics, /^kubernetes_healthcheck\{name="datastore",type="readyz"\} 0$/m)
    assert.match(metrics, /^kubernetes_healthcheck\{name="ping",type="readyz"\} 1$/m)
    etcd.member(0).resume()
  })

  test('a killed etcd that is restarted has the same effect, reads are rejected at once, and both are logged', async (t) => {
    await using etcd = await startEtcd()
    const folder = await mkdtemp(join(tmpdir(), 'tidings-outage-'))
    t.after(() => rm(folder, { recursive: true, force: true }))
    const tokens = join(folder, 'tokens.csv')
    await writeFile(tokens, 'secret,ada,ada-1,"system:masters"\n')
    const headers = { authorization: 'Bearer secret' }
    await using server = await Tidings.start([
      `--etcd-servers=${etcd.endpoints[0]}`,
      `--token-auth-file=${tokens}`,
    ])
    await server.until('/readyz', isGreen, 10_000)
    const livez = watchStatus(server, '/livez')
    await etcd.member(0).kill()
    const redAfterMs = await server.until('/readyz', isRed, READY_RED_MS + 2000)
    assert.ok(redAfterMs <= READY_RED_MS, `red after ${redAfterMs} ms`)
    await server.logged(AWAY, 10_000)
    const begun = performance.now()
    const refused = await server.ask(EVENTS, { headers })
    assert.ok(performance.now() - begun < REFUSED_MS, `${performance.now() - begun} ms`)
    assert.deepEqual([refused.status, refused.headers['retry-after']], [503, '1'])
    assert.match(
      JSON.parse(refused.body).message,
      /^etcd has not responded for \d+ s: it cannot be/,
    )
    assert.ok(Number(await metric(server, 'tidings_etcd_away_seconds')) > 3)
    await etcd.member(0).start()
    const greenAfterMs = await server.until('/readyz', isGreen, READY_GREEN_MS + 2000)
    assert.ok(greenAfterMs <= READY_GREEN_MS, `green after ${greenAfterMs} ms`)
    assert.deepEqual(new Set(await livez.stop()), new Set([200]))
    await server.logged(BACK)
    const logged = server.log.filter(({ msg }) => msg === AWAY || msg === BACK)
    assert.equal(logged.length, 2, JSON.stringify(logged))
    assert.equal((await server.ask(EVENTS, { headers })).status, 200)
    assert.equal(await metric(server, 'tidings_etcd_away_seconds'), '0')
    assert.equal(await metric(server, 'tidings_etcd_outages_total'), '1')
  })

  test('readyz stays green when one of three members is killed, then another paused', async () => {
    await using etcd = await startEtcdCluster(3)
    await using server = await Tidings.start([`--etcd-servers=${etcd.endpoints.join(',')}`])
    await server.until('/readyz', isGreen, 10_000)
    // By then the replica follows a mark. In an etcd without any value a replica that loses its
    // connection cannot know that it came back to the same history, and lists everything again.
    using stranger = new Stranger(etcd)
    await eventually('marked', async () => (await stranger.read('/tidings/events/')) !== undefined)
    await sleep(MARK_SEEN_MS)
    const readyz = watchStatus(server, '/readyz')
    for (const index of [0, 1, 2]) {
      await etcd.member(index).kill()
      await sleep(3000)
      await etcd.member(index).start()
      await sleep(1000)
      etcd.member(index).pause()
      await sleep(3000)
      etcd.member(index).resume()
      await sleep(1000)
    }
    const seen = await readyz.stop()
    assert.ok(seen.length > 50, `only ${seen.length} answers`)
    assert.deepEqual(new Set(seen), new Set([200]))
  })
})

test('without etcd at start livez is green, readyz is red, and the process recovers without help', async () => {
  await using etcd = await startEtcd()
  await etcd.member(0).stop()
  await using server = await Tidings.start([`--etcd-servers=${etcd.endpoints[0]}`])
  for (let round = 0; round < 5; round++) {
    assert.equal((await server.ask('/livez')).status, 200)
    assert.equal((await server.ask('/readyz')).status, 500)
    await sleep(100)
  }
  const { body } = await server.ask('/readyz')
  assert.match(body, /^\[-\]datastore failed: reason withheld$/m)
  assert.match(body, /^\[-\]informer-sync failed: reason withheld$/m)
  assert.equal(
    (await server.ask('/readyz/informer-sync')).body,
    'internal server error: 1 informers not started yet: [events]\n',
  )
  assert.equal(server.process.exitCode, null)
  await etcd.member(0).start()
  const greenAfterMs = await server.until('/readyz', isGreen, READY_GREEN_MS + 2000)
  assert.ok(greenAfterMs <= READY_GREEN_MS, `green after ${greenAfterMs} ms`)
})
