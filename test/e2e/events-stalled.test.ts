import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { EventWatch, makeEvent } from '../support/event-client.ts'
import { eventually } from '../support/eventually.ts'
import { inParallel, isFull, percentile } from '../support/load.ts'
import { ADMIN_TOKEN, Replicas } from '../support/replicas.ts'
import { residentKib } from '../support/server-memory.ts'
import { StalledWatchers } from '../support/stalled-watchers.ts'
import { added, type Change, sequenceFaults, WatchLog } from '../support/watch-sequence.ts'

const EVENTS = isFull ? 20_000 : 4000
const STALLED = isFull ? 500 : 300
const KIB = 1024
const COST_KIB_MAX = 256
const NAMESPACE = 'stalled'
const HEALTHY = 5
/** For the server to send all that it will. */
const WATCH_MS = 1500

/** When the watchers come, and what they ask for. */
const KINDS = {
  'of what comes': { isBefore: true, isAll: false },
  'from a version long past': { isBefore: false, isAll: false },
  'of all there is': { isBefore: false, isAll: true },
} as const

interface Stalling {
  readonly protocol: 'http1' | 'http2'
  readonly isBefore: boolean
  readonly isAll: boolean
}

describe('watchers that never read', () => {
  let bareKib: number

  test(`none of them: what ${EVENTS} events cost by themselves`, async (t) => {
    bareKib = await run(undefined)
    t.diagnostic(`the server has ${(bareKib / KIB).toFixed(0)} MiB`)
  })

  for (const protocol of ['http1', 'http2'] as const) {
    for (const [what, kind] of Object.entries(KINDS)) {
      test(`${what} (${protocol}): ${STALLED} of them cost less than ${COST_KIB_MAX} KiB each`, async (t) => {
        const kib = await run({ protocol, ...kind })
        const each = (kib - bareKib) / STALLED
        t.diagnostic(
          `the server has ${(kib / KIB).toFixed(0)} MiB: ${each.toFixed(0)} KiB for each`,
        )
        assert.ok(each < COST_KIB_MAX, `${each} KiB for each`)
      })
    }
  }
})

/** The memory of a server after the load, in KiB. */
async function run(stalling: Stalling | undefined): Promise<number> {
  await using replicas = await Replicas.start(1)
  using client = await replicas.client(0)
  using reader = await replicas.client(0)
  const server = replicas.server(0)
  const { metadata } = await client.list(NAMESPACE)
  const from = { resourceVersion: metadata.resourceVersion }
  const healthy = await Promise.all(
    Array.from({ length: HEALTHY }, async () => new WatchLog(await reader.watch(NAMESPACE, from))),
  )
  const open = (query: string): Promise<StalledWatchers> =>
    StalledWatchers.open({
      port: server.port,
      ca: server.ca,
      token: ADMIN_TOKEN,
      path: `${reader.path(NAMESPACE)}?watch=true${query}`,
      http1: stalling?.protocol === 'http1' ? STALLED : 0,
      http2: stalling?.protocol === 'http2' ? STALLED : 0,
    })
  const past = `&resourceVersion=${metadata.resourceVersion}`
  using early = stalling?.isBefore === true ? await open(past) : undefined

  const owed: Change[] = []
  const tookMs: number[] = []
  await inParallel(EVENTS, 64, async (index) => {
    const sentAt = performance.now()
    const event = makeEvent(NAMESPACE, `e-${index}`, { note: 'n'.repeat(KIB - 500) })
    owed.push(added(await client.create(event)))
    tookMs.push(performance.now() - sentAt)
  })
  owed.sort((one, other) => one.version - other.version)
  for (const log of healthy) {
    await log.until('every event', (frames) => frames.length >= EVENTS, 20_000)
    assert.deepEqual(sequenceFaults(owed, log.changes), [], 'a watcher that does read')
  }
  using late = stalling?.isBefore === false ? await open(stalling.isAll ? '' : past) : undefined
  await sleep(WATCH_MS)
  const kib = await residentKib(server)

  // Others are still served, and who begins to read at last has missed nothing.
  assert.ok(percentile(tookMs, 0.99) < 2000, `creates p99 ${percentile(tookMs, 0.99)} ms`)
  const stream = (early ?? late)?.streams[0]
  if (stream !== undefined && stalling?.isAll === false) {
    using awake = new WatchLog(new EventWatch(stream))
    await awake.until('every event', (frames) => frames.length >= EVENTS, 20_000)
    assert.deepEqual(sequenceFaults(owed, awake.changes), [], 'one that reads at last')
  }
  const last = await client.create(makeEvent(NAMESPACE, 'the-last'))
  for (const log of healthy) {
    await eventually('the last', () => log.frames.length === EVENTS + 1)
    assert.deepEqual(log.changes.at(-1), added(last))
    log[Symbol.dispose]()
  }
  return kib
}
