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
  /** Microseconds, by the number at the end of the event's name; 0 is not yet. */
  readonly sentAt: SharedArrayBuffer
  readonly answeredAt: SharedArrayBuffer
}

export interface CrowdReport {
  /** What the watchers were told, in the order in which they were. */
  readonly changes: readonly Change[]
  /** Watchers who were told something else than the others. */
  readonly astray: number
  readonly incomplete: number
  /** Watchers whose stream has ended. */
  readonly cut: number
  /** In all. */
  readonly frames: number
  readonly sinceSentMs: Percentiles
  /** From the answer to the create until a watcher had it; 0 when it had it before that. */
  readonly sinceAnsweredMs: Percentiles
}

interface Percentiles {
  readonly p50: number
  readonly p99: number
}

/** Many watchers of one namespace, in a thread of their own. */
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

  /** Waits until all have this many frames, but not for long, and tells how it went. */
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
