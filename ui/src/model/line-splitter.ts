/** Splits bytes into lines, whatever pieces they come in. */

export interface Line {
  readonly text: string
  readonly bytes: number
}

const NEWLINE = 10
/** Room for the unfinished line; grows with it and is given back after it. */
const ROOM_BYTES = 16 * 1024

export class LineSplitter {
  readonly #lineBytesMax: number
  readonly #decoder = new TextDecoder()
  /** The beginning of a line whose end has not come yet. */
  #room = new Uint8Array(ROOM_BYTES)
  #roomBytes = 0
  #isSkipping = false
  /** Lines longer than the maximum, which are left out. */
  skippedCount = 0

  constructor(lineBytesMax: number) {
    this.#lineBytesMax = lineBytesMax
  }

  /** The lines that end in this piece. They are decoded one by one, as they are taken. */
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

  /** Undefined for a line that is left out. */
  #finish(rest: Uint8Array): Line | undefined {
    let line = rest
    if (this.#roomBytes > 0 || this.#isSkipping) {
      this.#keep(rest)
      line = this.#room.subarray(0, this.#roomBytes)
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
    const size = this.#roomBytes + bytes.length
    if (size > this.#lineBytesMax) {
      this.#clear()
      this.#isSkipping = true
      return
    }
    if (size > this.#room.length) this.#grow(size)
    this.#room.set(bytes, this.#roomBytes)
    this.#roomBytes = size
  }

  #grow(size: number): void {
    const larger = new Uint8Array(Math.max(size, 2 * this.#room.length))
    larger.set(this.#room.subarray(0, this.#roomBytes))
    this.#room = larger
  }

  #clear(): void {
    this.#roomBytes = 0
    this.#isSkipping = false
    if (this.#room.length > ROOM_BYTES) this.#room = new Uint8Array(ROOM_BYTES)
  }
}
