import { isAfter } from '../storage/resource-version.ts'
import type { ConnectionNumber, WatchBatch } from '../storage/storage.ts'
import type { BehindStep } from './cursor.ts'
import type { FollowedStorage } from './followed-storage.ts'

/** Streams to etcd opened at once by watchers that have fallen behind; the others wait. */
const stepsMax = 16

export interface BehindOptions {
  readonly store: Pick<FollowedStorage, 'watch'>
  /**
   * Whether what comes over connections up to this one is of the history that watchers were told of;
   * waits a while to find out.
   */
  isSameHistory(connection: ConnectionNumber, signal: AbortSignal): Promise<boolean>
}

/** Reads what memory does not have any more from the history of the store, a step at a time. */
export class Behind {
  readonly #options: BehindOptions
  readonly #waiting: (() => void)[] = []
  #running = 0
  #steps = 0

  constructor(options: BehindOptions) {
    this.#options = options
  }

  /** How often the store was asked. */
  get steps(): number {
    return this.#steps
  }

  /** The next changes in scope; none, with the version reached, when `until` comes before them. */
  async read(step: BehindStep): Promise<WatchBatch | undefined> {
    if (this.#running >= stepsMax) {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve)
      })
    }
    this.#running++
    try {
      return step.signal.aborted ? undefined : await this.#read(step)
    } finally {
      this.#running--
      this.#waiting.shift()?.()
    }
  }

  async #read(step: BehindStep): Promise<WatchBatch | undefined> {
    const { scope, from, until, signal } = step
    this.#steps++
    const done = new AbortController()
    const { store, isSameHistory } = this.#options
    const watch = store.watch(scope, { from, signal: AbortSignal.any([signal, done.signal]) })
    watch.requestProgress()
    try {
      for await (const batch of watch) {
        if (batch.items.length === 0 && isAfter(until, batch.version)) continue
        // Of this stream alone: other connections come and go without a reason to doubt it.
        return (await isSameHistory(watch.connection, signal)) ? batch : undefined
      }
      return undefined
    } finally {
      done.abort()
    }
  }
}
