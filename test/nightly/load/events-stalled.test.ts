import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { EventWatch } from '../../support/event-client.ts'
import { eventually } from '../../support/eventually.ts'
import { inParallel, isFull, percentile } from '../../support/load.ts'
import { ADMIN_TOKEN, Replicas } from '../../support/replicas.ts'
import { residentKib } from '../../support/server-memory.ts'
import { StalledWatchers } from '../../support/stalled-watchers.ts'
import { added, type Change, sequenceFaults, WatchLog } from '../../support/watch-sequence.ts'
import { makeEvent } from '../../support/wire-event.ts'

const EVENTS = isFull ? 20_000 : 4000
const STALLED = isFull ? 500 : 300
/** What these allocate stays with the allocator, for the others to reuse: only the others count. */
const FIRST = 100
const KIB = 1024
const COST_KIB_MAX = 256
const NAMESPACE = 'stalled'
const HEALTHY = 5
/** Time for the server to send all that it will. */
const WATCH_MS = 1500

/** Time at which the watchers connect, and their request. */
const KINDS = {
  'of what comes': { isBefore: true, isAll: false },
  'from a version long past': { isBefore: false, isAll: false },
  'of all there is': { isBefore: false, isAll: true },
} as const

interface Stalling {
  readonly protocol: 'http1' | 'http2'
  readonly isBefore: boolean
  readonly isAll: boolean
  readonly count: number
}

describe('watchers that never read', () => {
  for (const protocol of ['http1', 'http2'] as const) {
    for (const [what, kind] of Object.entries(KINDS)) {
      test(`${STALLED} watchers that never read cost less than ${COST_KIB_MAX} KiB each: ${what} (${protocol})`, async (t) => {
        const { kib, ...all } = await run({ protocol, ...kind, count: STALLED })
        const firstKib = all.firstKib ?? (await run({ protocol, ...kind, count: FIRST })).kib
        const each = (kib - firstKib) / (STALLED - FIRST)
        t.diagnostic(
          `the server has ${(kib / KIB).toFixed(0)} MiB: ${each.toFixed(0)} KiB for each`,
        )
        assert.ok(each < COST_KIB_MAX, `${each} KiB for each`)
      })
    }
  }
})

/**
 * The memory of a server after the load, in KiB; and when the first of the late watchers connected.
 */
async function run(
  stalling: Stalling,
): Promise<{ readonly kib: number; readonly firstKib: number | undefined }> {
  await using replicas = await Replicas.start(1)
  using client = await replicas.client(0)
  using reader = await replicas.client(0)
  const server = replicas.server(0)
  const { metadata } = await client.list(NAMESPACE)
  const from = { resourceVersion: metadata.resourceVersion }
  const healthy = await Promise.all(
    Array.from({ length: HEALTHY }, async () => new WatchLog(await reader.watch(NAMESPACE, from))),
  )
  const query = stalling.isAll ? '' : `&resourceVersion=${metadata.resourceVersion}`
  const open = (count: number): Promise<StalledWatchers> =>
    StalledWatchers.open({
      port: server.port,
      ca: server.ca,
      token: ADMIN_TOKEN,
      path: `${reader.path(NAMESPACE)}?watch=true${query}`,
      http1: stalling.protocol === 'http1' ? count : 0,
      http2: stalling.protocol === 'http2' ? count : 0,
    })
  using early = stalling.isBefore ? await open(stalling.count) : undefined

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
  const isLate = !stalling.isBefore
  using first = isLate ? await open(FIRST) : undefined
  if (isLate) await sleep(WATCH_MS)
  const firstKib = isLate ? await residentKib(server) : undefined
  using _late = isLate ? await open(stalling.count - FIRST) : undefined
  await sleep(WATCH_MS)
  const kib = await residentKib(server)

  // Others are still served, and a watcher that reads at last has missed nothing.
  assert.ok(percentile(tookMs, 0.99) < 2000, `creates p99 ${percentile(tookMs, 0.99)} ms`)
  const stream = (early ?? first)?.streams[0]
  if (stream !== undefined && !stalling.isAll) {
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
  return { kib, firstKib }
}
