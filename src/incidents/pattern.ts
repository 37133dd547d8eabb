/**
 * The pattern of a note: what is left when the parts that differ between occurrences of one problem
 * are replaced by `*`. Two notes have the same pattern when they have the same words.
 *
 * A note is a row of tokens, white space and other characters. A token consists of letters, digits
 * and the characters `-._:/@+%~` between them. It becomes `*` when it contains a digit (numbers,
 * sizes, durations, times, addresses, uuids, most names of pods, `shop/web-0`), when one of its parts
 * is a generated suffix without a digit (`web-bcdfg`), or when it consists of eight or more
 * hexadecimal letters. A text in quotes becomes `*` too. The mark that recorders put in front of the
 * note of several similar events is left out.
 */
import { HASH_BASIS, hashed, mixed } from '../lib/hash.ts'
import { addToSet, DIGITS, SAFE_LETTERS } from './character-sets.ts'

/** What the recorder of core/v1 puts in front of the newest note when it combines similar events. */
export const COMBINED_PREFIX = '(combined from similar events): '

/** Longer notes are cut: a hostile note takes some 50 ns for each character. */
const NOTE_LENGTH_MAX = 1024

/** A hash of the normalised note, as an unsigned 32-bit number; 0 only for an empty note. */
export function patternOf(note: string): number {
  if (note === '') return 0
  scanner.begin(note)
  while (scanner.next() !== END);
  return mixed(scanner.hash) || 1
}

/** The text that `patternOf` hashes. Slow: for tests, and for people. */
export function normalised(note: string): string {
  scanner.begin(note)
  let text = ''
  for (let piece = scanner.next(); piece !== END; piece = scanner.next()) {
    if (piece === SPACE) text += ' '
    else text += piece === VARIABLE ? '*' : note.slice(scanner.from, scanner.at)
  }
  return text.trim()
}

/** Eight hexadecimal digits. */
export function patternId(pattern: number): string {
  return pattern.toString(16).padStart(8, '0')
}

/** Undefined when this is not an id as `patternId` writes it. */
export function parsePatternId(text: string): number | undefined {
  return /^[0-9a-f]{8}$/.test(text) ? Number.parseInt(text, 16) : undefined
}

const END = 0
const SPACE = 1
const LITERAL = 2
const VARIABLE = 3

const SPACE_CODE = 0x20
const STAR_CODE = 0x2a
const BACKSLASH = 0x5c
const COLON = 0x3a
const SLASH = 0x2f
const DASH = 0x2d
const PLUS = 0x2b
const PERCENT = 0x25
const COMMA = 0x2c
const APOSTROPHE = 0x27
const LETTER_B = 0x42
const LETTER_W = 0x57
const LETTER_I = 0x69

// What a character may be; a set of bits.
const IS_SPACE = 1
const IS_LETTER = 2
const IS_DIGIT = 4
const IS_JOINER = 8
const IS_QUOTE = 16
const IS_SAFE_LETTER = 32
const IS_HEX_LETTER = 64

/** By UTF-16 code unit. All letters beyond ASCII are just letters. */
const TRAITS: Uint8Array = traitsOfCodes()

