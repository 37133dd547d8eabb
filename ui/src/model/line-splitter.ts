/** Splits bytes into lines, however they are divided into pieces. */

export interface Line {
  readonly text: string
  readonly bytes: number
}

const NEWLINE = 10
/** Initial buffer for an unfinished line; it grows with the line and is replaced afterwards. */
const HELD_BYTES_MIN = 16 * 1024

export class LineSplitter {
  readonly #lineBytesMax: number
  readonly #decoder = new TextDecoder()
  /** The beginning of the unfinished line. */
  #held = new Uint8Array(HELD_BYTES_MIN)
  #heldBytes = 0
  #isSkipping = false
  /** Number of lines that were skipped because they were too long. */
  skippedCount = 0

  constructor(lineBytesMax: number) {
    this.#lineBytesMax = lineBytesMax
  }

  /** Returns the lines that end in this piece, decoded lazily. */
  *split(piece: Uint8Array): Generator<Line> {
    let from = 0
    for (;;) {
      const end = piece.indexOf(NEWLINE, from)
      if (end === -1) break
      const line = this.#finish(piece.subarray(from, end))
      from = end + 1
      if (line !== undefined && line.bytes > 0) yield line
    }
    this.#keep(piece.subarray(from))
  }

  /** Undefined for a line that is skipped. */
  #finish(rest: Uint8Array): Line | undefined {
    let line = rest
    if (this.#heldBytes > 0 || this.#isSkipping) {
      this.#keep(rest)
      line = this.#held.subarray(0, this.#heldBytes)
    }
    const isSkipped = this.#isSkipping || line.length > this.#lineBytesMax
    const finished = isSkipped
      ? undefined
      : { text: this.#decoder.decode(line), bytes: line.length }
    if (isSkipped) this.skippedCount++
    this.#clear()
    return finished
  }

  #keep(bytes: Uint8Array): void {
    if (this.#isSkipping || bytes.length === 0) return
    const size = this.#heldBytes + bytes.length
    if (size > this.#lineBytesMax) {
      this.#clear()
      this.#isSkipping = true
      return
    }
    if (size > this.#held.length) this.#grow(size)
    this.#held.set(bytes, this.#heldBytes)
    this.#heldBytes = size
  }

  #grow(size: number): void {
    const larger = new Uint8Array(Math.max(size, 2 * this.#held.length))
    larger.set(this.#held.subarray(0, this.#heldBytes))
    this.#held = larger
  }

  #clear(): void {
    this.#heldBytes = 0
    this.#isSkipping = false
    if (this.#held.length > HELD_BYTES_MIN) this.#held = new Uint8Array(HELD_BYTES_MIN)
  }
}
