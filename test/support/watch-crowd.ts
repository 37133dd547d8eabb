import { once } from 'node:events'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Change } from './watch-sequence.ts'

export interface CrowdOptions {
  readonly port: number
  readonly ca: string
  readonly token: string
  readonly sessions: number
  readonly watchersPerSession: number
  readonly namespace: string
  readonly resourceVersion: string
  /** Events with a smaller number are not timed. */
  readonly untimed: number
  /** Microseconds, by the number at the end of the event's name; 0 means not yet. */
  readonly sentAt: SharedArrayBuffer
  readonly answeredAt: SharedArrayBuffer
}

export interface CrowdReport {
  /** The changes that the watchers received, in order. */
  readonly changes: readonly Change[]
  /** Watchers that received other bytes than the rest. */
  readonly astray: number
  readonly incomplete: number
  /** Watchers whose stream has ended. */
  readonly cut: number
  /** The sum over all watchers. */
  readonly frames: number
  readonly sinceSentMs: Percentiles
  /** Time from the response to the create until a watcher received it; 0 if it received it earlier. */
  readonly sinceAnsweredMs: Percentiles
}

interface Percentiles {
  readonly p50: number
  readonly p99: number
}

/** Many watchers of one namespace, in their own thread. */
export class WatchCrowd implements AsyncDisposable {
  readonly #worker: Worker

  /** Resolves when every watch has begun. */
  static async open(options: CrowdOptions): Promise<WatchCrowd> {
    const worker = new Worker(join(import.meta.dirname, 'watch-crowd-worker.ts'), {
      workerData: options,
    })
    await once(worker, 'message')
    return new WatchCrowd(worker)
  }

  private constructor(worker: Worker) {
    this.#worker = worker
  }

  /** Waits a limited time until all have this many frames, and returns the results. */
  async report(frames: number): Promise<CrowdReport> {
    this.#worker.postMessage(frames)
    const [report] = await once(this.#worker, 'message')
    return report
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate()
  }
}

/** A clock that all threads share. */
export function microseconds(): number {
  return Number(process.hrtime.bigint() / 1000n)
}
