/**
 * The memory of a tab after an hour of live events at 100 a second: 360,000 events. The hour takes
 * six minutes. Ten times as fast are the events, the clock of the page, so that it shows all of them
 * and does not say that they are too many, and the end of its watches, so that it reconnects as
 * often as in an hour. Timers are not faster: the page renders as often as in six minutes, each time
 * with ten times as many new rows, and the server is asked for its status as often as in six minutes.
 * A last minute comes at 100 events a second: that is what the tab has after the hour.
 *
 *   npm test -- ui:full tail-memory
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
/** One each minute. */
const SAMPLES = 60
/** During the last minute. */
const LAST_SAMPLES = 12
const MIB_MAX = 150
/** What the second half of the hour may have more than the first one, after garbage collections. */
const GROWTH_MIB_MAX = 10
/** A stall of the machine ends with a burst. */
const UNSHOWN_MAX = 0.02
/** How many events the page says it has not shown. */
const UNSHOWN = `[...(/Too many to read.*/.exec(document.body.innerText)?.[0] ?? '')
  .matchAll(/([0-9,]+) (?:Warning|Normal)/g)]
  .reduce((sum, [, count]) => sum + Number(count.replaceAll(',', '')), 0)`
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
  const last = samples.slice(-LAST_SAMPLES)
  const hour = samples.slice(0, -LAST_SAMPLES)
  for (const [index, sample] of hour.entries()) {
    if (index % 6 === 5) t.diagnostic(`after ${index + 1} min, ten times as fast: ${said(sample)}`)
  }
  for (const sample of last) t.diagnostic(`after the hour: ${said(sample)}`)
  const most = Math.max(...last.map(({ privateMib }) => privateMib))
  t.diagnostic(`at most ${most.toFixed(1)} MiB private memory after the hour`)
  assert.equal(await tab.evaluate(`document.querySelectorAll('.event').length`), 100)
  const unshown = await tab.evaluate<number>(UNSHOWN)
  t.diagnostic(`${unshown} of ${COUNT} events came in bursts too large to show`)
  assert.ok(unshown <= COUNT * UNSHOWN_MAX, 'the tab did not show the events')
  assert.equal(await tab.evaluate(`document.querySelector('.tail-gap')`), null)
  const watches = await tab.evaluate<number>('tidingsWatches')
  t.diagnostic(`${watches} watches`)
  assert.ok(watches >= WATCHES_MIN, `${watches} watches`)
  assert.ok(most <= MIB_MAX, `${most} MiB`)
  const half = hour.length / 2
  const growth = least(hour.slice(half)) - least(hour.slice(0, half))
  t.diagnostic(`the least of the second half is ${growth.toFixed(1)} MiB more than of the first`)
  assert.ok(growth <= GROWTH_MIB_MAX, `grows by ${growth} MiB`)
})

/** Writes all events, no faster than the tab follows, and measures now and then. */
async function followed(server: PageServer, tab: BareTab): Promise<readonly TabMemory[]> {
  const client = new EtcdClient({ endpoints: server.etcd.endpoints, defaultTimeoutMs: 30_000 })
  const samples: TabMemory[] = []
  const write = async (numbers: { from: number; to: number }, perSecond: number) => {
    const startedAt = performance.now()
    for (let { from } = numbers; from < numbers.to; from += BATCH) {
      const to = from + BATCH
      await seedEvents(client, { count: COUNT, from, to, spanMs: SECONDS * 1_000 })
      const dueMs = ((to - numbers.from) * 1_000) / perSecond
      await sleep(Math.max(0, startedAt + dueMs - performance.now()))
    }
    samples.push(await tab.memory())
  }
  const minute = COUNT / SAMPLES
  for (let from = 0; from < COUNT; from += minute) {
    await write({ from, to: from + minute }, PER_SECOND * FASTER)
  }
  const part = (PER_SECOND * 60) / LAST_SAMPLES
  for (let n = 0; n < LAST_SAMPLES; n++) {
    const from = COUNT + n * part
    await write({ from, to: from + part }, PER_SECOND)
  }
  client.close()
  await server.write([
    { minutesAgo: 0, reason: 'Pulled', object: 'Pod/web-0', note: 'the last one' },
  ])
  await tab.until(`document.body.innerText.includes('the last one')`, 60_000)
  return samples
}

function least(samples: readonly TabMemory[]): number {
  return Math.min(...samples.map(({ privateMib }) => privateMib))
}

function said({ privateMib, heapMib }: TabMemory): string {
  return `${privateMib.toFixed(1)} MiB, of which ${heapMib.toFixed(1)} in the JavaScript heap`
}
