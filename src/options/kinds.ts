import { isIP } from 'node:net'
import { formatDuration, parseDuration } from '../lib/go/duration.ts'
import { formatQuantity, parseQuantity } from '../lib/go/quantity.ts'

/**
 * How the value of one kind of flag is parsed and printed. `parse` throws a Mistake that says what
 * to write instead. (Any error works: its message is printed after the name of the flag.)
 */
export interface Kind<T> {
  /** Stands for the value in help and error messages: `--name=<placeholder>`. */
  readonly placeholder: string
  /** Whether the flag may be given without a value. */
  readonly bare: boolean
  /** Present for flags that may be repeated; merges the earlier value with the new one. */
  readonly merge?: (earlier: T, now: T) => T
  parse(text: string): T
  /** The value as written on a command line; undefined when there is none to print. */
  print(value: T): string | undefined
}

/** The message says what is wrong with a value and what to write instead. */
export class Mistake extends Error {
  override readonly name = 'Mistake'
}

/** A non-empty string; the default may be empty, for a flag that is required. `check` returns what is wrong, or undefined for a valid value. */
export function text(
  placeholder: string,
  check: (value: string) => string | undefined = () => undefined,
): Kind<string> {
  return {
    placeholder,
    bare: false,
    parse: (value) => {
      const wrong = check(value)
      if (wrong !== undefined) throw new Mistake(wrong)
      return value
    },
    print: (value) => (value === '' ? undefined : value),
  }
}

/** Existence is not checked here: the code that opens the file reports it. */
export const optionalPath: Kind<string | undefined> = optionalText('path')

export function optionalText(placeholder: string): Kind<string | undefined> {
  return { placeholder, bare: false, parse: (value) => value, print: (value) => value }
}

export const ipAddress: Kind<string> = text('ip', (value) => {
  if (isIP(value) !== 0) return undefined
  const inner = /^\[(.*)\]$/.exec(value)?.[1]
  if (inner !== undefined && isIP(inner) === 6) return `write ${inner}, without the brackets`
  return `${quote(value)} is not an IP address: write one such as 0.0.0.0, 127.0.0.1 or ::`
})

/** A whole number in a range. `zeroMeans` replaces 0, if given. */
export function integer(range: {
  readonly min: number
  readonly max: number
  readonly noun?: string
  readonly zeroMeans?: number
}): Kind<number> {
  const { min, max, noun = 'whole number' } = range
  return {
    placeholder: 'int',
    bare: false,
    parse: (value) => {
      const number = /^[+-]?\d{1,15}$/.test(value) ? Number(value) : Number.NaN
      if (!(number >= min && number <= max)) {
        throw new Mistake(
          `${quote(value)} is not a ${noun} in range: write one between ${min} and ${max}`,
        )
      }
      return number === 0 ? (range.zeroMeans ?? 0) : number
    },
    print: (value) => String(value === range.zeroMeans ? 0 : value),
  }
}

/** Bytes in Kubernetes notation, such as 512Mi, in a range; also 0, if that has a meaning. */
export function byteQuantity(range: {
  readonly min: number
  readonly max?: number
  readonly orZero?: boolean
}): Kind<number> {
  const { min, max = Number.POSITIVE_INFINITY, orZero = false } = range
  return {
    placeholder: 'bytes',
    bare: false,
    parse: (value) => {
      const bytes = parseQuantity(value)
      if (bytes === undefined || !Number.isSafeInteger(bytes)) {
        throw new Mistake(
          `${quote(value)} is not a whole number of bytes: write one such as 1536Mi or 2Gi`,
        )
      }
      if (bytes < min && !(bytes === 0 && orZero)) {
        const or = orZero ? ', or 0' : ''
        throw new Mistake(`${value} is too small: write ${formatQuantity(min)} or more${or}`)
      }
      if (bytes > max) {
        throw new Mistake(`${value} is too large: write ${formatQuantity(max)} or less`)
      }
      return bytes
    },
    print: formatQuantity,
  }
}

export const port: Kind<number> = integer({ min: 0, max: 65_535, noun: 'port' })

// A timer of Node has 31 bits of milliseconds; a longer one would fire at once.
const durationMsMax = 2 ** 31 - 1

