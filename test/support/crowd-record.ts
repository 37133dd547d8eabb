/**
 * Checks that all watchers of a crowd receive the same bytes. The first watcher that reaches an
 * offset records the bytes, and all others are compared with them: a comparison of memory, so that
 * checking does not cost more than serving.
 */

/** Buckets of delays: a tenth of a millisecond each; the last one counts all longer delays. */
const BUCKET_US = 100
const BUCKETS = 100_000

export class CrowdRecord {
  #bytes = Buffer.allocUnsafe(1024 * 1024)
  #length = 0
  /** Where each frame ends. */
  readonly #ends: number[] = []
  readonly #onFrame: (line: string) => void

  /**
   * `onFrame` is called once for every frame, with its text, when the first watcher has received
   * it.
   */
  constructor(onFrame: (line: string) => void) {
    this.#onFrame = onFrame
  }

  get frames(): number {
    return this.#ends.length
  }

  /** A watcher at the beginning of the stream. */
  watcher(): CrowdWatcher {
    return new CrowdWatcher(this)
  }

  /**
   * Whether the bytes equal the recorded ones; bytes past the end of the record are appended to it.
   */
  accept(offset: number, chunk: Buffer): boolean {
    const known = Math.min(chunk.length, this.#length - offset)
    const isSame = this.#bytes.compare(chunk, 0, known, offset, offset + known) === 0
    if (!isSame) return false
    if (known < chunk.length) this.#append(chunk.subarray(known))
    return true
  }

  /** How many frames end at or before the offset, counting from `frame`. */
  framesUpTo(offset: number, frame: number): number {
    let next = frame
    while (next < this.#ends.length && (this.#ends[next] ?? 0) <= offset) next += 1
    return next
  }

  #append(piece: Buffer): void {
    let from = this.#ends.at(-1) ?? 0
    const needed = this.#length + piece.length
    if (needed > this.#bytes.length) {
      this.#bytes = Buffer.concat([this.#bytes], Math.max(needed, this.#bytes.length * 2))
    }
    piece.copy(this.#bytes, this.#length)
    let end = this.#bytes.subarray(0, needed).indexOf('\n', this.#length)
    this.#length = needed
    while (end !== -1) {
      this.#onFrame(this.#bytes.toString('utf8', from, end))
      this.#ends.push(end + 1)
      from = end + 1
      end = this.#bytes.subarray(0, needed).indexOf('\n', from)
    }
  }
}

/** One watcher of the crowd. */
export class CrowdWatcher {
  readonly #record: CrowdRecord
  #offset = 0
  #frames = 0
  /** It has received other bytes than the others. */
  isAstray = false

  constructor(record: CrowdRecord) {
    this.#record = record
  }

  /** Frames that it has received completely. */
  get frames(): number {
    return this.#frames
  }

  /** Takes received bytes; `onFrames` is called with the frames that they complete. */
  take(chunk: Buffer, onFrames: (first: number, end: number) => void): void {
    if (this.isAstray || !this.#record.accept(this.#offset, chunk)) {
      this.isAstray = true
      return
    }
    this.#offset += chunk.length
    const end = this.#record.framesUpTo(this.#offset, this.#frames)
    if (end > this.#frames) onFrames(this.#frames, end)
    this.#frames = end
  }
}

/** A histogram of delays, for millions of them. */
export class Delays {
  readonly #counts = new Uint32Array(BUCKETS)
  #total = 0

  add(us: number): void {
    const bucket = Math.min(BUCKETS - 1, Math.max(0, Math.floor(us / BUCKET_US)))
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1
    this.#total += 1
  }

  /** Returns the upper end of the percentile's bucket, in milliseconds. */
  percentile(share: number): number {
    let left = Math.ceil(this.#total * share)
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      left -= this.#counts[bucket] ?? 0
      if (left <= 0) return ((bucket + 1) * BUCKET_US) / 1000
    }
    return Number.POSITIVE_INFINITY
  }
}
