import { createHistogram } from 'node:perf_hooks'
import type { CachedStorage } from '../../src/cache/cached-storage.ts'
import { type FrameEncoder, framesOf } from '../../src/storage/frames.ts'
import type { PulledWatch, WatchBatch } from '../../src/storage/storage.ts'
import { served } from '../../src/storage/stored-form.ts'
import { objectOf } from './events.ts'
import type { Figures } from './figures.ts'
import type { Order } from './orders.ts'

const MiB = 1024 ** 2
const cursorsTotal = 10_000
const stalledTotal = 1_000
/** 200,000 frames a second. */
const steady = { changes: 100, perSecond: 20 }
/** Ten times that: the throughput when consumers cost next to nothing. */
const stress = { changes: 1_000, perSecond: 200 }

/** One frame for each change, as in a JSON watch. */
const encoder: FrameEncoder = {
  encode: ({ stored }) =>
    Buffer.concat([
      Buffer.from('{"type":"MODIFIED","object":'),
      served(stored),
      Buffer.from('}\n'),
    ]),
}

interface Options {
  readonly storage: CachedStorage
  readonly figures: Figures
  readonly count: number
  readonly carriedOut: (order: Order) => Promise<void>
}

/**
 * Ten thousand watchers of everything, with and without a tenth of them stalled. The two alternate,
 * since other programs use the same machine, and the best round of each counts.
 */
export async function measureFanOut(options: Options): Promise<void> {
  const { figures } = options
  const before = process.memoryUsage.rss()
  const free: Outcome[] = []
  const mixed: Outcome[] = []
  const everybody = { ...steady, everywhere: cursorsTotal, stalled: 0 }
  await round(options, everybody)
  for (let run = 0; run < 3; run++) {
    free.push(await round(options, everybody))
    mixed.push(await round(options, { ...everybody, stalled: stalledTotal }))
  }
  const grown = (process.memoryUsage.rss() - before) / MiB
  const best = (outcomes: readonly Outcome[], of: 'p99' | 'mean') =>
    Math.min(...outcomes.map((outcome) => outcome[of]))
  figures.note('10,000 watchers of all, delay on average', best(free, 'mean'), 'ms')
  figures.note('10,000 watchers of all, delay p99', best(free, 'p99'), 'ms')
  const ratio = best(mixed, 'mean') / best(free, 'mean')
  figures.check('delay with 1,000 stalled against without', ratio, { atMost: 1.2, unit: 'times' })
  figures.check('memory grown with 1,000 of 10,000 stalled', grown, { atMost: 256, unit: 'MiB' })
  const scoped = await round(options, { ...stress, everywhere: 0, stalled: 0 })
  figures.note('10,000 watchers of one namespace each, 200/s, delay p99', scoped.p99, 'ms')
  const most = await round(options, { ...everybody, ...stress })
  figures.note('10,000 watchers of all, 200/s: frames a second', most.framesPerSecond, '')
  figures.note('10,000 watchers of all, 200/s: delay p99', most.p99, 'ms')
}

interface Outcome {
  readonly p99: number
  readonly mean: number
  readonly framesPerSecond: number
}

async function round(
  { storage, count, carriedOut }: Options,
  crowd: {
    readonly everywhere: number
    readonly stalled: number
    readonly changes: number
    readonly perSecond: number
  },
): Promise<Outcome> {
  // One signal for each watch, as for requests; removing a listener from a shared one is linear.
  const ends = Array.from({ length: cursorsTotal }, () => new AbortController())
  const { version } = storage.stats()
  const delays = createHistogram()
  let frames = 0
  let bytes = 0
  const consumers: Promise<void>[] = []
  for (const [n, { signal }] of ends.entries()) {
    const isStalled = n < crowd.stalled
    const namespace =
      n < crowd.everywhere ? undefined : objectOf(Math.floor(Math.random() * count)).namespace
    const watch = storage.watch({ cluster: 'local', namespace }, { from: version, signal })
    const onBatch = (batch: WatchBatch) => {
      for (const piece of framesOf(batch, encoder)) bytes += piece.length
      frames += batch.items.length
      const oldest = batch.items[0]
      if (oldest !== undefined) delays.record(Math.max(1, Date.now() - oldest.stored.writtenAtMs))
    }
    consumers.push(consumed(watch, { onBatch, isStalled }))
    if (n % 100 === 0) await new Promise(setImmediate)
  }
  const began = performance.now()
  await carriedOut({ type: 'update', changes: crowd.changes, perSecond: crowd.perSecond })
  const seconds = (performance.now() - began) / 1000
  await new Promise((resolve) => setTimeout(resolve, 300))
  for (const [n, end] of ends.entries()) {
    end.abort()
    if (n % 100 === 0) await new Promise(setImmediate)
  }
  await Promise.all(consumers)
  if (bytes === 0) throw new Error('nothing was fanned out')
  return {
    p99: delays.percentile(99),
    mean: delays.mean,
    framesPerSecond: frames / seconds,
  }
}

/** Takes batches as the server does. A stalled watcher never takes a second batch. */
function consumed(
  watch: PulledWatch,
  how: { readonly onBatch: (batch: WatchBatch) => void; readonly isStalled: boolean },
): Promise<void> {
  return new Promise((resolve) => {
    const more = (): void => {
      for (let batch = watch.take(more); batch !== undefined; batch = watch.take(more)) {
        how.onBatch(batch)
        if (how.isStalled) break
      }
      if (how.isStalled || watch.isOver) resolve()
    }
    more()
  })
}
