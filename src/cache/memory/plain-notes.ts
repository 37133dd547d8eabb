/**
 * Searches notes in the encoded body. If the stored bytes may differ from those of JSON.stringify, the
 * caller must decode the event.
 */

/** Where the note is in a body, without its quotes. */
export interface NotePlace {
  readonly offset: number
  readonly length: number
}

/** The length of a note that cannot be searched in the body. */
export const UNSEARCHABLE = 0xffffffff

const noteMember: Buffer = Buffer.from('"note":"')
/** JSON.stringify writes these characters unescaped. */
const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/
/** The only characters beyond ASCII whose lower-case forms contain ASCII letters. */
const LOWERS_TO_ASCII = /[\u0130\u212a]/
const quote = 0x22
const backslash = 0x5c
const letterU = 0x75
/** Labels and annotations may also be named `note`: the search gives up after this many. */
const attemptsMax = 4

export function placeOfNote(body: Buffer, note: string): NotePlace {
  if (note === '') return { offset: 0, length: 0 }
  const isPlain = PLAIN.test(note)
  const written = isPlain ? note : JSON.stringify(note).slice(1, -1)
  const length = isPlain ? note.length : Buffer.byteLength(written)
  const isKnown = isPlain || (!LOWERS_TO_ASCII.test(note) && note.isWellFormed())
  let at = isKnown ? body.indexOf(noteMember) : -1
  for (let attempt = 0; at !== -1 && attempt < attemptsMax; attempt++) {
    const offset = at + noteMember.length
    const end = offset + length
    // A label named `note` with the same value does equally well.
    if (
      body[end] === quote &&
      (isPlain ? isAt(body, offset, note) : body.toString('utf8', offset, end) === written)
    ) {
      return { offset, length }
    }
    at = body.indexOf(noteMember, offset)
  }
  return { offset: 0, length: UNSEARCHABLE }
}

/** Whether the ASCII text starts at this offset. */
function isAt(body: Buffer, offset: number, text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    if (body[offset + at] !== text.charCodeAt(at)) return false
  }
  return true
}

/** Whether a text is in a note; undefined when the bytes do not decide it. */
export type Found = boolean | undefined

/**
 * Horspool's algorithm is quadratic for repetitive input. Beyond this many comparisons per byte, the
 * event is decoded instead.
 */
const COMPARISONS_PER_BYTE = 2

/** A lower-case text, matched case-insensitively against encoded notes by Horspool's algorithm. */
export class Needle {
  /** The text as JSON encodes it. */
  readonly #bytes: Uint8Array
  /** The shift when this byte is aligned with the last byte of the text. */
  readonly #shifts: Uint32Array
  readonly #isAscii: boolean
  /** It has a letter that is the lower-case form of a character beyond ASCII. */
  readonly #isLowered: boolean

  /** `text` must be in lower case. */
  constructor(text: string) {
    const written = JSON.stringify(text).slice(1, -1)
    const bytes = Buffer.from(written)
    const { length } = bytes
    this.#bytes = bytes
    this.#isAscii = Buffer.byteLength(text) === text.length
    this.#isLowered = /[ik]/.test(text)
    this.#shifts = new Uint32Array(256).fill(Math.max(1, length))
    for (const [at, byte] of bytes.subarray(0, -1).entries()) {
      this.#shifts[byte] = length - 1 - at
      this.#shifts[upper(byte)] = length - 1 - at
    }
  }

  in(bytes: Uint8Array, from: number, to: number): Found {
    // Case folding beyond ASCII does not work byte by byte.
    if (!this.#isAscii) return isAscii(bytes, from, to) ? false : undefined
    return this.#search(bytes, from, to)
  }

  #search(bytes: Uint8Array, from: number, to: number): Found {
    const shifts = this.#shifts
    const { length } = this.#bytes
    const last = this.#bytes[length - 1]
    let comparisonsLeft = COMPARISONS_PER_BYTE * (to - from)
    for (let end = from + length - 1, byte = 0; end < to; end += shifts[byte] ?? 1) {
      byte = bytes[end] ?? 0
      if (lower(byte) !== last && length > 0) continue
      const equal = this.#equalBefore(bytes, end)
      // The match may start inside an escape sequence.
      if (equal === length) return isInEscape(bytes, from, end + 1 - length) ? undefined : true
      comparisonsLeft -= equal
      if (comparisonsLeft < 0) return undefined
    }
    return false
  }

  /** The same in bytes that may contain characters of LOWERS_TO_ASCII. */
  inAny(bytes: Uint8Array, from: number, to: number): Found {
    const found = this.in(bytes, from, to)
    const isDoubtful = found === false && this.#isLowered && !isNearlyAscii(bytes, from, to)
    return isDoubtful ? undefined : found
  }

  /** The length of the common suffix of the text and the bytes up to `end`. */
  #equalBefore(bytes: Uint8Array, end: number): number {
    const own = this.#bytes
    const { length } = own
    for (let equal = 0; equal < length; equal++) {
      if (lower(bytes[end - equal] ?? 0) !== own[length - 1 - equal]) return equal
    }
    return length
  }
}

function isAscii(bytes: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if ((bytes[at] ?? 0) >= 0x80) return false
  return true
}

/** Whether there is no character beyond ASCII: each has at least two bytes, so every other is read. */
function isNearlyAscii(bytes: Uint8Array, from: number, to: number): boolean {
  for (let at = from + 1; at < to; at += 2) if ((bytes[at] ?? 0) >= 0x80) return false
  return true
}

/** The length of `\u001f`, the longest escape. */
const escapeLengthMax = 6

/** Whether this byte is inside an escape that starts earlier. */
function isInEscape(bytes: Uint8Array, from: number, at: number): boolean {
  for (let start = at - 1; start >= from && start > at - escapeLengthMax; start--) {
    if (bytes[start] !== backslash || !isEscapeStart(bytes, from, start)) continue
    return start + (bytes[start + 1] === letterU ? escapeLengthMax : 2) > at
  }
  return false
}

/** In a run of backslashes, every other one is escaped by the one before it. */
function isEscapeStart(bytes: Uint8Array, from: number, at: number): boolean {
  let first = at
  while (first > from && bytes[first - 1] === backslash) first--
  return (at - first) % 2 === 0
}

function lower(byte: number): number {
  return byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte
}

function upper(byte: number): number {
  return byte >= 0x61 && byte <= 0x7a ? byte - 0x20 : byte
}
