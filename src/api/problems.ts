import { cutText, type FieldError, invalidText } from './field-error.ts'

/** A client that sent more mistakes than this learns of the first ones. */
const PROBLEMS_MAX = 100
/** They quote what was sent, and all of them go into one answer, twice. */
const CHARACTERS_MAX = 64 * 1024

/**
 * Collects what is wrong with an object. A client can make mistakes by the hundred thousand, so
 * there is a bound: past it nothing more is taken, and a loop may stop once it is `full`.
 */
export class Problems {
  #found: FieldError[] | undefined
  #characters = 0

  get full(): boolean {
    if (this.#found === undefined) return false
    return this.#found.length >= PROBLEMS_MAX || this.#characters >= CHARACTERS_MAX
  }

  add(problem: FieldError): void {
    if (this.full) return
    this.#found ??= []
    this.#found.push(problem)
    this.#characters += problem.field.length + problem.body.length
  }

  addAll(problems: readonly FieldError[]): void {
    for (const problem of problems) this.add(problem)
  }

  /** What each of the sentences says about the value. */
  addInvalid(field: string, value: string, details: readonly string[]): void {
    for (const detail of details) this.add(invalidText(field, value, detail))
  }

  /** In the order in which they were found. */
  list(): readonly FieldError[] {
    return this.#found ?? NONE
  }
}

const NONE: readonly FieldError[] = []

/** A structure as it is shown in an error, cut where it gets too long. */
export function shownJson(value: unknown): string {
  return cutText(JSON.stringify(value)).replace(/[<>&\u2028\u2029]/g, escapeCharacter)
}

/** These are never plain in the JSON that clients are used to. */
function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
