/**
 * Caches encoded list entries by run. A run identifies a stretch of events that does not change,
 * and most of a long list is the same from one request to the next, so the bytes can be sent again.
 *
 * The cache is bounded by bytes. When it is full, only stale or idle entries are evicted, never
 * those in use: a list longer than the cache would otherwise evict each run just before the next
 * list needs it. One timer evicts idle entries; it runs only while there are entries.
 */
import { type Clock, monotonicClock } from '../../lib/clock.ts'
import type { EventRun } from '../../storage/storage.ts'
import type { ResponseEncoder } from './response-encoder.ts'

export const encodedRunsBytesMax: number = 32 * 1024 * 1024
/** An entry without a hit for this long is idle. */
const idleMsMax = 60_000
/** The same for an entry that only the list which added it has used. */
const singleUseIdleMsMax = 5_000
/** A full cache looks for entries to evict at most this often. */
const sweepIntervalMs = 1_000

interface Entry {
  readonly encoder: ResponseEncoder
  readonly run: EventRun
  readonly bytes: Buffer
  usedAtMs: number
  /** Not counting the pass that measures the list. More than one means several lists used it. */
  uses: number
}

export class EncodedRunCache {
  readonly #bytesMax: number
  readonly #clock: Clock
  readonly #entries = new Set<Entry>()
  /**
   * One key for each encoder that has encoded the run; undefined while that entry is not cached.
   */
  readonly #byRun = new WeakMap<EventRun, Map<ResponseEncoder, Entry | undefined>>()
  #bytes = 0
  #hits = 0
  #sweptAtMs = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  constructor(options: { readonly bytesMax?: number | undefined; readonly clock?: Clock } = {}) {
    this.#bytesMax = options.bytesMax ?? encodedRunsBytesMax
    this.#clock = options.clock ?? monotonicClock
  }

  /** The size of all entries. */
  get bytes(): number {
    return this.#bytes
  }

  /** The number of cache hits. */
  get hits(): number {
    return this.#hits
  }

  /** The bytes that were added for this run and encoder. */
  find(encoder: ResponseEncoder, run: EventRun): Buffer | undefined {
    const entry = this.#byRun.get(run)?.get(encoder)
    if (entry === undefined) return undefined
    entry.usedAtMs = this.#clock.now()
    entry.uses += 1
    this.#hits += 1
    return entry.bytes
  }

  /**
   * Copies the bytes if there is space and this is the second time that this encoder has encoded
   * the run. A length-prefixed encoder needs them again at once, to send what it has just measured,
   * so its bytes are cached the first time.
   */
  add(encoder: ResponseEncoder, run: EventRun, encoded: Uint8Array): void {
    const entries = this.#entriesOf(run)
    const isCachedAtOnce = encoder.isLengthPrefixed === true
    if (!isCachedAtOnce && !entries.has(encoder)) {
      entries.set(encoder, undefined)
      return
    }
    if (run.isPast || entries.get(encoder) !== undefined) return
    if (!this.#hasSpaceFor(encoded.length)) return
    const bytes = Buffer.allocUnsafeSlow(encoded.length)
    bytes.set(encoded)
    // The list that measured these bytes will read them once more itself.
    const uses = isCachedAtOnce ? 0 : 2
    const entry = { encoder, run, bytes, usedAtMs: this.#clock.now(), uses }
    entries.set(encoder, entry)
    this.#entries.add(entry)
    this.#bytes += bytes.length
    this.#timer ??= setInterval(() => this.#evictIdle(), idleMsMax).unref()
  }

  #evictIdle(): void {
    this.#sweep(this.#clock.now())
    if (this.#entries.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #entriesOf(run: EventRun): Map<ResponseEncoder, Entry | undefined> {
    const known = this.#byRun.get(run)
    if (known !== undefined) return known
    const entries = new Map<ResponseEncoder, Entry | undefined>()
    this.#byRun.set(run, entries)
    return entries
  }

  #hasSpaceFor(length: number): boolean {
    if (this.#bytes + length <= this.#bytesMax) return true
    const now = this.#clock.now()
    if (now - this.#sweptAtMs < sweepIntervalMs) return false
    this.#sweep(now)
    return this.#bytes + length <= this.#bytesMax
  }

  #sweep(now: number): void {
    this.#sweptAtMs = now
    for (const entry of this.#entries) {
      const idleMs = now - entry.usedAtMs
      const isIdle = idleMs > (entry.uses > 1 ? idleMsMax : singleUseIdleMsMax)
      if (entry.run.isPast || isIdle) this.#evict(entry)
    }
  }

  #evict(entry: Entry): void {
    this.#entries.delete(entry)
    this.#bytes -= entry.bytes.length
    this.#byRun.get(entry.run)?.set(entry.encoder, undefined)
  }
}
