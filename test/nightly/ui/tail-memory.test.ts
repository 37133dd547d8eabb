/**
 * The memory of a tab after an hour of live events at 100 a second: 360,000 events. The hour takes
 * six minutes. Ten times as fast are the events, the clock of the page, so that it shows all of them
 * and does not say that they are too many, and the end of its watches, so that it reconnects as
 * often as in an hour. Timers are not faster: the page renders as often as in six minutes, each time
 * with ten times as many new rows, and the server is asked for its status as often as in six minutes.
 *
 *   npm run build && node --test --test-timeout=1200000 test/nightly/ui/tail-memory.test.ts
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { EtcdClient } from '../../../src/etcd/client.ts'
import { BareTab, type TabMemory } from '../../support/bare-tab.ts'
import { PageServer } from '../../support/page-server.ts'
import { seedEvents } from '../../support/seed-events.ts'

const PER_SECOND = 100
const SECONDS = 3_600
const FASTER = 10
const COUNT = PER_SECOND * SECONDS
const SAMPLES = 60
const MIB_MAX = 150
/** What the last third may have more than the second one. */
const GROWTH_MIB_MAX = 10
/** Says how many events were too many to read. */
const HAS_UNSHOWN = `document.body.innerText.includes('Too many to read')`
/** A watch ends after five minutes at the latest. */
const WATCHES_MIN = SECONDS / 300
/** Events in one write. */
const BATCH = 50

test('an hour of live events at 100 a second leaves the tab small', async (t) => {
  await using server = await PageServer.start()
  await using tab = await BareTab.open(`${server.base}/ui/`)
  await tab.addScript(`
    const real = Date.now
    const began = real()
    Date.now = () => began + (real() - began) * ${FASTER}
    const realFetch = fetch
    window.tidingsWatches = 0
    window.fetch = (url, options) => realFetch(
      String(url).replace(/(timeoutSeconds=)([0-9]+)/, (_, name, seconds) => {
        tidingsWatches++
        return name + Math.round(seconds / ${FASTER})
      }),
      options,
    )
  `)
  await tab.until(`document.querySelector('#token') !== null`)
  await tab.evaluate(`sessionStorage.setItem('tidings.token', 'viewer')`)
  await tab.evaluate(`location.search = '?view=tail'`)
  await tab.until(`document.querySelector('.tail-link')?.textContent === 'Live'`)
  const samples = await followed(server, tab)
  const half = samples.slice(samples.length / 2)
  const most = Math.max(...half.map(({ privateMib }) => privateMib))
  for (const [index, { privateMib, heapMib }] of samples.entries()) {
    if (index % 6 === 5) {
      const minutes = Math.round(((index + 1) * SECONDS) / SAMPLES / 60)
      const text = `${privateMib.toFixed(1)} MiB, of which ${heapMib.toFixed(1)} in the JavaScript heap`
      t.diagnostic(`after ${minutes} min: ${text}`)
    }
  }
  t.diagnostic(`at most ${most.toFixed(1)} MiB private memory in the second half`)
  assert.equal(await tab.evaluate(`document.querySelectorAll('.event').length`), 500)
  assert.equal(await tab.evaluate(HAS_UNSHOWN), false, 'not all events were shown')
  assert.equal(await tab.evaluate(`document.querySelector('.tail-gap')`), null)
  const watches = await tab.evaluate<number>('tidingsWatches')
  t.diagnostic(`${watches} watches`)
  assert.ok(watches >= WATCHES_MIN, `${watches} watches`)
  assert.ok(most <= MIB_MAX, `${most} MiB`)
  const third = samples.length / 3
  const growth = average(samples.slice(2 * third)) - average(samples.slice(third, 2 * third))
  t.diagnostic(`growth from the second third to the last: ${growth.toFixed(1)} MiB`)
  assert.ok(growth <= GROWTH_MIB_MAX, `grows by ${growth} MiB`)
})

/** Writes all events, no faster than the tab follows, and measures now and then. */
async function followed(server: PageServer, tab: BareTab): Promise<readonly TabMemory[]> {
  const client = new EtcdClient({ endpoints: server.etcd.endpoints, defaultTimeoutMs: 30_000 })
  const samples: TabMemory[] = []
  const untilMs = Date.now()
  const startedAt = performance.now()
  for (let from = 0; from < COUNT; from += BATCH) {
    const to = from + BATCH
    await seedEvents(client, { count: COUNT, from, to, untilMs, spanMs: SECONDS * 1_000 })
    const dueMs = (to * 1_000) / (PER_SECOND * FASTER)
    await sleep(Math.max(0, startedAt + dueMs - performance.now()))
    if (to % (COUNT / SAMPLES) === 0) samples.push(await tab.memory())
  }
  client.close()
  await server.tell([
    { minutesAgo: 0, reason: 'Pulled', object: 'Pod/web-0', note: 'the last one' },
  ])
  await tab.until(`document.body.innerText.includes('the last one')`, 60_000)
  return samples
}

function average(samples: readonly TabMemory[]): number {
  return samples.reduce((sum, { privateMib }) => sum + privateMib, 0) / samples.length
}
