import { AbortListener } from '../lib/abort.ts'
import { throwIfAborted } from '../storage/aborted-read.ts'
import { isAfter, type Version } from '../storage/resource-version.ts'
import type { ConnectionNumber, Newest } from '../storage/storage.ts'

interface Waiter extends Newest {
  end(isReached: boolean): void
}

/** The reads that wait until the cache reaches a version on a verified connection. */
export class Progress {
  readonly #requestProgress: () => void
  readonly #waiters = new Set<Waiter>()

  /** `requestProgress` asks the store for a progress notification; called while reads wait. */
  constructor(requestProgress: () => void) {
    this.#requestProgress = requestProgress
  }

  get waiting(): number {
    return this.#waiters.size
  }

  /**
   * Resolves to true once the cache has reached `version` and verified `connection`, and to false after
   * `waitMsMax` or `giveUp`. Does not check the current version: callers do that first.
   */
  async waitFor(
    { version, connection }: Newest,
    options: { readonly signal: AbortSignal; readonly waitMsMax: number },
  ): Promise<boolean> {
    const { signal, waitMsMax } = options
    throwIfAborted(signal)
    const isReached = await new Promise<boolean>((resolve) => {
      const end = (reached: boolean) => {
        clearTimeout(timer)
        listener[Symbol.dispose]()
        resolve(reached)
      }
      const waiter = { version, connection, end }
      const onGivenUp = () => {
        this.#waiters.delete(waiter)
        end(false)
      }
      const timer = setTimeout(onGivenUp, waitMsMax)
      const listener = new AbortListener(signal, onGivenUp)
      this.#waiters.add(waiter)
      this.#requestProgress()
    })
    throwIfAborted(signal)
    return isReached
  }

  /** To be called at `version`; connections up to `verified` serve the history of the cache. */
  reached(version: Version, verified: ConnectionNumber): void {
    for (const waiter of this.#waiters) {
      if (isAfter(waiter.version, version) || waiter.connection > verified) continue
      this.#waiters.delete(waiter)
      waiter.end(true)
    }
    if (this.#waiters.size > 0) this.#requestProgress()
  }

  /** Resolves all waits to false, since the cache has stopped advancing. */
  giveUp(): void {
    for (const waiter of this.#waiters) waiter.end(false)
    this.#waiters.clear()
  }
}
