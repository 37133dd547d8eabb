import type { Command, Flag } from './flag.ts'
import { helpText } from './help.ts'
import { quote } from './kinds.ts'

/** The result of parsing a command line. */
export type ParseResult<O> =
  | { readonly kind: 'run'; readonly options: Readonly<O> }
  | { readonly kind: 'help'; readonly text: string }
  | { readonly kind: 'version' }
  /** At least one, in the order found; each says what to write instead. */
  | { readonly kind: 'mistakes'; readonly mistakes: readonly string[] }

/**
 * Parses the arguments of a command (without the names of the program and the command) in pflag's
 * syntax. Never throws; reports all mistakes at once. As with pflag, `--help` always works, and
 * `--version` only when the other arguments are valid.
 *
 * It differs from pflag where pflag would hide a mistake: a flag that is not a list may be given
 * only once, and a value that looks like a flag must be written after `=`.
 */
export function parseFlags<O extends object>(
  command: Command<O>,
  args: readonly string[],
  terminal: { readonly columns?: number | undefined } = {},
): ParseResult<O> {
  const scan = new Scan(command, args)
  scan.run()
  if (scan.help) return { kind: 'help', text: helpText(command, terminal.columns) }
  if (scan.version && scan.mistakes.length === 0) return { kind: 'version' }
  const options = scan.options()
  const mistakes = [...scan.mistakes, ...scan.brokenRules(options)]
  return mistakes.length > 0 ? { kind: 'mistakes', mistakes } : { kind: 'run', options }
}

/** One argument, split into name and value. */
interface Written {
  /** The name with its hyphens, for messages. */
  readonly shown: string
  readonly name: string
  readonly short: boolean
  readonly value: string | undefined
}

class Scan<O extends object> {
  readonly mistakes: string[] = []
  help = false
  version = false
  readonly #command: Command<O>
  readonly #args: readonly string[]
  #next = 0
  readonly #values = new Map<keyof O, unknown>()
  /** The values given for each option whose flag is not a list. */
  readonly #seen = new Map<keyof O, string[]>()
  readonly #broken = new Set<keyof O>()

  constructor(command: Command<O>, args: readonly string[]) {
    this.#command = command
    this.#args = args
  }

  run(): void {
    let previous: Written | undefined
    while (this.#next < this.#args.length) {
      const arg = this.#args[this.#next++] ?? ''
      if (arg === '--') {
        for (const rest of this.#args.slice(this.#next)) this.#stray(rest, undefined)
        break
      }
      const written = splitArgument(arg)
      if (written === undefined) this.#stray(arg, previous)
      else this.#flag(written)
      previous = written
    }
    for (const [key, values] of this.#seen) {
      if (values.length > 1) this.#givenTwice(key, values)
    }
  }

  /** The given values, with defaults for the rest. */
  options(): Readonly<O> {
    const options: Partial<O> = {}
    for (const key of this.#keys()) {
      const value = this.#values.has(key)
        ? (this.#values.get(key) as O[typeof key])
        : this.#command.flags[key].default
      if (Array.isArray(value)) Object.freeze(value)
      options[key] = value
    }
    return Object.freeze(options as O)
  }

  brokenRules(options: O): string[] {
    const { rules, decided } = this.#command
    const applicable = rules.filter((rule) =>
      rule.about.every((key) => !this.#broken.has(key) && decided[key] === undefined),
    )
    return applicable.map((rule) => rule.check(options)).filter((mistake) => mistake !== undefined)
  }

  #flag(written: Written): void {
    if (this.#builtIn(written)) return
    const key = this.#find(written)
    if (key === undefined) {
      this.mistakes.push(unknownFlag(this.#command, written))
      return
    }
    const reason = this.#command.decided[key]
    if (reason !== undefined) {
      this.#mistake(key, `${written.shown}: ${reason}`)
      // The next argument is its value and must not be reported as an unexpected argument.
      if (written.value === undefined) this.#valueAfter(this.#command.flags[key])
      return
    }
    this.#take(key, written)
  }

  #take(key: keyof O, written: Written): void {
    const flag = this.#command.flags[key]
    const value = written.value ?? this.#valueAfter(flag)
    if (value === undefined || value === '') {
      this.#mistake(
        key,
        `${written.shown} needs a value: write --${flag.name}=<${flag.kind.placeholder}>`,
      )
      return
    }
    try {
      this.#store(key, flag, value)
    } catch (error) {
      this.#mistake(key, `${written.shown}: ${error instanceof Error ? error.message : error}`)
    }
  }

  #store<K extends keyof O>(key: K, flag: Flag<O[K]>, text: string): void {
    const value = flag.kind.parse(text)
    if (flag.kind.merge === undefined) {
      const seen = this.#seen.get(key) ?? []
      this.#seen.set(key, [...seen, text])
      this.#values.set(key, value)
      return
    }
    const earlier = this.#values.get(key) as O[K] | undefined
    this.#values.set(key, earlier === undefined ? value : flag.kind.merge(earlier, value))
  }

  /** Takes the next argument if it can be the value of `flag`. */
  #valueAfter(flag: Flag<O[keyof O]>): string | undefined {
    if (flag.kind.bare) return 'true'
    const following = this.#args[this.#next]
    if (following === undefined || following === '--' || looksLikeFlag(following)) return undefined
    this.#next += 1
    return following
  }

  #builtIn(written: Written): boolean {
    const name = written.short ? written.name === 'h' && 'help' : written.name
    if (name !== 'help' && name !== 'version') return false
    if (written.value === undefined || written.value === 'true') this[name] = true
    else if (written.value !== 'false') {
      this.mistakes.push(`${written.shown} takes no value: write --${name}`)
    }
    return true
  }

