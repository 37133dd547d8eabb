import { isIP } from 'node:net'
import { formatDuration, parseDuration } from '../lib/duration.ts'

/**
 * How the value of one kind of flag is read and printed. `parse` throws a Mistake (any error will
 * do, its message is shown to the user behind the flag's name) that says what to write instead.
 */
export interface Kind<T> {
  /** Stands for the value in help and in mistakes: `--name=<placeholder>`. */
  readonly placeholder: string
  /** True for flags that may be given without a value. */
  readonly bare: boolean
  /** Present for flags that may be repeated: joins what came earlier with what came now. */
  readonly merge?: (earlier: T, now: T) => T
  parse(text: string): T
  /** The value as one would write it; undefined when there is nothing to show. */
  print(value: T): string | undefined
}

/** What is wrong with a value and what to write instead. */
export class Mistake extends Error {
  override readonly name = 'Mistake'
}

/** A value that must not be empty. `check` returns what is wrong, undefined when nothing is. */
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
    print: (value) => value,
  }
}

/** A file that may be left out. Whether it can be read is for whoever opens it to say. */
export const optionalPath: Kind<string | undefined> = {
  placeholder: 'path',
  bare: false,
  parse: (value) => value,
  print: (value) => value,
}

export const ipAddress: Kind<string> = text('ip', (value) => {
  if (isIP(value) !== 0) return undefined
  const inner = /^\[(.*)\]$/.exec(value)?.[1]
  if (inner !== undefined && isIP(inner) === 6) return `write ${inner}, without the brackets`
  return `${quote(value)} is not an IP address: write one such as 0.0.0.0, 127.0.0.1 or ::`
})

/** A whole number in a range. `zeroMeans` is what 0 stands for where that is another number. */
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

export const port: Kind<number> = { ...integer({ min: 0, max: 65_535, noun: 'port' }) }

// Node's timers count in 31 bits of milliseconds; a longer wait would fire at once.
const durationMsMax = 2 ** 31 - 1

/** A length of time, held in milliseconds. */
export function duration(limit: { readonly positive: boolean }): Kind<number> {
  return {
    placeholder: 'duration',
    bare: false,
    parse: (value) => {
      const ms = parseDuration(value)
      if (ms < 0) throw new Mistake(`${value} is negative: write a duration of 0s or more`)
      if (limit.positive && ms === 0) {
        throw new Mistake(`${value} is not enough: write a duration above 0s, such as 1m or 500ms`)
      }
      if (ms > durationMsMax) {
        throw new Mistake(`${value} is too long: write at most ${formatDuration(durationMsMax)}`)
      }
      // Timers count whole milliseconds.
      return Math.ceil(ms)
    },
    print: formatDuration,
  }
}

// What is due is looked for once a second.
const lifetimeMsMin = 1_000

/** How long something is kept, in milliseconds; `never` for what is not to go by itself. */
export const lifetime: Kind<number | 'never'> = {
  placeholder: 'duration|never',
  bare: false,
  parse: (value) => {
    if (value === 'never') return 'never'
    const ms = parseDuration(value)
    if (ms === 0) {
      throw new Mistake(
        `${value} would keep everything until the store is full: write a duration such as 1h, or never if that is what you want`,
      )
    }
    if (ms < lifetimeMsMin) throw new Mistake(`${value} is too short: write 1s or more, or never`)
    return ms
  },
  print: (value) => (value === 'never' ? value : formatDuration(value)),
}

const booleans = new Map([
  ...['1', 't', 'T', 'true', 'TRUE', 'True'].map((word) => [word, true] as const),
  ...['0', 'f', 'F', 'false', 'FALSE', 'False'].map((word) => [word, false] as const),
])

/** On when given bare; the words are Go's. */
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

/** One word out of a few; `refused` names words people know from elsewhere, each with a reason. */
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

/** Values with commas between them, or the flag repeated, or both. `read` may tidy an item. */
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

/** A value as it may be shown on a terminal: escaped, and not longer than a line. */
export function quote(value: string): string {
  const short = value.length > quotedLengthMax ? `${value.slice(0, quotedLengthMax)}...` : value
  return JSON.stringify(short).replace(
    /[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
