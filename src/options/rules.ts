import type { FlagTable, Rule } from './flag.ts'

/** Refuses a flag that would silently have no effect because another flag is missing. */
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
