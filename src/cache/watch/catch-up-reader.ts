import { Semaphore } from '../../lib/semaphore.ts'
import { isAfter } from '../../storage/resource-version.ts'
import type { ConnectionNumber, WatchBatch } from '../../storage/storage.ts'
import type { FollowedStorage } from '../followed-storage.ts'
import type { CatchUpStep } from './cursor.ts'

/**
 * At most this many streams to etcd are open for watchers that have fallen behind; others queue.
 */
export const stepsMax = 16

export interface CatchUpReaderOptions {
  readonly store: Pick<FollowedStorage, 'watch'>
  /**
   * Whether connections up to this one lead to the history that watchers have read from; waits a
   * while for the verification.
   */
  isSameHistory(connection: ConnectionNumber, signal: AbortSignal): Promise<boolean>
}

/**
 * Reads changes that were evicted from the ring from the store's own history, one step at a time.
 */
export class CatchUpReader {
  readonly #options: CatchUpReaderOptions
  readonly #semaphore = new Semaphore(stepsMax)
  #steps = 0

  constructor(options: CatchUpReaderOptions) {
    this.#options = options
  }

  /** Number of reads from the store. */
  get steps(): number {
    return this.#steps
  }

  /**
   * The next changes in scope, or an empty batch with the version reached if there are none up to
   * `until`. Undefined when aborted, or when the history cannot be verified.
   */
  read(step: CatchUpStep): Promise<WatchBatch | undefined> {
    return this.#semaphore.take(async () => (step.signal.aborted ? undefined : this.#read(step)))
  }

  async #read(step: CatchUpStep): Promise<WatchBatch | undefined> {
    const { scope, from, until, signal } = step
    this.#steps++
    const done = new AbortController()
    const { store, isSameHistory } = this.#options
    const watch = store.watch(scope, { from, signal: AbortSignal.any([signal, done.signal]) })
    watch.requestProgress()
    try {
      for await (const batch of watch) {
        if (batch.items.length === 0 && isAfter(until, batch.version)) continue
        // Verifies this stream's connection only: other reconnects are no reason to distrust it.
        return (await isSameHistory(watch.connection, signal)) ? batch : undefined
      }
      return undefined
    } finally {
      done.abort()
    }
  }
}
