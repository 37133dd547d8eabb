/**
 * A hand-written protobuf encoder and decoder: for etcd's messages, for spans, and for Kubernetes'
 * wire format, which is generated from a table of our own.
 */

/**
 * Writes a message from its end to its beginning: by the time a length prefix is written, the bytes
 * that it counts are already written, so nested messages need neither a second pass nor a copy.
 * Fields must therefore be written last to first.
 */
export class BackwardWriter {
  #buffer: Buffer
  #at: number

  constructor(capacity: number) {
    this.#buffer = Buffer.allocUnsafeSlow(capacity)
    this.#at = capacity
  }

  /** The current position, to pass to `message` once the nested message has been written. */
  mark(): number {
    return this.#buffer.length - this.#at
  }

  /** Completes a nested message whose end was written at `mark`. */
  message(field: number, mark: number): void {
    this.prefix(field, this.mark() - mark)
  }

  /** Zero is the default of every number and is omitted, unless the field is part of a oneof. */
  number(field: number, value: number | bigint, options?: { readonly always: boolean }): void {
    if ((value === 0 || value === 0n) && options?.always !== true) return
    if (typeof value === 'bigint') this.#bigVarint(BigInt.asUintN(64, value))
    else this.#varint(value)
    this.#varint(field * 8)
  }

  bytes(field: number, value: Uint8Array, options?: { readonly always: boolean }): void {
    const length = value.length
    if (length === 0 && options?.always !== true) return
    this.#reserve(length)
    this.#at -= length
    this.#buffer.set(value, this.#at)
    this.#varint(length)
    this.#varint(field * 8 + 2)
  }

  fixed64(field: number, value: bigint): void {
    this.#reserve(8)
    this.#at -= 8
    this.#buffer.writeBigUInt64LE(value, this.#at)
    this.#varint(field * 8 + 1)
  }

  /** Only the tag and length of a bytes field; the caller appends the `length` bytes elsewhere. */
  prefix(field: number, length: number): void {
    this.#varint(length)
    this.#varint(field * 8 + 2)
  }

  finish(): Buffer {
    return this.#buffer.subarray(this.#at)
  }

  #varint(value: number): void {
    if (!Number.isSafeInteger(value) || value < 0) {
      throw new RangeError(`not an integer from 0 to 2^53: ${value}`)
    }
    let length = 1
    for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) length++
    this.#reserve(length)
    this.#at -= length
    let at = this.#at
    let rest = value
    for (; rest > 0x7fffffff; rest = Math.floor(rest / 0x80)) {
      this.#buffer[at++] = (rest % 0x80) | 0x80
    }
    for (; rest >= 0x80; rest >>>= 7) this.#buffer[at++] = (rest & 0x7f) | 0x80
    this.#buffer[at] = rest
  }

  #bigVarint(value: bigint): void {
    const bytes: number[] = []
    let rest = value
    for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
    bytes.push(Number(rest))
    this.#reserve(bytes.length)
    this.#at -= bytes.length
    this.#buffer.set(bytes, this.#at)
  }

  #reserve(length: number): void {
    if (this.#at >= length) return
    const used = this.mark()
    const grown = Buffer.allocUnsafeSlow((used + length) * 2)
    this.#buffer.copy(grown, grown.length - used, this.#at)
    this.#at = grown.length - used
    this.#buffer = grown
  }
}

/** Reads the fields of a message in place. The bytes it returns are views, not copies. */
export class Reader {
  readonly #buffer: Buffer
  #at: number
  #end: number
  /** The field number that `next` has just read. */
  field = 0
  #wireType = 0
  #low = 0
  #high = 0

  constructor(buffer: Buffer) {
    this.#buffer = buffer
    this.#at = 0
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
    this.#wireType = this.#low & 7
    return true
  }

  /** The wire type of the current field: 0 for numbers, 2 for bytes; others are unused here. */
  get wireType(): number {
    return this.#wireType
  }

  skip(): void {
    switch (this.#wireType) {
      case 0:
        this.#varint()
        break
      case 1:
        this.#at += 8
        break
      case 2: {
        const length = this.#length()
        this.#at += length
        break
      }
      case 5:
        this.#at += 4
        break
      default:
        throw new RangeError(`wire type ${this.#wireType} is not supported`)
    }
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

  bytes(): Buffer {
    const length = this.#length()
    const from = this.#at
    this.#at = from + length
    return this.#buffer.subarray(from, this.#at)
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

  /** Stores the value as two unsigned 32-bit halves: most values fit in the lower half. */
  #varint(): void {
    const buffer = this.#buffer
    let at = this.#at
    let byte = buffer[at++] ?? 0
    let low = byte & 0x7f
    let high = 0
    for (let shift = 7; byte >= 0x80; shift += 7) {
      if (shift > 63 || at >= this.#end) throw new RangeError('a varint is not terminated')
      byte = buffer[at++] ?? 0
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
