import { AbortListener } from '../lib/abort.ts'
import { throwIfAborted } from '../storage/aborted-read.ts'
import { isAfter, type Version } from '../storage/resource-version.ts'
import type { ConnectionNumber, Newest } from '../storage/storage.ts'

interface Waiter extends Newest {
  end(isReached: boolean): void
}

/** Reads that wait until memory reaches a version, in a verified history. */
export class Progress {
  readonly #requestProgress: () => void
  #waiters = new Set<Waiter>()

  /** `requestProgress` asks the store for a progress notification; called while reads wait. */
  constructor(requestProgress: () => void) {
    this.#requestProgress = requestProgress
  }

  get waiting(): number {
    return this.#waiters.size
  }

  /**
   * Resolves to whether memory reached the version, in the history that the connection leads to,
   * before the timeout and before `giveUp`.
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
      const giveUp = () => {
        this.#waiters.delete(waiter)
        end(false)
      }
      const timer = setTimeout(giveUp, waitMsMax)
      const listener = new AbortListener(signal, giveUp)
      this.#waiters.add(waiter)
      this.#requestProgress()
    })
    throwIfAborted(signal)
    return isReached
  }

  /** Memory has reached `version`; connections up to `verified` lead to the same history. */
  reached(version: Version, verified: ConnectionNumber): void {
    for (const waiter of this.#waiters) {
      if (isAfter(waiter.version, version) || waiter.connection > verified) continue
      this.#waiters.delete(waiter)
      waiter.end(true)
    }
    if (this.#waiters.size > 0) this.#requestProgress()
  }

  /** Ends all waits: memory will not advance for some time. */
  giveUp(): void {
    const all = this.#waiters
    this.#waiters = new Set()
    for (const waiter of all) waiter.end(false)
  }
}
