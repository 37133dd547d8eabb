import type { Lane } from '../../lib/run-queue.ts'
import { Semaphore } from '../../lib/semaphore.ts'
import { isAfter } from '../../storage/resource-version.ts'
import type { ConnectionNumber, WatchBatch } from '../../storage/storage.ts'
import type { FollowedStorage } from '../followed-storage.ts'
import { batchChanges, type CatchUpStep } from './cursor.ts'
import type { History } from './history.ts'

/** At most this many streams to etcd are open for watchers that fell off the ring; others queue. */
export const stepsMax = 16

export interface CatchUpReaderOptions {
  readonly history: History
  readonly store: Pick<FollowedStorage, 'watch'>
  /** The lane of the server, used for watches without a lane of their own. */
  readonly lane: Lane
  /**
   * Whether connections up to this one lead to the history that watchers have read from; waits a
   * while for the verification.
   */
  isSameHistory(connection: ConnectionNumber, signal: AbortSignal): Promise<boolean>
}

/**
 * Reads for watchers that are far behind, one step at a time: from the ring, in turns with others, or
 * from the store's own history.
 */
export class CatchUpReader {
  readonly #options: CatchUpReaderOptions
  readonly #streams = new Semaphore(stepsMax)
  #steps = 0

  constructor(options: CatchUpReaderOptions) {
    this.#options = options
  }

  /** Number of reads from the store. */
  get steps(): number {
    return this.#steps
  }

  /**
   * The next changes in scope, or an empty batch with the version reached. Undefined when aborted,
   * or when the history has changed or cannot be verified; then the watch looks again.
   */
  async read(step: CatchUpStep): Promise<WatchBatch | undefined> {
    const { history } = this.#options
    const { restarts } = history
    const batch = isAfter(history.start, step.from)
      ? await this.#streams.take(async () =>
          step.signal.aborted ? undefined : this.#readStore(step),
        )
      : await this.#readRing(step)
    // After a restart, the batch may belong to another history than what the watch has read before.
    return history.restarts === restarts ? batch : undefined
  }

  /**
   * Always waits for a slice. The time that the queue measures includes what the watcher does with
   * the batch, which it may have to parse for a selector.
   */
  async #readRing({
    scope,
    from,
    signal,
    lane = this.#options.lane,
  }: CatchUpStep): Promise<WatchBatch | undefined> {
    await lane.next(signal)
    const { history } = this.#options
    if (signal.aborted || isAfter(history.start, from)) return undefined
    const until = { position: history.head, version: history.version }
    const position = history.positionAfter(from)
    const { items, version } = history.read(position, { scope, until, enough: batchChanges })
    return { items, version }
  }

  async #readStore({ scope, from, signal }: CatchUpStep): Promise<WatchBatch | undefined> {
    this.#steps++
    const done = new AbortController()
    const { history, store, isSameHistory } = this.#options
    const until = history.start
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
