/**
 * Reads the fields of a message in place, like Reader of src/lib/protobuf.ts, but without creating
 * views: keys are read as latin1 strings, and values by their position.
 */
export class Cursor {
  readonly buffer: Buffer
  /** The number of the field that `next` has just read. */
  field = 0
  wireType = 0
  /** Where the bytes are that `skipBytes` or `skip` has just passed. */
  from = 0
  to = 0
  #at = 0
  #end: number
  #low = 0
  #high = 0

  constructor(buffer: Buffer) {
    this.buffer = buffer
    this.#end = buffer.length
  }

  /** Moves to the next field; false at the end of the message. */
  next(): boolean {
    if (this.#at >= this.#end) {
      if (this.#at > this.#end) throw new RangeError('a field extends past the end of its message')
      return false
    }
    this.#varint()
    this.field = this.#low >>> 3
    this.wireType = this.#low & 7
    return true
  }

  skip(): void {
    if (this.wireType === 0) this.#varint()
    else if (this.wireType === 2) this.skipBytes()
    else if (this.wireType === 1) this.#at += 8
    else if (this.wireType === 5) this.#at += 4
    else throw new RangeError(`wire type ${this.wireType} is not supported`)
  }

  /** Enters the nested message of the current field; pass the result to `leave` at its end. */
  enter(): number {
    const length = this.#length()
    const outer = this.#end
    this.#end = this.#at + length
    return outer
  }

  leave(outer: number): void {
    this.#end = outer
  }

  /** Passes bytes; `from` and `to` are their position. */
  skipBytes(): void {
    const length = this.#length()
    this.from = this.#at
    this.#at += length
    this.to = this.#at
  }

  /** Bytes as a string, one character each. */
  latin1(): string {
    this.skipBytes()
    return this.buffer.latin1Slice(this.from, this.to)
  }

  boolean(): boolean {
    this.#varint()
    return this.#low !== 0 || this.#high !== 0
  }

  /** A signed 64-bit number that must fit a double exactly. */
  number(): number {
    this.#varint()
    if (this.#high === 0) return this.#low
    const value = (this.#high | 0) * 0x1_0000_0000 + this.#low
    if (!Number.isSafeInteger(value)) throw new RangeError(`number out of range: ${value}`)
    return value
  }

  bigint(): bigint {
    this.#varint()
    if (this.#high === 0) return this.#low === 0 ? 0n : BigInt(this.#low)
    return BigInt.asIntN(64, (BigInt(this.#high) << 32n) | BigInt(this.#low))
  }

  #length(): number {
    this.#varint()
    if (this.#high !== 0 || this.#at + this.#low > this.#end) {
      throw new RangeError('a length extends past the end of its message')
    }
    return this.#low
  }

  #varint(): void {
    const first = this.buffer[this.#at] ?? 0
    if (first < 0x80) {
      this.#at++
      this.#low = first
      this.#high = 0
      return
    }
    let at = this.#at + 1
    let byte = first
    let low = first & 0x7f
    let high = 0
    for (let shift = 7; byte >= 0x80; shift += 7) {
      if (shift > 63 || at >= this.#end) throw new RangeError('a varint is not terminated')
      byte = this.buffer[at++] ?? 0
      if (shift < 28) low |= (byte & 0x7f) << shift
      else if (shift === 28) {
        low |= (byte & 0x0f) << 28
        high = (byte & 0x7f) >>> 4
      } else high |= (byte & 0x7f) << (shift - 32)
    }
    this.#at = at
    this.#low = low >>> 0
    this.#high = high >>> 0
  }
}

declare global {
  interface Buffer {
    /** Exists in every version of Node, and is faster than `toString`; only its type is missing. */
    latin1Slice(from: number, to: number): string
  }
}
