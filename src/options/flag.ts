import type { Kind } from './kinds.ts'

/** The sections of the help text, in the order in which they are printed. */
export const topics = [
  'Dev',
  'Purge',
  'Serving',
  'Access',
  'Limits',
  'Audit',
  'Traces',
  'Storage',
  'History',
  'API',
  'Clusters',
  'Health and shutdown',
  'Logging',
  'Misc',
] as const
export type Topic = (typeof topics)[number]

export interface Flag<T> {
  /** Flag name without the leading "--". */
  readonly name: string
  /** One letter, without the leading "-". */
  readonly short?: string
  readonly topic: Topic
  readonly kind: Kind<T>
  readonly default: T
  /** Whole sentences; the default is printed after them. */
  readonly help: string
}

/** Exactly one row for every option. */
export type FlagTable<O> = { readonly [K in keyof O]-?: Flag<O[K]> }

/** A condition on several flags that are each valid on their own. */
export interface Rule<O> {
  /** The options that the rule reads; it is skipped when one of them is already invalid. */
  readonly about: readonly (keyof O)[]
  /** What is wrong and what to write instead; undefined when the rule holds. */
  readonly check: (options: O) => string | undefined
}

/** What the help of a command says of one below it. */
export type Subcommand = Pick<Command<unknown>, 'name' | 'usage' | 'summary'>

export interface Command<O> {
  /** The command as typed: `tidings` or `tidings dev`. */
  readonly name: string
  /** What is typed after the name. Default: `[flags]`. */
  readonly usage?: string
  readonly subcommands?: readonly Subcommand[]
  readonly summary: string
  readonly flags: FlagTable<O>
  readonly rules: readonly Rule<O>[]
  /** Options that this command sets itself, each with the reason why its flag is rejected. */
  readonly decided: { readonly [K in keyof O]?: string }
}

/** Rejects a flag that would have no effect because another flag is missing. */
export function noEffectWithout<O>(flags: FlagTable<O>, option: keyof O, needed: keyof O): Rule<O> {
  const { name } = flags[needed]
  return {
    about: [option, needed],
    check: (options) =>
      options[needed] !== undefined || options[option] === flags[option].default
        ? undefined
        : `--${flags[option].name} has no effect without --${name}: add --${name}, or leave it out`,
  }
}

/** Rejects one file without the other. */
export function together<K extends string>(
  flags: Readonly<Record<K, { readonly name: string }>>,
  one: K,
  other: K,
): Rule<Readonly<Record<K, unknown>>> {
  return {
    about: [one, other],
    check: (options) => {
      if ((options[one] === undefined) === (options[other] === undefined)) return undefined
      const [given, missing]: readonly [K, K] =
        options[one] === undefined ? [other, one] : [one, other]
      const { name } = flags[missing]
      return `--${flags[given].name} needs --${name}: add --${name}=<path>`
    },
  }
}
