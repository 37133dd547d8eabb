import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

/** What a client does. With a rate it sends on schedule, otherwise as fast as it is answered. */
export interface LoadOrder {
  readonly port: number
  readonly ca: string
  /** Tells this load apart from others in what it writes. */
  readonly id: string
  /** One for each connection, in turn. */
  readonly tokens: readonly string[]
  readonly connections: number
  /** HTTP/2 unless it says otherwise, as API clients do; HTTP/1.1 has one request on each. */
  readonly protocol?: 'http1'
  readonly perSecond?: number
  readonly concurrency?: number
  readonly ms: number
  /** An answer after this long is of no use any more. */
  readonly deadlineMs: number
  /** Of a schedule: answers that come after its end count too. */
  readonly countsLate?: boolean
  /**
   * One after the other, over and over. `NUMBER` in a path or body becomes one of a few hundred
   * numbers, `UNIQUE` a word of its own.
   */
  readonly requests: readonly LoadRequest[]
  /** How many numbers there are. */
  readonly names?: number
}

export interface LoadRequest {
  readonly method: string
  readonly path: string
  readonly body?: string
}

export interface LoadResult {
  readonly sent: number
  /** Would have been sent, but the server had not given back a stream yet. */
  readonly unsent: number
  /** 2xx, in time. */
  readonly ok: number
  readonly refused: number
  /** Refused without being told when to come back. */
  readonly refusedWithoutDate: number
  readonly failed: number
  readonly seconds: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** What else happened, and how often. */
  readonly others: Readonly<Record<string, number>>
}

/**
 * Runs the loads side by side, each in a thread of its own, all starting at the same moment, of
 * which `onStart` hears.
 */
export async function runLoads(
  orders: readonly LoadOrder[],
  onStart: () => void = () => {},
): Promise<readonly LoadResult[]> {
  const workers = orders.map(
    (order) => new Worker(new URL('./load-worker.ts', import.meta.url), { workerData: order }),
  )
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  const results = workers.map(async (worker) => (await once(worker, 'message'))[0] as LoadResult)
  for (const worker of workers) worker.postMessage('go')
  onStart()
  try {
    return await Promise.all(results)
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()))
  }
}
