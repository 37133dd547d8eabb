/**
 * Finds texts in notes without decoding events: in the bytes of the body, where most notes are as
 * JSON writes them. For the others the event must be read.
 */

/** Where the note is in a body, without its quotes. */
export interface NotePlace {
  readonly offset: number
  readonly length: number
}

/** The length of a note that cannot be searched in the body. */
export const UNSEARCHABLE = 0xffffffff

const noteMember: Buffer = Buffer.from('"note":"')
/** JSON has no escapes for these characters. */
const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/
/** The only characters beyond ASCII whose small letters are, in part, in ASCII. */
const LOWERS_TO_ASCII = /[\u0130\u212a]/
const quote = 0x22
const backslash = 0x5c
const letterU = 0x75
/** Other members of this name are in labels and annotations. */
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
    // The bytes are what counts: a label of the same name may have the same value.
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

/** Whether a text of ASCII is here. */
function isAt(body: Buffer, offset: number, text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    if (body[offset + at] !== text.charCodeAt(at)) return false
  }
  return true
}

/** Whether a text is in a note; undefined when the bytes do not tell. */
export type Found = boolean | undefined

/**
 * Horspool's algorithm compares a repetitive text with a repetitive note length by length: beyond
 * this many comparisons for each byte, an event is read instead.
 */
const COMPARISONS_PER_BYTE = 2

/** A text to be found in written notes without regard to case. Horspool's algorithm. */
export class Needle {
  /** As JSON writes it, in small letters. */
  readonly #bytes: Uint8Array
  /** How far the text may be moved when it ends at this byte. */
  readonly #shifts: Uint32Array
  readonly #isAscii: boolean

  /** `text` is in small letters. */
  constructor(text: string) {
    const written = JSON.stringify(text).slice(1, -1)
    const bytes = Buffer.from(written)
    const { length } = bytes
    this.#bytes = bytes
    this.#isAscii = Buffer.byteLength(text) === text.length
    this.#shifts = new Uint32Array(256).fill(Math.max(1, length))
    for (const [at, byte] of bytes.subarray(0, -1).entries()) {
      this.#shifts[byte] = length - 1 - at
      this.#shifts[upper(byte)] = length - 1 - at
    }
  }

  in(bytes: Uint8Array, from: number, to: number): Found {
    // Small letters beyond ASCII are not a matter of single bytes.
    if (!this.#isAscii) return isAscii(bytes, from, to) ? false : undefined
    const shifts = this.#shifts
    const { length } = this.#bytes
    let comparisonsLeft = COMPARISONS_PER_BYTE * (to - from)
    for (let end = from + length - 1; end < to; end += shifts[bytes[end] ?? 0] ?? 1) {
      const equal = this.#equalBefore(bytes, end)
      // It may have found the letter of an escape.
      if (equal === length) return isInEscape(bytes, from, end + 1 - length) ? undefined : true
      comparisonsLeft -= equal
      if (comparisonsLeft < 0) return undefined
    }
    return false
  }

  /** How many bytes at the end of the text are those that end here. */
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

/** `\u001f` */
const escapeLengthMax = 6

/** Whether a character of the note begins before this byte, and ends with it or after it. */
function isInEscape(bytes: Uint8Array, from: number, at: number): boolean {
  for (let start = at - 1; start >= from && start > at - escapeLengthMax; start--) {
    if (bytes[start] !== backslash || !isEscapeStart(bytes, from, start)) continue
    return start + (bytes[start + 1] === letterU ? escapeLengthMax : 2) > at
  }
  return false
}

/** Of several backslashes in a row, every other one is the character and not the start. */
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
