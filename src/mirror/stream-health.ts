import type { Clock } from '../lib/clock.ts'
import type { StorageError } from '../storage/errors.ts'
import type { OriginError } from './origin.ts'

/** A stream that lags for longer than this is reported as stalled. */
const stalledAfterMs = 30_000

export type StreamState = 'Syncing' | 'Following' | 'Stalled'

/** Whether a stream follows its origin, how far it lags, and why. */
export class StreamHealth {
  readonly #clock: Clock
  /** Whether the origin has accepted the watch. */
  #isLive = false
  #hasBeenLive = false
  /** Whether the watch has delivered what the origin had when it began. */
  #isCaughtUp = false
  #hasCaughtUp = false
  /** When the stream stopped following the origin, while it has not caught up. */
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

  get isCaughtUp(): boolean {
    return this.#isCaughtUp
  }

  /** Whether becoming live would be the first time, or the first time after a failure. */
  get isNews(): boolean {
    return !this.#hasBeenLive || this.#originFailure !== undefined
  }

  started(): void {
    this.#isLive = true
    this.#hasBeenLive = true
    this.#originFailure = undefined
  }

  caughtUp(): void {
    this.#isCaughtUp = true
    this.#hasCaughtUp = true
  }

  ended(): void {
    if (this.#isCaughtUp) this.#behindSince = this.#clock.now()
    this.#isLive = false
    this.#isCaughtUp = false
  }

  /** A version that is too old is not a failure: the origin is listed again. */
  failed(error: OriginError): void {
    this.ended()
    if (error.kind !== 'expired') this.#originFailure = error
  }

  /** The failure of a write that is being repeated; undefined once a write has succeeded. */
  set storageFailure(error: StorageError | undefined) {
    this.#storageFailure = error
  }

  /**
   * How far the stored events lag behind the origin. `oldestAt` is when the oldest change that is not
   * stored yet arrived.
   */
  lagMs(oldestAt: number | undefined): number {
    const now = this.#clock.now()
    const since = this.#isCaughtUp ? now : this.#behindSince
    return Math.max(0, now - Math.min(since, oldestAt ?? now))
  }

  state(oldestAt: number | undefined, isListing: boolean): StreamState {
    // A long list is not a failure.
    const isLate = this.lagMs(oldestAt) > stalledAfterMs
    const isRefused = this.#originFailure?.kind === 'refused'
    if (isRefused || (isLate && this.message !== '')) return 'Stalled'
    // Between two watches a stream that had caught up is behind for a moment only.
    const isBehind = !this.#hasCaughtUp || (isLate && !this.#isCaughtUp)
    return isListing || isBehind ? 'Syncing' : 'Following'
  }

  /** Why the stream lags; empty when unknown. */
  get message(): string {
    if (this.#originFailure !== undefined) return this.#originFailure.message
    const why = this.#storageFailure
    return why === undefined ? '' : `events cannot be stored: ${why.reason ?? why.message}`
  }
}
