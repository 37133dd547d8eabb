/** As much of a text as anybody needs to recognise it by. */
export const SHOWN_MAX = 256

/** A text in an answer that repeats what was sent, which may be of any length. */
export function shown(text: string): string {
  return text.slice(0, SHOWN_MAX)
}
