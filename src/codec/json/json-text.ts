/**
 * A JSON parser. JSON.parse would be faster, but it hides duplicate names, has no limits, and its
 * errors are not those that clients of this API expect.
 */
import { entityTooLarge, type StatusError } from '../../api/status.ts'
import { goQuote } from '../../lib/go/go-quote.ts'
import { type Json, type JsonObject, setMember } from '../../lib/json.ts'

/** Far deeper than any real event. The bound makes it safe to walk a tree recursively. */
export const JSON_DEPTH_MAX = 200

/**
 * The maximum number of values and names in one text, so that the longest accepted body does not
 * block the event loop: 80,000 of them take about 30 ms. A patch of 10,000 operations needs 70,000.
 */
export const JSON_VALUES_MAX = 80_000

/** The maximum for an event or a patch of one: a hundred times the number in large events. */
export const EVENT_VALUES_MAX = 20_000

/** Longer than any real number. Converting megabytes of digits to a number would take too long. */
const NUMBER_LENGTH_MAX = 1000

export interface ParsedJson {
  readonly value: Json
  /** Repeated names, keyed by object. The tree has the last value. */
  readonly duplicates: ReadonlyMap<JsonObject, ReadonlySet<string>>
}

/** Thrown for a text that is not JSON or exceeds a limit. The message is sent to the client. */
export class JsonSyntaxError extends Error {
  override readonly name = 'JsonSyntaxError'
  readonly kind: 'syntax' | 'depth' | 'number'

  constructor(message: string, kind: JsonSyntaxError['kind'] = 'syntax') {
    super(message)
    this.kind = kind
  }
}

/**
 * Throws a JsonSyntaxError with the message of Go's encoding/json, or a StatusError 413 if the text
 * has too many values.
 */
export function parseJson(text: string, valuesMax: number = JSON_VALUES_MAX): ParsedJson {
  const parser = new Parser(text, valuesMax)
  return { value: parser.whole(), duplicates: parser.duplicates ?? NO_DUPLICATES }
}

/** The error for a body with more values, in any format. */
export function tooManyValues(valuesMax: number): StatusError {
  return entityTooLarge(`limit is ${valuesMax} names and values`, undefined)
}

const NO_DUPLICATES: ReadonlyMap<JsonObject, ReadonlySet<string>> = new Map()

const QUOTE = 0x22
const COMMA = 0x2c
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30
const NINE = 0x39
const COLON = 0x3a
const OPEN_LIST = 0x5b
const BACKSLASH = 0x5c
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** The characters that may follow a backslash, besides `u`. */
const SHORT_ESCAPES: ReadonlySet<number> = new Set([...'"\\/bfnrt'].map((c) => c.charCodeAt(0)))

class Parser {
  duplicates: Map<JsonObject, Set<string>> | undefined
  readonly #text: string
  #at = 0
  #depth = 0
  readonly #valuesMax: number
  #values = 0

  constructor(text: string, valuesMax: number) {
    this.#text = text
    this.#valuesMax = valuesMax
  }

  whole(): Json {
    const value = this.#value()
    this.#skipWhite()
    if (this.#at < this.#text.length) throw this.#unexpected('after top-level value')
    return value
  }

  #value(): Json {
    this.#skipWhite()
    this.#count()
    const code = this.#text.charCodeAt(this.#at)
    if (code === QUOTE) return this.#string()
    if (code === OPEN_OBJECT) return this.#object()
    if (code === OPEN_LIST) return this.#list()
    if (isDigit(code) || code === MINUS) return this.#number()
    if (code === 0x74) return this.#literal('true', true)
    if (code === 0x66) return this.#literal('false', false)
    if (code === 0x6e) return this.#literal('null', null)
    throw this.#unexpected('looking for beginning of value')
  }

