import { ownText } from '../../lib/text/own-text.ts'
import { shortened, shownMax } from '../../lib/text/shortened.ts'

/**
 * Gives equal texts one number, for as long as a row uses it: rows hold numbers instead of texts,
 * and comparing two numbers is exact. A number is reused when its last row was freed.
 * Long texts are shortened: they would move the bytes of bodies into the heap of V8.
 */
export class InternedTexts {
  readonly #ids = new Map<string, number>()
  readonly #texts: string[] = []
  /** How many rows use each number. */
  readonly #uses: number[] = []
  readonly #free: number[] = []

  get size(): number {
    return this.#ids.size
  }

  /** All numbers in use are below this. */
  get span(): number {
    return this.#texts.length
  }

  /** The number of this text, which gets one more use. */
  take(text: string): number {
    const short = shortened(text)
    const known = this.#ids.get(short)
    if (known !== undefined) {
      this.#uses[known] = (this.#uses[known] ?? 0) + 1
      return known
    }
    const own = ownText(short)
    const id = this.#free.pop() ?? this.#texts.length
    this.#ids.set(own, id)
    this.#texts[id] = own
    this.#uses[id] = 1
    return id
  }

  /** One use ends. */
  release(id: number): void {
    const uses = (this.#uses[id] ?? 0) - 1
    this.#uses[id] = uses
    if (uses > 0) return
    this.#ids.delete(this.textOf(id))
    this.#texts[id] = ''
    this.#free.push(id)
  }

  /** Undefined when no row has this text. */
  find(text: string): number | undefined {
    return this.#ids.get(shortened(text))
  }

  /** Whether only the beginning of the text is known. */
  isShortened(id: number): boolean {
    return this.textOf(id).length > shownMax
  }

  /** The text, or the beginning of a long one. */
  textOf(id: number): string {
    return this.#texts[id] ?? ''
  }
}
