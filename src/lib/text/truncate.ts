/** Characters of a text that are enough to recognise it. */
export const TRUNCATED_MAX = 256

/** Bounds a text that a response or log line repeats from a request: it may be of any length. */
export function truncate(text: string): string {
  return text.slice(0, TRUNCATED_MAX)
}
