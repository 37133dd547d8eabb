import type { KnownHistory } from '../election/known-history.ts'
import type { ConnectionNumber } from '../etcd/client.ts'

/** How long a new connection counts as unverified, which lets deletes in flight end. */
const settleMs = 1_000

/**
 * The history of etcd for a replica without a cache, which cannot verify it: each new connection may
 * lead to an etcd that was restored from a snapshot. `onForget` must discard everything known about
 * the former history; after that, the newest connection counts as verified.
 */
export class ConnectionHistory implements KnownHistory {
  readonly #newest: () => ConnectionNumber
  readonly #onForget: () => void
  #known: ConnectionNumber | undefined
  #settling: NodeJS.Timeout | undefined

  constructor(newest: () => ConnectionNumber, onForget: () => void) {
    this.#newest = newest
    this.#onForget = onForget
  }

  verified(): ConnectionNumber {
    return this.isVerified() ? this.#newest() : 0
  }

  isVerified(): boolean {
    this.#known ??= this.#newest()
    if (this.#known === this.#newest()) return true
    this.#settling ??= setTimeout(() => this.#forget(), settleMs).unref()
    return false
  }

  verify(): void {
    this.isVerified()
  }

  #forget(): void {
    this.#settling = undefined
    this.#known = this.#newest()
    this.#onForget()
  }
}
