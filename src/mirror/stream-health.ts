import type { Clock } from '../lib/clock.ts'
import type { StorageError } from '../storage/errors.ts'
import type { OriginError } from './origin.ts'

/** An origin that cannot be followed for this long is reported. */
const stalledAfterMs = 30_000

export type StreamState = 'Syncing' | 'Following' | 'Stalled'

/** Whether a stream follows its origin, how far it lags, and why. */
export class StreamHealth {
  readonly #clock: Clock
  #isLive = false
  /** The origin has accepted a watch since the start. */
  #hasBeenLive = false
  /** Since when the stream does not follow the origin, while it is not live. */
  #behindSince: number
  #originFailure: OriginError | undefined
  #storageFailure: StorageError | undefined

  constructor(clock: Clock) {
    this.#clock = clock
    this.#behindSince = clock.now()
  }

  get isLive(): boolean {
    return this.#isLive
  }

  /** It would follow the origin for the first time, or again after a failure. */
  get isNews(): boolean {
    return !this.#hasBeenLive || this.#originFailure !== undefined
  }

  /** A watch of the origin works. */
  started(): void {
    this.#isLive = true
    this.#hasBeenLive = true
    this.#originFailure = undefined
  }

  ended(): void {
    if (this.#isLive) this.#behindSince = this.#clock.now()
    this.#isLive = false
  }

  /** The origin failed. That a version is too old is not a failure: it is listed again. */
  failed(error: OriginError): void {
    this.ended()
    if (error.kind !== 'expired') this.#originFailure = error
  }

  /** A write failed and is repeated; undefined when one has succeeded. */
  set storageFailure(error: StorageError | undefined) {
    this.#storageFailure = error
  }

  /**
   * How long ago everything that the origin had then was stored. `oldestAt`: when the oldest change
   * that is not stored yet arrived.
   */
  lagMs(oldestAt: number | undefined): number {
    const now = this.#clock.now()
    const since = this.#isLive ? now : this.#behindSince
    return Math.max(0, now - Math.min(since, oldestAt ?? now))
  }

  state(oldestAt: number | undefined, isListing: boolean): StreamState {
    // A long list is not a failure.
    const isLate = this.lagMs(oldestAt) > stalledAfterMs
    const isRefused = this.#originFailure?.kind === 'refused'
    if (isRefused || (isLate && this.message !== '')) return 'Stalled'
    return isListing || !this.#hasBeenLive ? 'Syncing' : 'Following'
  }

  /** Why the stream lags, if it is known. */
  get message(): string {
    if (this.#originFailure !== undefined) return this.#originFailure.message
    const why = this.#storageFailure
    return why === undefined ? '' : `events cannot be stored: ${why.reason ?? why.message}`
  }
}
