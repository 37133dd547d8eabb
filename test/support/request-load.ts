import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

/**
 * The load of one client. With a rate it sends on a schedule, otherwise as fast as it gets
 * responses.
 */
export interface LoadOrder {
  readonly port: number
  readonly ca: string
  /** Marks the writes of this load. */
  readonly id: string
  /** Assigned to the connections in rotation. */
  readonly tokens: readonly string[]
  readonly connections: number
  /** HTTP/2 by default, as API clients use; HTTP/1.1 has one request on each connection. */
  readonly protocol?: 'http1'
  readonly perSecond?: number
  readonly concurrency?: number
  readonly ms: number
  /** A later response counts as failed. */
  readonly deadlineMs: number
  /** Whether responses after the end of the schedule count too. */
  readonly countsLate?: boolean
  /**
   * Sent in rotation. `NUMBER` in a path or body becomes one of a few hundred numbers, `UNIQUE` a
   * unique word.
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
  /** Requests on schedule for which no stream was free. */
  readonly unsent: number
  /** 2xx, in time. */
  readonly ok: number
  readonly refused: number
  /** 429 without a valid Retry-After. */
  readonly refusedWithoutDate: number
  readonly failed: number
  readonly seconds: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Other events, with their counts. */
  readonly others: Readonly<Record<string, number>>
}

/**
 * Runs the loads concurrently, each in its own thread. All start at the same moment, at which
 * `onStart` is called.
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
