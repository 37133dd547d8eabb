/**
 * What a crowd of watchers was sent, when all of them were owed the same bytes. Whoever comes to a
 * place first writes it down, everybody else is compared with it: a comparison of memory, so that
 * the watching does not cost more than the serving.
 */

/** Of delays: a tenth of a millisecond each, the last one takes all that is longer. */
const BUCKET_US = 100
const BUCKETS = 100_000

export class CrowdRecord {
  #bytes = Buffer.allocUnsafe(1024 * 1024)
  #length = 0
  /** Where each frame ends. */
  readonly #ends: number[] = []
  readonly #onFrame: (line: string) => void

  /** `onFrame` is told of every frame once, with its text, by whoever is the first to have it. */
  constructor(onFrame: (line: string) => void) {
    this.#onFrame = onFrame
  }

  get frames(): number {
    return this.#ends.length
  }

  /** A watcher at the very beginning. */
  watcher(): CrowdWatcher {
    return new CrowdWatcher(this)
  }

  /** Whether these bytes belong here, of which the ones past the end are believed. */
  accept(offset: number, chunk: Buffer): boolean {
    const known = Math.min(chunk.length, this.#length - offset)
    const isSame = this.#bytes.compare(chunk, 0, known, offset, offset + known) === 0
    if (!isSame) return false
    if (known < chunk.length) this.#append(chunk.subarray(known))
    return true
  }

  /** How many frames end at or before the offset, counted on from `frame`. */
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

/** One of the crowd. */
export class CrowdWatcher {
  readonly #record: CrowdRecord
  #offset = 0
  #frames = 0
  /** What it was sent is not what others were. */
  isAstray = false

  constructor(record: CrowdRecord) {
    this.#record = record
  }

  /** Frames it has had in full. */
  get frames(): number {
    return this.#frames
  }

  /** Takes what came; `onFrames` is told which frames that has completed. */
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

/** Counts delays; made for millions of them. */
export class Delays {
  readonly #counts = new Uint32Array(BUCKETS)
  #total = 0

  add(us: number): void {
    const bucket = Math.min(BUCKETS - 1, Math.max(0, Math.floor(us / BUCKET_US)))
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1
    this.#total += 1
  }

  /** In milliseconds, the end of its bucket. */
  percentile(share: number): number {
    let left = Math.ceil(this.#total * share)
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      left -= this.#counts[bucket] ?? 0
      if (left <= 0) return ((bucket + 1) * BUCKET_US) / 1000
    }
    return Number.POSITIVE_INFINITY
  }
}