  #find(written: Written): keyof O | undefined {
    return this.#keys().find((key) => {
      const flag = this.#command.flags[key]
      return (written.short ? flag.short : flag.name) === written.name
    })
  }

  #keys(): (keyof O)[] {
    return Object.keys(this.#command.flags) as (keyof O)[]
  }

  #mistake(key: keyof O, message: string): void {
    this.#broken.add(key)
    this.mistakes.push(message)
  }

  #givenTwice(key: keyof O, values: readonly string[]): void {
    const all = values.map(quote).join(', ')
    this.#mistake(
      key,
      `--${this.#command.flags[key].name} is given ${values.length} times (${all}): give it once`,
    )
  }

  #stray(arg: string, previous: Written | undefined): void {
    const key = previous === undefined ? undefined : this.#find(previous)
    const bare = key !== undefined && this.#command.flags[key].kind.bare
    const advice =
      bare && previous?.value === undefined && /^(true|false)$/i.test(arg)
        ? `write ${previous?.shown}=${arg.toLowerCase()}`
        : this.#takesFlags()
    this.mistakes.push(`unexpected argument ${quote(arg)}: ${advice}`)
  }

  #takesFlags(): string {
    const { name, subcommands = [] } = this.#command
    const names = subcommands.map((command) => `"${command.name}"`).join(', ')
    const other = names === '' ? '' : `; its commands are ${names}`
    return `${name} takes flags only, written --name=value${other}`
  }
}

/** `--name`, `--name=value`, `-v`, `-v=4` and `-v4`; undefined for an argument without a flag. */
function splitArgument(arg: string): Written | undefined {
  if (!looksLikeFlag(arg)) return undefined
  const equals = arg.indexOf('=')
  const head = equals < 0 ? arg : arg.slice(0, equals)
  const value = equals < 0 ? undefined : arg.slice(equals + 1)
  if (head.startsWith('--')) {
    const name = head.slice(2).replaceAll('_', '-')
    return { shown: `--${name}`, name, short: false, value }
  }
  const attached = /^-([A-Za-z])(\d+)$/.exec(arg)
  if (attached !== null) {
    const [, name = '', digits] = attached
    return { shown: `-${name}`, name, short: true, value: digits }
  }
  return { shown: head, name: head.slice(1), short: true, value }
}

function looksLikeFlag(arg: string): boolean {
  return /^(--.|-[A-Za-z])/s.test(arg)
}

function unknownFlag<O>(command: Command<O>, written: Written): string {
  const shown = /^[\w.-]+$/.test(written.shown) ? written.shown : quote(written.shown)
  const near = nearestName(command, written.name)
  const advice =
    near === undefined ? `"${command.name} --help" lists all flags` : `did you mean --${near}?`
  return `unknown flag ${shown}: ${advice}`
}

// Longer than any flag; bounds the cost of the comparison below.
const comparedLengthMax = 60

function nearestName<O>(command: Command<O>, name: string): string | undefined {
  if (name.length < 2 || name.length > comparedLengthMax) return undefined
  const keys = Object.keys(command.flags) as (keyof O)[]
  const offered = keys.filter((key) => command.decided[key] === undefined)
  const typed = name.toLowerCase()
  const ranked = [...offered.map((key) => command.flags[key].name), 'help', 'version']
    .filter((known) => known.length > 1)
    .map((known) => ({ known, distance: editDistance(typed, known) }))
    .sort((a, b) => a.distance - b.distance)
  const [best] = ranked
  // Up to a third of the letters wrong is a typo; more is another word.
  return best !== undefined && best.distance <= Math.max(1, best.known.length / 3)
    ? best.known
    : undefined
}

/** The Levenshtein distance. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1]
    for (let j = 1; j <= to.length; j++) {
      const changed = (row[j - 1] ?? 0) + (to[j - 1] === letter ? 0 : 1)
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[to.length] ?? 0
}