function traitsOfCodes(): Uint8Array {
  const traits = new Uint8Array(0x1_0000).fill(IS_LETTER, 0x80)
  addToSet(traits, 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ', IS_LETTER)
  addToSet(traits, DIGITS, IS_DIGIT)
  addToSet(traits, '-._:/@+%~', IS_JOINER)
  addToSet(traits, '"\'`', IS_QUOTE)
  addToSet(traits, SAFE_LETTERS, IS_SAFE_LETTER)
  addToSet(traits, 'abcdefABCDEF', IS_HEX_LETTER)
  traits.fill(IS_SPACE, 0, SPACE_CODE + 1)
  for (const code of [0x7f, 0xa0, 0x2028, 0x2029, 0xfeff]) traits[code] = IS_SPACE
  return traits
}

function traitsOf(code: number): number {
  return TRAITS[code] as number
}

const IS_WORD = IS_LETTER | IS_DIGIT

const SUFFIX_LENGTH = 5
const HASH_LENGTH_MAX = 10
const HEX_LENGTH_MIN = 8

/**
 * Cuts a note into pieces, and hashes them on the way, so that each character is read once. There is
 * one, since a note is scanned without a pause.
 */
class Scanner {
  /** Where the last piece begins and ends. */
  from = 0
  at = 0
  /** The hash of all normalised pieces so far. */
  hash = 0
  #note = ''
  #start = 0
  #end = 0
  #isSpaced = false
  /** Bits of quotes, by `quoteBit`, that are not closed any more in the rest of the note. */
  #unclosed = 0

  begin(note: string): void {
    this.#note = note
    this.#end = Math.min(note.length, NOTE_LENGTH_MAX)
    this.#start = note.startsWith(COMBINED_PREFIX) ? COMBINED_PREFIX.length : 0
    this.at = this.#start
    this.hash = HASH_BASIS
    this.#isSpaced = false
    this.#unclosed = 0
  }

  next(): number {
    this.from = this.at
    if (this.at >= this.#end) return this.#finish()
    const code = this.#note.charCodeAt(this.at)
    const traits = traitsOf(code)
    if ((traits & IS_SPACE) !== 0) return this.#space()
    if (this.#isSpaced) this.hash = hashed(this.hash, SPACE_CODE)
    this.#isSpaced = false
    if ((traits & IS_WORD) !== 0 || this.#isSign(code)) return this.#token()
    return (traits & IS_QUOTE) !== 0 ? this.#quote(code) : this.#mark(code)
  }

  /** Does not retain the note. */
  #finish(): number {
    this.#note = ''
    return END
  }

  #space(): number {
    this.#isSpaced = this.from > this.#start
    this.at++
    while (this.at < this.#end && (this.#traits(this.at) & IS_SPACE) !== 0) this.at++
    return SPACE
  }

  #mark(code: number): number {
    this.hash = hashed(this.hash, code)
    this.at++
    return LITERAL
  }

  #variable(end: number): number {
    this.hash = hashed(this.hash, STAR_CODE)
    this.at = end
    return VARIABLE
  }

  /** Whether a number with a sign begins here. */
  #isSign(code: number): boolean {
    return (code === DASH || code === PLUS) && (this.#traits(this.at + 1) & IS_DIGIT) !== 0
  }

  #quote(code: number): number {
    const isEscaped = this.at > 0 && this.#note.charCodeAt(this.at - 1) === BACKSLASH
    const bit = quoteBit(code, isEscaped)
    const opens = code !== APOSTROPHE || (this.#traits(this.at - 1) & IS_WORD) === 0
    if (!opens || (this.#unclosed & bit) !== 0) return this.#mark(code)
    const end = this.#quoteEnd(code, isEscaped)
    if (end >= 0) return this.#variable(end)
    this.#unclosed |= bit
    return this.#mark(code)
  }

  /** -1 when it is not closed. */
  #quoteEnd(quote: number, isEscaped: boolean): number {
    const note = this.#note
    for (let index = this.at + 1; index < this.#end; index++) {
      if (note.charCodeAt(index) !== quote) continue
      if ((note.charCodeAt(index - 1) === BACKSLASH) !== isEscaped) continue
      if (quote === APOSTROPHE && (this.#traits(index + 1) & IS_WORD) !== 0) continue
      return index + 1
    }
    return -1
  }

  #token(): number {
    const note = this.#note
    const end = this.#end
    const start = this.at
    let { hash } = this
    let index = start
    let wordEnd = start
    let wordHash = hash
    let all = 0
    let isVariable = false
    for (;;) {
      const partStart = index
      // The traits of every character of a part.
      let common = IS_SAFE_LETTER | IS_HEX_LETTER
      for (; index < end; index++) {
        const code = note.charCodeAt(index)
        const traits = traitsOf(code)
        if ((traits & IS_WORD) === 0) break
        hash = hashed(hash, code)
        all |= traits
        common &= traits
      }
      if (index > partStart) {
        wordEnd = index
        wordHash = hash
        isVariable ||= common !== 0 && this.#isGenerated(partStart, index, common)
      }
      if (!this.#isJoined(all, index)) break
      // It may also be a mark at the end, such as a full stop: then no word follows.
      hash = hashed(hash, note.charCodeAt(index))
      all |= IS_JOINER
      index++
    }
    if ((all & IS_DIGIT) !== 0) return this.#variable(this.#numberEnd(wordEnd))
    if (isVariable || this.#isDayOrMonth(start, wordEnd)) return this.#variable(wordEnd)
    this.hash = wordHash
    this.at = wordEnd
    return LITERAL
  }

  /**
   * Whether a token with these traits may go on with the character at `index`. A colon behind a mere
   * word ends it, as in `code:137`, except in a URL.
   */
  #isJoined(all: number, index: number): boolean {
    if (index >= this.#end) return false
    const code = this.#note.charCodeAt(index)
    if (code !== COLON || (all & (IS_DIGIT | IS_JOINER)) !== 0) {
      return (traitsOf(code) & IS_JOINER) !== 0
    }
    return this.#note.charCodeAt(index + 1) === SLASH
  }

  /**
   * Whether the part of a token between these places is hexadecimal, or a generated suffix or hash
   * behind a dash.
   */
  #isGenerated(from: number, end: number, common: number): boolean {
    const length = end - from
    if ((common & IS_HEX_LETTER) !== 0 && length >= HEX_LENGTH_MIN) return true
    if ((common & IS_SAFE_LETTER) === 0) return false
    if (length < SUFFIX_LENGTH || length > HASH_LENGTH_MAX) return false
    return this.#note.charCodeAt(from - 1) === DASH && !this.#note.startsWith('http', from)
  }

  /** Includes a percent sign, or the unit of a size behind a space, as in `1.5 GiB`. */
  #numberEnd(wordEnd: number): number {
    const note = this.#note
    const code = note.charCodeAt(wordEnd)
    if (code === PERCENT) return wordEnd + 1
    if (code !== SPACE_CODE) return wordEnd
    let at = wordEnd + 1
    if (UNIT_PREFIXES.includes(note.charAt(at))) at++
    if (note.charCodeAt(at) === LETTER_I) at++
    const isUnit = note.charCodeAt(at) === LETTER_B && (this.#traits(at + 1) & IS_WORD) === 0
    return isUnit ? at + 1 : wordEnd
  }

  /** Whether the token is the day or the month of a time, as in `Mon, 02 Jan 2006`. */
  #isDayOrMonth(start: number, end: number): boolean {
    const note = this.#note
    if (end - start !== 3 || note.charCodeAt(start) > LETTER_W) return false
    const word = note.slice(start, end)
    if (MONTHS.includes(word)) return (this.#traits(end + 1) & IS_DIGIT) !== 0
    if (!DAYS.includes(word)) return false
    return note.charCodeAt(end) === COMMA || MONTHS.includes(note.slice(end + 1, end + 4))
  }

  #traits(index: number): number {
    return index >= 0 && index < this.#end ? traitsOf(this.#note.charCodeAt(index)) : 0
  }
}

const UNIT_PREFIXES = ['k', 'K', 'M', 'G', 'T', 'P', 'E']
const DAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun']
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

function quoteBit(code: number, isEscaped: boolean): number {
  const shift = code === APOSTROPHE ? 0 : code === 0x22 ? 1 : 2
  return 1 << (isEscaped ? shift + 3 : shift)
}

const scanner = new Scanner()
