/** The measured process of bench/memory.bench.ts. Exits with 1 when a figure is missed. */

import { once } from 'node:events'
import { CachedStorage } from '../../src/cache/cached-storage.ts'
import { EtcdClient } from '../../src/etcd/client.ts'
import { silentLog } from '../../src/lib/log/log.ts'
import { aLane } from '../../src/lib/run-queue.fixture.ts'
import { EtcdStorage } from '../../src/storage/etcd/etcd-storage.ts'
import { beginning } from '../../src/storage/resource-version.ts'
import type { ListOptions } from '../../src/storage/storage.ts'
import { eventsPerObject, objectOf, rareReason } from './events.ts'
import { measureFanOut } from './fan-out.ts'
import { Figures } from './figures.ts'
import { LoopHolds } from './loop-holds.ts'
import type { Done, Order } from './orders.ts'
import { quantile } from './quantile.ts'
import { measureQuestions, selectorOf } from './questions.ts'
import { measureSummaries } from './summaries.ts'

const MiB = 1024 ** 2
const [endpoint = '', countText = ''] = process.argv.slice(2)
const count = Number(countText)
const { signal } = new AbortController()
const all = { cluster: undefined, namespace: undefined }
const figures = new Figures()

const client = new EtcdClient({ endpoints: [endpoint], defaultTimeoutMs: 30_000 })
const inner = new EtcdStorage({
  client,
  prefix: '/registry',
  onCorrupt: (key) => process.stdout.write(`not an event: ${key}\n`),
})
const storage = new CachedStorage({ inner, log: silentLog })
const end = new AbortController()

const baseRss = process.memoryUsage.rss()
const loop = new LoopHolds()
const began = performance.now()
const running = storage.run(end.signal)
await storage.synced
figures.check('start to synced', (performance.now() - began) / 1000, { atMost: 120, unit: 's' })
report('event loop while loading')
memory(`memory with ${storage.count} events`)

await pages()
await indexed()
report('event loop while listing')
await measureQuestions({ storage, figures, count })
report('event loop while answering questions')
await measureSummaries(storage, figures, loop)
report('event loop while counting')
await carriedOut({ type: 'delete', changes: Math.floor(count / 10) })
report('event loop while another client deletes a tenth')
memory('memory then')
await measureFanOut({ storage, figures, count, carriedOut })
report('event loop while fanning out')
const { objects, bodyBytes, historyBytes } = storage.stats()
process.stdout.write(
  `bodies ${Math.round(bodyBytes / MiB)} MiB for ${objects} events, ` +
    `history ${Math.round(historyBytes / MiB)} MiB\n`,
)
end.abort()
await running
client.close()
process.disconnect()
process.exitCode = figures.areMet ? 0 : 1

/** Reads all pages in order; then random pages. */
async function pages(): Promise<void> {
  const times: number[] = []
  const page = async (options: Partial<ListOptions>) => {
    const before = performance.now()
    const read = await storage.list(all, {
      lane: aLane(),
      limit: 500,
      signal,
      notOlderThan: beginning,
      ...options,
    })
    times.push(performance.now() - before)
    return read
  }
  let listed = 0
  for (let next = await page({}); ; ) {
    listed += next.items.length
    if (!next.more) break
    next = await page({ at: next.version, after: next.items.at(-1)?.key })
    await new Promise(setImmediate)
  }
  if (listed !== storage.count) throw new Error(`listed ${listed} of ${storage.count}`)
  for (let n = 0; n < 2000; n++) {
    const { namespace } = objectOf(Math.floor(Math.random() * count))
    await page({ after: { cluster: 'local', namespace, name: 'p' } })
    await new Promise(setImmediate)
  }
  figures.check('page of 500, p99', quantile(times, 0.99), { atMost: 20, unit: 'ms' })
  figures.note('page of 500, median', quantile(times, 0.5), 'ms')
}

async function indexed(): Promise<void> {
  const random = () => objectOf(Math.floor((Math.random() * count) / 1000) * 1000 + 7)
  const choices: Readonly<Record<string, () => string>> = {
    'regarding uid': () => `regarding.uid=${random().uid}`,
    'regarding kind, namespace and name': () => {
      const { kind, namespace, name } = random()
      return `regarding.kind=${kind},regarding.namespace=${namespace},regarding.name=${name}`
    },
    reason: () => `reason=${rareReason}`,
    'controller, then regarding uid': () =>
      `reportingController=kubelet,type=Normal,regarding.uid=${random().uid}`,
  }
  for (const [name, text] of Object.entries(choices)) {
    const times: number[] = []
    let found = 0
    for (let n = 0; n < 2000; n++) {
      const selector = selectorOf(text(), count)
      const before = performance.now()
      const page = await storage.list(all, {
        lane: aLane(),
        limit: 500,
        signal,
        selector,
        notOlderThan: beginning,
      })
      times.push(performance.now() - before)
      await new Promise(setImmediate)
      found = page.items.length
    }
    if (found > eventsPerObject) throw new Error(`${found} found by ${name}`)
    figures.note(`${found} of all by ${name}, median`, quantile(times, 0.5), 'ms')
    figures.check(`${found} of all by ${name}, p99`, quantile(times, 0.99), {
      atMost: 2,
      unit: 'ms',
    })
  }
  const before = performance.now()
  await storage.list(all, {
    lane: aLane(),
    limit: 500,
    signal,
    selector: selectorOf('type=None', count),
  })
  figures.note('none of all by type, without an index', performance.now() - before, 'ms')
}

/** Lets another client do it, and waits until the cache has the change. */
async function carriedOut(order: Order): Promise<void> {
  process.send?.(order)
  const [done] = (await once(process, 'message')) as [Done]
  await storage.list(all, { lane: aLane(), limit: 1, signal, notOlderThan: done.version })
}

function memory(name: string): void {
  const { rss, heapUsed, heapTotal, external } = process.memoryUsage()
  const heap = `${Math.round(heapUsed / MiB)} of ${Math.round(heapTotal / MiB)}`
  const parts = `heap ${heap}, outside ${Math.round(external / MiB)}`
  figures.check(`${name} (${parts}, at start ${Math.round(baseRss / MiB)})`, rss / MiB, {
    atMost: 2252,
    unit: 'MiB',
  })
}

/** Time that other programs on the same cores take is not checked, but printed. */
function report(name: string): void {
  const { longestMs, ownMs } = loop.take()
  figures.note(`${name}, longest hold by the clock`, longestMs, 'ms')
  figures.check(`${name}, longest hold by our own work`, ownMs, { atMost: 50, unit: 'ms' })
}