/** A duration in milliseconds. */
export function duration(limit: { readonly positive: boolean }): Kind<number> {
  return {
    placeholder: 'duration',
    bare: false,
    parse: (value) => {
      const ms = parseDuration(value)
      if (ms < 0) throw new Mistake(`${value} is negative: write a duration of 0s or more`)
      if (limit.positive && ms === 0) {
        throw new Mistake(`${value} is too short: write a duration above 0s, such as 1m or 500ms`)
      }
      if (ms > durationMsMax) {
        throw new Mistake(`${value} is too long: write at most ${formatDuration(durationMsMax)}`)
      }
      // Timers have a resolution of 1 ms.
      return Math.ceil(ms)
    },
    print: formatDuration,
  }
}

// Expired events are searched for once a second.
const lifetimeMsMin = 1_000

/** A time to live in milliseconds; `never` for no expiry. */
export const lifetime: Kind<number | 'never'> = {
  placeholder: 'duration|never',
  bare: false,
  parse: (value) => {
    if (value === 'never') return 'never'
    const ms = parseDuration(value)
    if (ms === 0) {
      throw new Mistake(
        `${value} would retain everything until the store is full: write a duration such as 1h, or never if that is what you want`,
      )
    }
    if (ms < lifetimeMsMin) throw new Mistake(`${value} is too short: write 1s or more, or never`)
    return ms
  },
  print: (value) => (value === 'never' ? value : formatDuration(value)),
}

/** A moment, in milliseconds since 1970. */
export const optionalTime: Kind<number | undefined> = {
  placeholder: 'time',
  bare: false,
  parse: (value) => {
    const isTime = /^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d))?$/.test(value)
    const ms = isTime ? Date.parse(value) : Number.NaN
    if (Number.isNaN(ms)) {
      throw new Mistake(
        `${quote(value)} is not a time: write one such as 2026-01-31T18:00:00Z, or a day such as 2026-01-31`,
      )
    }
    return ms
  },
  print: (value) => (value === undefined ? undefined : new Date(value).toISOString()),
}

const booleans = new Map([
  ...['1', 't', 'T', 'true', 'TRUE', 'True'].map((word) => [word, true] as const),
  ...['0', 'f', 'F', 'false', 'FALSE', 'False'].map((word) => [word, false] as const),
])

/** True without a value; accepts the same words as Go. */
export const boolean: Kind<boolean> = {
  placeholder: 'true|false',
  bare: true,
  parse: (value) => {
    const parsed = booleans.get(value)
    if (parsed === undefined) throw new Mistake(`${quote(value)} is neither true nor false`)
    return parsed
  },
  print: (value) => (value ? 'true' : 'false'),
}

/** One of several words. `refused` lists rejected words of kube-apiserver, each with a reason. */
export function choice<const T extends string>(
  words: readonly T[],
  refused: Readonly<Record<string, string>> = {},
): Kind<T> {
  return {
    placeholder: words.join('|'),
    bare: false,
    parse: (value) => {
      const word = words.find((candidate) => candidate === value)
      if (word !== undefined) return word
      const reason = Object.hasOwn(refused, value) ? refused[value] : undefined
      const wrong = reason === undefined ? 'is not known' : `is refused (${reason})`
      throw new Mistake(`${quote(value)} ${wrong}: write ${words.join(' or ')}`)
    },
    print: (value) => value,
  }
}

/** Comma-separated values, a repeated flag, or both. `read` may normalise an item. */
export function list(placeholder: string, read: (item: string) => string): Kind<readonly string[]> {
  const unique = (items: readonly string[]): readonly string[] => {
    const twice = items.find((item, index) => items.indexOf(item) !== index)
    if (twice !== undefined) throw new Mistake(`${quote(twice)} is listed twice: list it once`)
    return items
  }
  return {
    placeholder,
    bare: false,
    merge: (earlier, now) => unique([...earlier, ...now]),
    parse: (value) => unique(value.split(',').map((item) => read(item.trim()))),
    print: (value) => (value.length === 0 ? undefined : value.join(',')),
  }
}

const quotedLengthMax = 80

/** Makes a value safe to print on a terminal: escaped, and at most about a line long. */
export function quote(value: string): string {
  const short = value.length > quotedLengthMax ? `${value.slice(0, quotedLengthMax)}...` : value
  return JSON.stringify(short).replace(
    /[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
