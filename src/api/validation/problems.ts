import { cutText, type FieldError, invalidText } from './field-error.ts'

const PROBLEMS_MAX = 100
/** Problems quote the request, and the response contains all of them twice. */
const CHARACTERS_MAX = 64 * 1024

/**
 * Collects the problems of an object, each once. A request can have hundreds of thousands, so the
 * number is limited: further problems are dropped, and a loop may stop when the collection is
 * `full`. Repeated problems count, too, since finding them costs as much.
 */
export class Problems {
  #found: FieldError[] | undefined
  #reported = 0
  #characters = 0

  get full(): boolean {
    return this.#reported >= PROBLEMS_MAX || this.#characters >= CHARACTERS_MAX
  }

  add(problem: FieldError): void {
    if (this.full) return
    const { field, body } = problem
    this.#reported += 1
    this.#characters += field.length + body.length
    this.#found ??= []
    if (!this.#found.some((found) => found.field === field && found.body === body)) {
      this.#found.push(problem)
    }
  }

  /** Adds a problem for each of the messages about the value. */
  addInvalid(field: string, value: string, details: readonly string[]): void {
    for (const detail of details) this.add(invalidText(field, value, detail))
  }

  list(): readonly FieldError[] {
    return this.#found ?? NONE
  }
}

const NONE: readonly FieldError[] = []

/** Encodes a structure for an error message, truncated if it is too long. */
export function truncatedJson(value: unknown): string {
  return cutText(JSON.stringify(value)).replace(/[<>&\u2028\u2029]/g, escapeCharacter)
}

/** Go's JSON encoder always escapes these characters. */
function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
