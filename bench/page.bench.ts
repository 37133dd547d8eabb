/**
 * What a page over all events asks for: histograms, summaries, and the newest events. The CPU time of
 * each, in this process and without etcd; its memory, and how long the event loop was held.
 *
 *   npm run bench -- page                    1,000,000 events of 7 days
 *   node --expose-gc bench/page.bench.ts 100000 reason    only what has `reason` in its name
 */
import { parseFieldSelector } from '../src/api/selectors/field-selector.ts'
import { parseLabelSelector } from '../src/api/selectors/label-selector.ts'
import { storedEvent as fromBody } from '../src/cache/memory/made-events.fixture.ts'
import { defaultMemoryBounds, EventMemory } from '../src/cache/memory/memory.ts'
import { readPage } from '../src/cache/read/page.ts'
import { SummaryStorage } from '../src/cache/summary/summary-storage.ts'
import { monotonicClock } from '../src/lib/clock.ts'
import { aLane } from '../src/lib/run-queue.fixture.ts'
import { eventSelector } from '../src/registry/read/event-selector.ts'
import { versionOfChange, versionOfState } from '../src/storage/resource-version.ts'
import type { EventScope } from '../src/storage/storage.ts'
import type { GroupField, HistogramField } from '../src/storage/summary.ts'
import { storedEvent } from '../test/support/seed-events.ts'
import { LoopHolds } from './memory/loop-holds.ts'

const count = Number(process.argv[2] ?? 1_000_000)
const only = process.argv[3] ?? ''
const MiB = 1024 ** 2
const dayMs = 24 * 3_600_000
const untilMs = Date.parse('2026-03-01T00:00:00Z')
const cluster = { count, untilMs, spanMs: 7 * dayMs }
const rounds = 5
const { signal } = new AbortController()
const lane = aLane()
const everything: EventScope = { cluster: undefined, namespace: undefined }
const local: EventScope = { cluster: 'local', namespace: undefined }
const shop: EventScope = { cluster: 'local', namespace: 'shop-7' }

const memory = new EventMemory(defaultMemoryBounds, monotonicClock)
const summaries = new SummaryStorage({ memory, freshness: { isFresh: async () => true } })
await load()
const loop = new LoopHolds()

const hot = hotObject()
const selectors: readonly (readonly [string, string, EventScope])[] = [
  ['all', '', everything],
  ['of a cluster', '', local],
  ['of a namespace', '', shop],
  ['type=Warning', 'type=Warning', everything],
  ['reason', 'reason=BackOff', everything],
  ['kind', 'regarding.kind=Pod', everything],
  ['rare kind and type', 'regarding.kind=Ingress,type=Warning', local],
  ['controller', 'reportingController=kubelet', everything],
  ['mentions of a busy object', `mentions=${hot}`, everything],
  [
    'controller, kind, reason of a namespace',
    'reportingController=kubelet,regarding.kind=Pod,reason!=Pulled',
    shop,
  ],
  ['frequent text', 'text=back-off', everything],
  ['rare text', 'text=9876543', everything],
]
for (const [name, selector, scope] of selectors) {
  for (const [window, since] of [
    ['7d', '7d'],
    ['1d', '1d'],
  ] as const) {
    const query = [selector, `since=${since}`].filter(Boolean).join()
    await measure(`histogram by type, ${window}, ${name}`, () => histogram(scope, query, 'type'))
    await measure(`newest 100, ${window}, ${name}`, () => newest(scope, query))
  }
}
await measure('newest 100 of none', () => newest(local, 'regarding.kind=Ingress,reason=Pulled'))
for (const by of ['reason'] as const) {
  await measure(`histogram by ${by}, 7d`, () => histogram(everything, 'since=7d', by))
}
for (const by of [['controller'], ['namespace'], ['reason', 'controller'], ['object']] as const) {
  await measure(`summary by ${by.join('+')}`, () => summary(by))
}
const held = loop.take()
say(`event loop, longest hold by our own work ${held.ownMs.toFixed(1)} ms`)
process.exit()

async function load(): Promise<void> {
  globalThis.gc?.()
  const before = process.memoryUsage.rss()
  const began = process.cpuUsage()
  let makingUs = 0
  for (let n = 0; n < count; n++) {
    const from = process.threadCpuUsage?.()
    const { namespace, name, body } = storedEvent(cluster, n)
    const key = { cluster: 'local', namespace, name }
    const stored = fromBody(key, versionOfChange(n + 1, 0), body)
    void stored.fields
    if (from !== undefined) makingUs += process.threadCpuUsage(from).user
    memory.put(stored)
    if (n % 1_000 === 0) await new Promise(setImmediate)
  }
  memory.reach(versionOfState(count + 1))
  const used = process.cpuUsage(began).user - makingUs
  globalThis.gc?.()
  const rss = (process.memoryUsage.rss() - before) / MiB
  say(`${count} events: ${rss.toFixed(0)} MiB, ${(used / count).toFixed(1)} µs each to put`)
}

/** The object with the most events. */
function hotObject(): string {
  const counts = new Map<string, number>()
  for (let n = 0; n < Math.min(count, 50_000); n++) {
    const { regarding } = JSON.parse(storedEvent(cluster, n).body.toString())
    if (regarding.kind !== 'Pod') continue
    const key = `Pod/${regarding.name}`
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return [...counts].sort(([, one], [, other]) => other - one)[0]?.[0] ?? ''
}

async function histogram(scope: EventScope, query: string, by: HistogramField): Promise<number> {
  const selector = selectorOf(query)
  const sinceMs = selector?.requires?.sinceMs ?? 0
  const bounds = Array.from({ length: 121 }, (_, n) => sinceMs + ((untilMs - sinceMs) * n) / 120)
  const options = { selector, bounds, by, signal, lane }
  const { buckets } = await summaries.histogram(scope, options)
  return buckets.flat().reduce((sum, { events }) => sum + events, 0)
}

async function newest(scope: EventScope, query: string): Promise<number> {
  const options = {
    scope,
    selector: selectorOf(query),
    order: 'newest',
    limit: 100,
    signal,
    lane,
  } as const
  const { items } = await readPage(memory, memory.peek(), { ...options, isOnlyPage: true })
  return items.length
}

async function summary(groupBy: readonly GroupField[]): Promise<number> {
  const { groups } = await summaries.summarize(everything, {
    lane: aLane(),
    groupBy,
    groupsMax: 50,
    signal,
  })
  return groups.reduce((sum, { events }) => sum + events, 0)
}

function selectorOf(query: string) {
  return eventSelector(parseLabelSelector(''), parseFieldSelector(query), untilMs)
}

async function measure(name: string, ask: () => Promise<number>): Promise<void> {
  if (!name.includes(only)) return
  const times: number[] = []
  let found = 0
  try {
    for (let round = 0; round < rounds; round++) {
      const before = process.threadCpuUsage()
      found = await ask()
      const { user, system } = process.threadCpuUsage(before)
      times.push((user + system) / 1000)
      if (times[0] !== undefined && times[0] > 2_000) break
    }
  } catch (error) {
    say(`${name}: ${error}`)
    return
  }
  const first = times[0] ?? 0
  const median = times.sort((one, other) => one - other)[Math.floor(times.length / 2)] ?? 0
  say(`${name} (${found}): ${median.toFixed(1)} ms, first ${first.toFixed(1)} ms`)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