  #object(): JsonObject {
    this.#enter()
    const object: JsonObject = {}
    this.#skipWhite()
    let code = this.#text.charCodeAt(this.#at)
    if (code !== CLOSE_OBJECT) {
      do {
        this.#member(object)
        this.#skipWhite()
        code = this.#text.charCodeAt(this.#at)
        if (code === COMMA) this.#at++
      } while (code === COMMA)
      if (code !== CLOSE_OBJECT) throw this.#unexpected('after object key:value pair')
    }
    this.#leave()
    return object
  }

  #member(object: JsonObject): void {
    this.#skipWhite()
    const text = this.#text
    if (text.charCodeAt(this.#at) !== QUOTE) {
      throw this.#unexpected('looking for beginning of object key string')
    }
    this.#count()
    const name = this.#string()
    this.#skipWhite()
    if (text.charCodeAt(this.#at) !== COLON) throw this.#unexpected('after object key')
    this.#at++
    const value = this.#value()
    // Members are never undefined, so this cheap check is enough for every new name.
    if (object[name] !== undefined && Object.hasOwn(object, name)) this.#addDuplicate(object, name)
    setMember(object, name, value)
  }

  /** Moves the name to the end, so that iteration visits it where it was repeated. */
  #addDuplicate(object: JsonObject, name: string): void {
    delete object[name]
    this.duplicates ??= new Map()
    const names = this.duplicates.get(object)
    if (names === undefined) this.duplicates.set(object, new Set([name]))
    else names.add(name)
  }

  #list(): Json[] {
    this.#enter()
    const list: Json[] = []
    this.#skipWhite()
    let code = this.#text.charCodeAt(this.#at)
    if (code !== CLOSE_LIST) {
      do {
        list.push(this.#value())
        this.#skipWhite()
        code = this.#text.charCodeAt(this.#at)
        if (code === COMMA) this.#at++
      } while (code === COMMA)
      if (code !== CLOSE_LIST) throw this.#unexpected('after array element')
    }
    this.#leave()
    return list
  }

  #enter(): void {
    this.#at++
    if (++this.#depth > JSON_DEPTH_MAX) throw new JsonSyntaxError('exceeded max depth', 'depth')
  }

  #leave(): void {
    this.#at++
    this.#depth--
  }

  #count(): void {
    if (++this.#values <= this.#valuesMax) return
    throw tooManyValues(this.#valuesMax)
  }

  #string(): string {
    const text = this.#text
    const from = ++this.#at
    for (let at = from; ; at++) {
      const code = text.charCodeAt(at)
      if (code === QUOTE) {
        this.#at = at + 1
        return text.slice(from, at)
      }
      // Past the end the code is NaN, for which every comparison is false.
      if (code === BACKSLASH || !(code >= 0x20)) {
        this.#at = at
        return this.#stringWithEscapes(from)
      }
    }
  }

  /** Finds the end and the errors of a string with escapes. JSON.parse computes its value. */
  #stringWithEscapes(from: number): string {
    const text = this.#text
    for (;;) {
      const code = text.charCodeAt(this.#at)
      if (code === QUOTE) break
      if (code === BACKSLASH) this.#skipEscape()
      else if (code >= 0x20) this.#at++
      else throw this.#unexpected('in string literal')
    }
    this.#at++
    const value: string = JSON.parse(text.slice(from - 1, this.#at))
    // A lone surrogate is not a character; it is decoded as the replacement character.
    return value.toWellFormed()
  }

  #skipEscape(): void {
    this.#at++
    const code = this.#text.charCodeAt(this.#at)
    if (code === 0x75) {
      for (let count = 0; count < 4; count++) {
        this.#at++
        if (!isHexDigit(this.#text.charCodeAt(this.#at))) {
          throw this.#unexpected('in \\u hexadecimal character escape')
        }
      }
    } else if (!SHORT_ESCAPES.has(code)) throw this.#unexpected('in string escape code')
    this.#at++
  }

  #number(): number {
    const text = this.#text
    const from = this.#at
    if (text.charCodeAt(this.#at) === MINUS) this.#at++
    if (text.charCodeAt(this.#at) === ZERO) this.#at++
    else this.#digits('in numeric literal')
    if (text.charCodeAt(this.#at) === POINT) {
      this.#at++
      this.#digits('after decimal point in numeric literal')
    }
    if ((text.charCodeAt(this.#at) | 0x20) === 0x65) {
      this.#at++
      const sign = text.charCodeAt(this.#at)
      if (sign === MINUS || sign === 0x2b) this.#at++
      this.#digits('in exponent of numeric literal')
    }
    return numberOf(text.slice(from, this.#at))
  }

  #digits(where: string): void {
    const text = this.#text
    const from = this.#at
    while (isDigit(text.charCodeAt(this.#at))) this.#at++
    if (this.#at === from) throw this.#unexpected(where)
  }

  #literal<T>(word: string, value: T): T {
    for (let index = 1; index < word.length; index++) {
      this.#at++
      if (this.#text.charCodeAt(this.#at) !== word.charCodeAt(index)) {
        throw this.#unexpected(`in literal ${word} (expecting '${word[index]}')`)
      }
    }
    this.#at++
    return value
  }

  #skipWhite(): void {
    const text = this.#text
    let at = this.#at
    let code = text.charCodeAt(at)
    while (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) {
      code = text.charCodeAt(++at)
    }
    this.#at = at
  }

  #unexpected(where: string): JsonSyntaxError {
    const text = this.#text
    if (this.#at >= text.length) return new JsonSyntaxError('unexpected end of JSON input')
    return new JsonSyntaxError(`invalid character ${quotedByte(text, this.#at)} ${where}`)
  }
}

function numberOf(text: string): number {
  const value = text.length <= NUMBER_LENGTH_MAX ? Number(text) : Number.NaN
  if (Number.isFinite(value)) return value
  const shown = text.length <= 40 ? text : `${text.slice(0, 40)}...`
  throw new JsonSyntaxError(`number ${shown} is out of range`, 'number')
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE
}

function isHexDigit(code: number): boolean {
  const lower = code | 0x20
  return isDigit(code) || (lower >= 0x61 && lower <= 0x66)
}

/** Quotes the first byte of a character, since Go reports bytes. */
function quotedByte(text: string, at: number): string {
  const character = String.fromCodePoint(text.codePointAt(at) ?? 0)
  if (character === "'") return "'\\''"
  if (character === '"') return `'"'`
  const byte = Buffer.from(character, 'utf8')[0] ?? 0
  return `'${goQuote(String.fromCharCode(byte)).slice(1, -1)}'`
}
