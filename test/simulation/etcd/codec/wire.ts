/** Memory and the encoder of the simulated etcd: both reuse large blocks, for speed. */

const arenaBytes = 64 * 1024
/** Up to here a loop is faster than the call that copies. */
const smallLength = 24

/**
 * Allocates the bytes that stay: keys and values. Small pieces share a block, which lives as long
 * as one of its pieces, so blocks are small.
 */
export class Arena {
  #block: Buffer = Buffer.allocUnsafeSlow(arenaBytes)
  #used = 0

  allocate(length: number): Buffer {
    if (length > arenaBytes / 8) return Buffer.allocUnsafeSlow(length)
    if (this.#used + length > arenaBytes) {
      this.#block = Buffer.allocUnsafeSlow(arenaBytes)
      this.#used = 0
    }
    const from = this.#used
    this.#used += length
    return this.#block.subarray(from, this.#used)
  }

  copy(bytes: Uint8Array): Buffer {
    const copy = this.allocate(bytes.length)
    copy.set(bytes)
    return copy
  }
}

/** Writes messages from their end to their beginning into one block, and copies them out of it. */
export class Writer {
  #buffer: Buffer = Buffer.allocUnsafeSlow(64 * 1024)
  #at: number = this.#buffer.length

  /** Bytes written so far. */
  get length(): number {
    return this.#buffer.length - this.#at
  }

  /** Zero is omitted. */
  number(field: number, value: number): void {
    if (value === 0) return
    if (value < 0) {
      this.bigint(field, BigInt(value))
      return
    }
    this.#varint(value)
    this.#varint(field * 8)
  }

  /** A 64-bit number, signed or unsigned. Zero is omitted. */
  bigint(field: number, value: bigint): void {
    if (value === 0n) return
    this.#bigVarint(BigInt.asUintN(64, value))
    this.#varint(field * 8)
  }

  /** Omitted when empty. */
  bytes(field: number, value: Uint8Array): void {
    if (value.length === 0) return
    this.raw(value)
    this.#varint(value.length)
    this.#varint(field * 8 + 2)
  }

  text(field: number, value: string): void {
    if (value !== '') this.bytes(field, Buffer.from(value))
  }

  /** A part of a buffer; omitted when empty. */
  slice(field: number, buffer: Buffer, from: number, to: number): void {
    const length = to - from
    if (length === 0) return
    this.#reserve(length)
    this.#at -= length
    buffer.copy(this.#buffer, this.#at, from, to)
    this.#varint(length)
    this.#varint(field * 8 + 2)
  }

  /** Bytes as they are: fields that are already encoded. */
  raw(value: Uint8Array): void {
    const { length } = value
    this.#reserve(length)
    this.#at -= length
    if (length > smallLength) {
      this.#buffer.set(value, this.#at)
      return
    }
    const buffer = this.#buffer
    const at = this.#at
    for (let index = 0; index < length; index++) buffer[at + index] = value[index] as number
  }

  /** Completes a nested message; `mark` was `length` before its last field was written. */
  message(field: number, mark: number): void {
    this.#varint(this.length - mark)
    this.#varint(field * 8 + 2)
  }

  /** A nested message that is already encoded; present even when empty. */
  encoded(field: number, value: Uint8Array): void {
    this.raw(value)
    this.#varint(value.length)
    this.#varint(field * 8 + 2)
  }

  /** The message, copied; the writer is empty afterwards. */
  take(): Buffer {
    const length = this.length
    const message = Buffer.allocUnsafe(length)
    this.#buffer.copy(message, 0, this.#at)
    this.#at = this.#buffer.length
    return message
  }

  /** The same in memory that is made to stay. */
  takeInto(arena: Arena): Buffer {
    const message = arena.allocate(this.length)
    this.#buffer.copy(message, 0, this.#at)
    this.#at = this.#buffer.length
    return message
  }

  #varint(value: number): void {
    if (value < 0x80) {
      this.#reserve(1)
      this.#buffer[--this.#at] = value
      return
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
    const used = this.length
    const grown = Buffer.allocUnsafeSlow((used + length) * 2)
    this.#buffer.copy(grown, grown.length - used, this.#at)
    this.#at = grown.length - used
    this.#buffer = grown
  }
}
