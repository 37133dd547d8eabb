import { once } from 'node:events'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'

export interface ReadersOptions {
  /** The server, without a path. */
  readonly url: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly sessions: number
  readonly streamsPerSession: number
}

/** Many responses without an end, read in a thread of their own and thrown away. */
export class Readers implements AsyncDisposable {
  readonly #worker: Worker

  /** Resolves when every response has begun. */
  static async open(options: ReadersOptions): Promise<Readers> {
    const file = join(import.meta.dirname, 'readers-worker.ts')
    const worker = new Worker(file, { workerData: options })
    await once(worker, 'message')
    return new Readers(worker)
  }

  private constructor(worker: Worker) {
    this.#worker = worker
  }

  /** Resolves when all of them together have received this many more lines than at the last call. */
  async received(lines: number): Promise<void> {
    this.#worker.postMessage(lines)
    await once(this.#worker, 'message')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate()
  }
}
