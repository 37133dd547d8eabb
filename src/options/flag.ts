import type { Kind } from './kinds.ts'

/** The sections of the help text, in the order in which they are printed. */
export const topics = [
  'Serving',
  'Access',
  'Limits',
  'Audit',
  'Traces',
  'Storage',
  'API',
  'Clusters',
  'Health and shutdown',
  'Logging',
  'Misc',
] as const
export type Topic = (typeof topics)[number]

/** One row of a table of flags. */
export interface Flag<T> {
  /** Without the two hyphens. */
  readonly name: string
  /** Without the hyphen. */
  readonly short?: string
  readonly topic: Topic
  readonly kind: Kind<T>
  readonly default: T
  /** The meaning, in whole sentences; the default is printed after it. */
  readonly help: string
}

/** Exactly one row for every option. */
export type FlagTable<O> = { readonly [K in keyof O]-?: Flag<O[K]> }

/** A condition on several flags that are each valid on their own. */
export interface Rule<O> {
  /** The options that it reads; the rule is skipped when one of them is already invalid. */
  readonly about: readonly (keyof O)[]
  /** What is wrong and what to write instead; undefined when the rule holds. */
  readonly check: (options: O) => string | undefined
}

/** A program as seen from the command line. */
export interface Command<O> {
  /** As typed: `tidings` or `tidings dev`. */
  readonly name: string
  /** The full name of its subcommand: `tidings dev`. */
  readonly subcommand?: string
  readonly summary: string
  readonly flags: FlagTable<O>
  readonly rules: readonly Rule<O>[]
  /** Options that this command sets itself, each with the reason why its flag is refused. */
  readonly decided: { readonly [K in keyof O]?: string }
}
