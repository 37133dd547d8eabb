import type { Kind } from './kinds.ts'

/** The sections of the help text, in the order they are printed. */
export const topics = [
  'Serving',
  'Access',
  'Limits',
  'Audit',
  'Storage',
  'API',
  'Health and shutdown',
  'Logging',
  'Misc',
] as const
export type Topic = (typeof topics)[number]

/** One row: a flag and the option it fills. */
export interface Flag<T> {
  /** As written after the two hyphens. */
  readonly name: string
  /** As written after one hyphen. */
  readonly short?: string
  readonly topic: Topic
  readonly kind: Kind<T>
  readonly default: T
  /** What it means, in whole sentences; the default is printed after it. */
  readonly help: string
}

/** A row for every option, and none besides. */
export type FlagTable<O> = { readonly [K in keyof O]-?: Flag<O[K]> }

/** Something that must hold between flags that are each fine by themselves. */
export interface Rule<O> {
  /** The options it looks at; it is skipped when one of them is wrong already. */
  readonly about: readonly (keyof O)[]
  /** What is wrong and what to write instead; undefined when all is well. */
  readonly check: (options: O) => string | undefined
}

/** A program as seen from the command line. */
export interface Command<O> {
  /** As typed: `tidings` or `tidings dev`. */
  readonly name: string
  /** The one that is typed the same way and goes on: `tidings dev`. */
  readonly subcommand?: string
  readonly summary: string
  readonly flags: FlagTable<O>
  readonly rules: readonly Rule<O>[]
  /** Options this command decides itself, each with the reason its flag is refused here. */
  readonly decided: { readonly [K in keyof O]?: string }
}
