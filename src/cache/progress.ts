import { isAfter, type Version } from '../storage/resource-version.ts'
import type { ConnectionNumber, Newest } from '../storage/storage.ts'
import { throwIfAborted } from './turns.ts'

interface Waiter extends Newest {
  end(isReached: boolean): void
}

/** How far memory has come, in which history, and who waits for it to come further. */
export class Progress {
  readonly #hurry: () => void
  #waiters = new Set<Waiter>()

  /** `hurry` asks for news of progress; called while somebody waits. */
  constructor(hurry: () => void) {
    this.#hurry = hurry
  }

  get waiting(): number {
    return this.#waiters.size
  }

  /**
   * Resolves to whether the version was reached, in the history that the connection leads to, before
   * the time was over or all was given up.
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
        signal.removeEventListener('abort', giveUp)
        resolve(reached)
      }
      const waiter = { version, connection, end }
      const giveUp = () => {
        this.#waiters.delete(waiter)
        end(false)
      }
      const timer = setTimeout(giveUp, waitMsMax)
      signal.addEventListener('abort', giveUp)
      this.#waiters.add(waiter)
      this.#hurry()
    })
    throwIfAborted(signal)
    return isReached
  }

  /** What comes over connections up to `verified` is of the history that memory is of. */
  reached(version: Version, verified: ConnectionNumber): void {
    for (const waiter of this.#waiters) {
      if (isAfter(waiter.version, version) || waiter.connection > verified) continue
      this.#waiters.delete(waiter)
      waiter.end(true)
    }
    if (this.#waiters.size > 0) this.#hurry()
  }

  /** Nothing will be reached for some time. */
  giveUp(): void {
    const all = this.#waiters
    this.#waiters = new Set()
    for (const waiter of all) waiter.end(false)
  }
}
